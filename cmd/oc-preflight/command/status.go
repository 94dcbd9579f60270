package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/format"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/reportview"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/standing"
	"github.com/openshift/update-preflight/runner/trigger/guard"
)

// statusFlags are the flags of "status".
type statusFlags struct {
	watchFlags

	target     runner.Target
	prometheus string
}

func (f *statusFlags) add(c *cobra.Command) {
	c.Flags().Var(nameValue{&f.target.Version, format.UpdateName}, "to", "Show the newest run of the update to this version.")
	c.Flags().StringVar(&f.target.Image, "to-image", "", "Show the newest run of the release with this pull spec or digest.")
	c.Flags().StringVar(&f.prometheus, "prometheus", "", "URL of a Prometheus or Thanos querier with the metrics and alerts of the cluster. Default: the monitoring of the cluster.")
	f.watchFlags.add(c, 10*time.Second, "the run has ended, with its exit code, or until Ctrl-C")
}

func (f *statusFlags) check(args []string) error {
	switch named := len(args) > 0; {
	case f.target.Version != "" && f.target.Image != "":
		return errors.New("--to and --to-image exclude each other")
	case named && (f.target.Version != "" || f.target.Image != ""):
		return fmt.Errorf("%q is a run; name either a run or a target", args[0])
	}
	return f.watchFlags.check()
}

func newStatus(client *client) *cobra.Command {
	var output outputFlags
	var flags statusFlags
	c := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show whether the cluster may be updated now, by a recorded run",
		Long: `Show a run: RUN, an ID or a prefix of one; with --to or --to-image, the newest run of that
target; without them, the run in progress, or the newest run. Where several targets have
verdicts that differ, name the target: without it no verdict is Ready.

For a run that has ended, this is its report. Gates, risks and the health of the cluster are
judged now; the results of the release's checks are those of the run. These no longer hold
when the run is older than a day, when a kubelet, the version of an operator or of the
cluster, or a CustomResourceDefinition has changed, or when a newer run of the same target has
ended; the exit code is 4 then. What a run bypassed by force counts. A record that was
edited, or that cannot be authenticated, has no verdict, and the exit code is 4.

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

  # Update only if a run of this target is Ready and nothing speaks against it now
  oc preflight status --to 4.19.3 > /dev/null && oc adm upgrade --to 4.19.3

  # Follow the run until it has ended
  oc preflight status --watch

  # One line for a chat
  oc preflight status 3b6f2c1e -o short`,
		Args: atMostOneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.check(args); err != nil {
				return usageError(err)
			}
			out, err := output.open(client.streams.Out, reportview.Report{})
			if err != nil {
				return err
			}
			defer out.close()
			return status(c, client, args, flags, out)
		},
	}
	output.addText(c, reportview.Report{})
	flags.add(c)
	return c
}

func status(c *cobra.Command, client *client, args []string, flags statusFlags, out *output) error {
	store, err := client.runStore(c.Context(), statusNeeds())
	if err != nil {
		return err
	}
	find, err := monitoring.Cluster{Config: store.Config(), Dynamic: store.Dynamic}.Locate(flags.prometheus)
	if err != nil {
		return usageError(fmt.Errorf("--prometheus: %w", err))
	}
	shown := flags.watched(out, client)
	return flags.repeat(c.Context(), shown, store.records.Watch, func() (bool, error) {
		// Metrics and alerts are read once by each client.
		options := runner.Options{Monitoring: monitoring.New(find, monitoring.DefaultTimeout), Logger: client.log, ToolVersion: program.Version()}
		stored, err := store.read(c.Context(), client, wantedRun{args: args, target: flags.target}, options)
		if err != nil {
			return false, err
		}
		if err := shown.write(phraseOf(c).withCommands(stored), untimed(stored)); err != nil {
			return false, err
		}
		if flags.watch && stored.Run.Phase == report.PhaseRunning {
			args, flags.target = []string{stored.Run.ID}, runner.Target{} // one run is followed
			return false, nil
		}
		return true, exitOf(stored)
	})
}

// read is the report of the wanted run, as the cluster is now.
func (s runStore) read(ctx context.Context, client *client, wanted wantedRun, options runner.Options) (report.Report, error) {
	done := client.waiting("reading the record and the cluster")
	defer done()
	run, err := s.wanted(ctx, wanted)
	if err != nil {
		return report.Report{}, err
	}
	stored, err := s.standing(ctx, run.Record)
	if err == nil {
		stored, err = runner.JudgeAgain(ctx, s.Cluster, run.Record, stored, options)
	}
	if err == nil {
		stored.Switches, err = s.switches(ctx, client.streams.ErrOut)
	}
	done()
	if err != nil {
		return report.Report{}, err
	}
	for _, other := range run.alsoRunning {
		fmt.Fprintf(client.streams.ErrOut, "another run is in progress: %s\n", short(other))
	}
	return run.ambiguous(stored), nil
}

// untimed is a report without the time at which its standing was determined.
func untimed(stored report.Report) report.Report {
	if stored.Standing != nil {
		standing := *stored.Standing
		standing.Time, standing.Judged = "", ""
		stored.Standing = &standing
	}
	return stored
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
		// It says more about the newer run than the record does.
		stored.Standing.Ended = append(slices.DeleteFunc(stored.Standing.Ended, func(c string) bool { return c == run.Ended }), cause)
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
	builtin := runner.TargetsNeeds()
	return historyNeeds().And(standing.Needs()).And(guard.ReadNeeds()).And(access.Needs{Optional: append(builtin.Required, builtin.Optional...)})
}
