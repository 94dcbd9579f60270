// Package after answers: how does a user find out whether an update was good?
//
// [NewAfter] makes the command "after".
package after

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/document/afterview"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner/inspection"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
)

// interval is the default time between two samples with --watch.
const interval = time.Minute

// secondSample is the time until a second sample that may make the decision, at most the interval with --watch.
const secondSample = 10 * time.Second

// Options are the arguments and flags of "after".
type Options struct {
	// Run is the ID of the run with the baseline, or a prefix of it; empty for the newest baseline.
	Run string
	// Soak is how long the cluster must stay good.
	Soak time.Duration
	// Prometheus is the URL of a querier; empty for the monitoring of the cluster.
	Prometheus string

	Watching flagset.Watching
	Hosted   flagset.Hosted
	Output   flagset.Output
}

func (f *Options) add(c *cobra.Command, client *cli.Client) {
	c.Flags().DurationVar(&f.Soak, "soak", 0, "How long the cluster must stay good after the rollout has settled before the update is Good.")
	c.Flags().StringVar(&f.Prometheus, "prometheus", "",
		"URL of a Prometheus or Thanos querier with the metrics and alerts of the cluster. Default: the monitoring of the cluster.")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer}, "soak")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Again: option.Reaching}, "prometheus")
	f.Watching.Add(c, interval, "the decision is Good, Regressed, RolledBack or Undecided, with its exit code, or until Ctrl-C")
	f.Hosted.AddCluster(c)
	f.Output.AddText(c, afterview.Report{})
	client.ArchiveFlag(c)
	client.QuietFlag(c)
}

func (f *Options) check(client *cli.Client) error {
	if err := errors.Join(flagset.Judge{Prometheus: f.Prometheus}.Check(), f.Watching.Check()); err != nil {
		return err
	}
	if f.Soak < 0 {
		return fmt.Errorf("--soak=%s: it must not be negative", f.Soak)
	}
	if client.Archived() && (f.Run != "" || f.Watching.Watch || f.Soak > 0) {
		return errors.New("two archives show two points in time: RUN, --watch and --soak need a cluster")
	}
	return nil
}

const long = `Show whether the last update of the cluster was good: compare the cluster with the baseline that a run stored before the update, and list what was good then and is bad now. RUN, an ID or a prefix of one, selects the run; by default the newest baseline from before the update is used. The cluster is only read. A final decision is stored beside the record of the run if you may write there; "status" and "history" show it.

The decision is

  Good        the rollout has settled, and nothing that was good before is bad
  Regressed   something that was good before is bad, for longer than its limit
  Settling    the rollout is not complete, or it is too early to say
  Unfinished  the cluster-version operator has not completed the update
  RolledBack  the release before the update was requested again
  Undecided   there is no baseline, or not everything could be read

A rollout has settled when all operators report the version and none is progressing, all MachineConfigPools that are not paused are updated, and no node was rebooted within 20 minutes. A problem that ended must stay away for its limit before the update is Good; a problem that comes and goes counts by its share of the time. Deleted objects count as well: if it is unknown who deleted one, the decision is Undecided.

Objects that were already failing before the update are no regressions, and neither are objects that their owner has changed, scaled, deleted or created since. Problems that begin more than an hour after the rollout has settled are listed separately, as not caused by the update.

With --watch, a sample is taken at each --interval until there is a decision; otherwise two samples are taken. Samples of earlier calls count: they are stored beside the record if you may write there.

All kinds of objects with a status are compared, as far as you may list them. The roles that "auth after" prints cover Kubernetes and OpenShift; for the custom resources of other operators, bind the ClusterRole cluster-reader.

With --hosted-cluster, the update of the control plane of a hosted cluster (HyperShift) is evaluated: the guest, which has the baseline, and the HostedCluster with its NodePools are read. NodePools that request another release are skipped and listed.

With --archive given twice, the first archive is from before the update and the second from after it.

Exit codes: 0 Good, 1 the tool failed, 2 wrong usage or bad input, 3 Regressed or RolledBack, 4 Settling, Unfinished or Undecided, 130 interrupted.`

// NewAfter returns the command "after", which evaluates the last update against the baseline of a run.
func NewAfter(client *cli.Client) *cobra.Command {
	var options Options
	c := &cobra.Command{
		Use:   "after [RUN]",
		Short: "Show whether the last update was good, and what is worse since",
		Long:  long,
		Example: `  # Was the last update good?
  oc preflight after

  # Wait until there is a decision, and until the cluster has been good for half an hour
  oc preflight after --watch --soak 30m

  # Was the last update of the control plane of a hosted cluster good?
  oc preflight after --hosted-cluster clusters/example

  # Two must-gathers of one cluster, from before and after its update
  oc preflight after --archive before.tar.gz --archive after.tar.gz`,
		Args: flagset.Arguments(0, 1, "the ID of one run at most"),
		RunE: func(c *cobra.Command, args []string) error {
			options.Run = flagset.First(args)
			return flagset.Execute(c, options, func() error { return run(c, client, &options) })
		},
	}
	options.add(c, client)
	client.Roles.Declare(c, role.Role{Needs: role.Always(needs), Flags: []string{"hosted-cluster"}, Management: role.NoMore})
	return c
}

// needs are the permissions to evaluate an update and to store a final decision.
func needs() access.Needs {
	made := inspection.Needs()
	made.Optional = append(made.Optional, baselinestore.Needs().Required...)
	return made
}

func run(c *cobra.Command, client *cli.Client, f *Options) error {
	if err := f.check(client); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := f.Output.Open(client.Streams.Out, afterview.Report{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Cluster = f.Hosted.Subject(client)
	if client.Archived() {
		return f.archives(c, client, out)
	}
	return live{client: client, options: f, out: out, phrase: phrase.Of(c)}.run(c.Context())
}

// archives evaluates the update between two archives.
func (f *Options) archives(c *cobra.Command, client *cli.Client, out *flagset.Destination) error {
	all, err := f.Hosted.OpenArchives(c.Context(), client)
	if err != nil {
		return err
	}
	if len(all) != 2 {
		return exitcode.BadUsage(fmt.Errorf("--archive is given %d times: give the archive from before the update first, "+
			"then the one from after it", len(all)))
	}
	made, err := inspection.Archives(c.Context(), inspection.Archived(all[0]), inspection.Archived(all[1]),
		scene.Settings{ToolVersion: program.Version()})
	if err != nil {
		return err
	}
	if err := out.Write(document(phrase.Of(c), made)); err != nil {
		return err
	}
	return exitcode.OfAfterUpdate(made.Decision)
}

// document is the judgement with the commands for the request.
func document(p phrase.Phrase, made afterupdate.Report) afterview.Report {
	shown := phrase.AfterUpdate(p, made)
	shown.ToolVersion = program.Version()
	return shown
}

// live evaluates the update of a cluster.
type live struct {
	client  *cli.Client
	options *Options
	out     *flagset.Destination
	phrase  phrase.Phrase
}

func (l live) run(ctx context.Context) error {
	reached, estate, err := l.options.Hosted.Open(ctx, l.client)
	if err != nil {
		return err
	}
	if err := estate.GuestError(); err != nil {
		return fmt.Errorf("the baseline is in the guest: %w", err)
	}
	if err := l.client.Review(ctx, reached, inspection.Needs()); err != nil {
		return err
	}
	find, err := monitoring.Querier{Config: reached.Config(), Dynamic: reached.Dynamic}.Locate(l.options.Prometheus)
	if err != nil {
		return exitcode.BadUsage(fmt.Errorf("--prometheus: %w", err))
	}
	options := inspection.Options{
		Soak: l.options.Soak, Watched: l.options.Watching.Watch, Monitoring: find,
		Settings: scene.Settings{ToolVersion: program.Version(), Estate: estate},
	}
	if l.options.Run != "" {
		options.Run = runs.RunID(l.options.Run)
	}
	inspected, shown := inspection.New(reached, options), l.options.Watching.Watched(l.out, l.client)
	return l.options.Watching.Repeat(ctx, shown, flagset.Unwatched, func() (bool, error) {
		made, err := l.look(ctx, inspected)
		if err != nil {
			return false, err
		}
		goesOn := l.options.Watching.Watch && (made.Decision == afterupdate.Settling || made.Decision == afterupdate.Unfinished)
		write := map[bool]func(any, any) error{true: shown.Write, false: shown.Last}[goesOn]
		//nolint:contextcheck // the phrase has the context of the command
		if err := write(document(l.phrase, made), untimed(made)); err != nil || goesOn {
			return false, err
		}
		if err := l.record(ctx, inspected, made); err != nil {
			return true, err
		}
		return true, exitcode.OfAfterUpdate(made.Decision)
	})
}

// look takes one sample, or two where only the second one is missing.
func (l live) look(ctx context.Context, inspected *inspection.Inspection) (afterupdate.Report, error) {
	done := l.client.Waiting("reading the cluster")
	made, err := inspected.Look(ctx)
	done()
	if err != nil || !needsSecond(made) {
		return made, err
	}
	pause := l.options.Watching.Within(secondSample)
	defer l.client.Waiting(fmt.Sprintf("waiting %s for a second sample", pause))()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return made, context.Cause(ctx)
	case <-timer.C:
	}
	return inspected.Look(ctx)
}

// needsSecond reports whether a second sample may make the decision.
func needsSecond(made afterupdate.Report) bool {
	return made.Decision == afterupdate.Settling && made.Samples.Number == 1 && made.Update.SettledTime != "" && made.Counts.Pending == 0
}

// record stores a judgement that is final beside the record of the run. That the user may not store it
// changes nothing about it.
func (l live) record(ctx context.Context, inspected *inspection.Inspection, made afterupdate.Report) error {
	if !made.Decision.Final() || made.Update.Run == "" {
		return nil
	}
	if err := inspected.Record(ctx, made); err != nil {
		_, failed := fmt.Fprintf(l.client.Streams.ErrOut, "could not store the decision beside the record: %v\n", err)
		return failed
	}
	return nil
}

// untimed is a judgement without what changes with each sample.
func untimed(made afterupdate.Report) afterupdate.Report {
	made.Samples = afterupdate.Samples{}
	return made
}
