package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/standing"
	"github.com/openshift/update-preflight/runner/trigger/guard"
)

func newStatus(client *client) *cobra.Command {
	var output outputFlags
	var watching watchFlags
	c := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show the findings of a run, and whether its verdict still holds",
		Long: `Show a run: RUN, an ID or a prefix of one; without RUN, the run in progress, or the
newest run.

For a run that has ended, this is its report. A verdict is about the cluster at the
time of the run. It no longer holds when it has expired, when a node, an operator, the
version of the cluster or a CustomResourceDefinition has changed, or when a newer run
of the same target has ended; the exit code is 4 then. A record that was edited, or that
cannot be authenticated, has no verdict, and the exit code is 4.

For a run in progress, these are the findings so far, the checks that have not reported
and the holder of the run. It is never Ready: the exit code is 3 when a finding blocks,
otherwise 4.

With --watch, changes of the run are shown at once where the user may watch ConfigMaps in
the namespace openshift-cluster-version, and otherwise after --interval. When the run has
ended, the exit code is that of its report; Ctrl-C before is no error, exit code 0.

The report names the switches by which the controller has CVO honor its verdicts, as far
as you may read them, with the limits of each.
` + exitHelp,
		Example: `  # The run in progress or the newest run
  oc preflight status

  # Follow the run until it has ended
  oc preflight status --watch

  # One line for a chat
  oc preflight status 3b6f2c1e -o short

  # Exit code 0 only for a verdict that is Ready and still holds
  oc preflight status 3b6f2c1e > /dev/null && echo yes`,
		Args: atMostOneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if err := watching.check(); err != nil {
				return usageError(err)
			}
			out, err := output.open(client.streams.Out, report.Report{})
			if err != nil {
				return err
			}
			defer out.close()
			return status(c, client, args, watching, out)
		},
	}
	output.addText(c, report.Report{})
	const interval = 10 * time.Second
	watching.add(c, interval, "the run has ended, with its exit code, or until Ctrl-C")
	return c
}

func status(c *cobra.Command, client *client, args []string, watching watchFlags, out *output) error {
	store, err := client.runStore(c.Context(), statusNeeds())
	if err != nil {
		return err
	}
	shown := watching.watched(out, client)
	return watching.repeat(c.Context(), shown, store.records.Watch, func() (bool, error) {
		stored, err := store.read(c.Context(), client, args)
		if err != nil {
			return false, err
		}
		args = []string{stored.Run.ID} // one run is followed
		if err := shown.write(withCommands(stored, c.Root().CommandPath()), untimed(stored)); err != nil {
			return false, err
		}
		if watching.watch && stored.Run.Phase == report.PhaseRunning {
			return false, nil
		}
		return true, exitOf(stored)
	})
}

// read is the report of the named or current run with its standing.
func (s runStore) read(ctx context.Context, client *client, args []string) (report.Report, error) {
	done := client.waiting("reading the record and the cluster")
	defer done()
	run, rest, err := s.find(ctx, args)
	if err != nil {
		return report.Report{}, err
	}
	stored, err := s.standing(ctx, run)
	if err == nil {
		stored.Switches, err = s.switches(ctx, client.streams.ErrOut)
	}
	done()
	if err != nil {
		return report.Report{}, err
	}
	for _, other := range rest {
		fmt.Fprintf(client.streams.ErrOut, "another run is in progress: %s\n", short(other))
	}
	return stored, nil
}

// untimed is a report without the time at which its standing was determined.
func untimed(stored report.Report) report.Report {
	if stored.Standing != nil {
		standing := *stored.Standing
		standing.Time = ""
		stored.Standing = &standing
	}
	return stored
}

// find is the named run, or the current one.
func (s runStore) find(ctx context.Context, args []string) (run record.Record, rest []record.Record, err error) {
	if len(args) == 0 {
		return s.current(ctx)
	}
	run, err = s.records.Get(ctx, runID(args[0]))
	return run, nil, err
}

// standing is the report of a run with its standing. A newer verdict on the same
// target ends that of an older run.
func (s runStore) standing(ctx context.Context, run record.Record) (report.Report, error) {
	stored, err := standing.Of(ctx, s.Cluster, run)
	if err != nil || run.Phase == record.Running || run.Verified() != nil {
		return stored, err
	}
	all, err := s.records.List(ctx)
	if err != nil {
		return report.Report{}, err
	}
	if cause := standing.Superseded(run, all); cause != "" {
		stored.Standing.Ended = append(stored.Standing.Ended, cause)
	}
	return stored, nil
}

// switches are those that are on in the cluster. Those that cannot be read are reported on
// w; the error is that of ctx.
func (s runStore) switches(ctx context.Context, w io.Writer) ([]report.Switch, error) {
	effects, err := guard.Active(ctx, s.Dynamic)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(w, "unknown whether all switches of the controller are shown: %s\n", words.Line(err.Error(), maxLine))
	}
	var switches []report.Switch
	for _, each := range effects {
		switches = append(switches, report.Switch{Name: each.Name, Mode: string(each.Mode), Limit: each.Limit, WithoutController: each.WithoutController})
	}
	return switches, ctx.Err()
}

// statusNeeds are the permissions that "status" needs.
func statusNeeds() access.Needs {
	return historyNeeds().And(standing.Needs()).And(guard.ReadNeeds())
}
