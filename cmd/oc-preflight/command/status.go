package command

import (
	"context"
	"fmt"
	"io"

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

The report names the switches by which the controller has CVO honor its verdicts, as far
as you may read them, with the limits of each.
` + exitHelp,
		Example: `  # The run in progress or the newest run
  oc preflight status

  # Exit code 0 only for a verdict that is Ready and still holds
  oc preflight status 3b6f2c1e > /dev/null && echo yes`,
		Args: atMostOneRun,
		RunE: func(c *cobra.Command, args []string) error {
			out, err := output.open(client.streams.Out, report.Report{})
			if err != nil {
				return err
			}
			defer out.close()
			return status(c, client, args, out)
		},
	}
	output.addText(c, report.Report{})
	return c
}

func atMostOneRun(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError(fmt.Errorf("%q takes the ID of one run at most, but got %d arguments; see %q", c.CommandPath(), len(args), c.CommandPath()+" --help"))
	}
	return nil
}

func status(c *cobra.Command, client *client, args []string, out *output) error {
	store, err := client.runStore(c.Context(), statusNeeds())
	if err != nil {
		return err
	}
	done := client.waiting("reading the record and the cluster")
	defer done()
	run, rest, err := store.find(c.Context(), args)
	if err != nil {
		return err
	}
	stored, err := store.standing(c.Context(), run)
	if err == nil {
		stored.Switches, err = store.switches(c.Context(), client.streams.ErrOut)
	}
	done()
	if err != nil {
		return err
	}
	for _, other := range rest {
		fmt.Fprintf(client.streams.ErrOut, "another run is in progress: %s\n", short(other))
	}
	if err := out.write(withCommands(stored, c.Root().CommandPath())); err != nil {
		return err
	}
	return exitOf(stored)
}

// find is the named run, or the current one.
func (s runStore) find(ctx context.Context, args []string) (run record.Record, rest []record.Record, err error) {
	if len(args) == 0 {
		return s.current(ctx)
	}
	run, err = s.records.Get(ctx, args[0])
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
	return recordNeeds().And(standing.Needs()).And(guard.ReadNeeds())
}
