package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/logs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/targets"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/reassessment"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// StatusOptions are the arguments and flags of "status".
type StatusOptions struct {
	// Run is the ID of the run, or a prefix of it; empty for the run of the target, or for the newest one.
	Run string
	// Target is the release whose newest run is shown; the zero value for any.
	Target runner.Target
	// Prometheus is the URL of a querier; empty for the monitoring of the cluster.
	Prometheus string

	Watching flagset.Watching
	Hosted   flagset.Hosted
	Output   flagset.Output
}

func (f *StatusOptions) add(c *cobra.Command) {
	c.Flags().Var(flagset.UpdateValue(&f.Target.Version), "to", "Show the newest run of the update to this version.")
	c.Flags().StringVar(&f.Target.Image, "to-image", "", "Show the newest run of the release with this pull spec or digest.")
	c.Flags().StringVar(&f.Prometheus, "prometheus", "",
		"URL of a Prometheus or Thanos querier. It must have the metrics and alerts of the cluster, whose own monitoring is the default.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting}, "to-image")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Again: option.Reaching}, "prometheus")
	f.Watching.Add(c, 10*time.Second, "the run has ended, with its exit code, or until Ctrl-C")
}

func (f *StatusOptions) check() error {
	if f.Run != "" && (f.Target.Version != "" || f.Target.Image != "") {
		return fmt.Errorf("%q is a run; name either a run or a target", f.Run)
	}
	return errors.Join(flagset.Judge{Prometheus: f.Prometheus}.Check(), flagset.CheckVersion(f.Target.Version), f.Watching.Check())
}

const statusExamples = `  # The run in progress or the newest run
  oc preflight status

  # Update only if a run of this target is Ready and nothing blocks it now
  oc preflight status --to 4.19.3 > /dev/null && oc adm upgrade --to 4.19.3

  # Follow the run until it has ended
  oc preflight status --watch

  # One line for a chat
  oc preflight status 3b6f2c1e -o short`

// NewStatus returns the command "status", which evaluates a recorded run for the cluster as it is now.
func NewStatus(client *cli.Client) *cobra.Command {
	var flags StatusOptions
	c := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show whether a recorded run permits updating the cluster now",
		Long: `Show a run: RUN, an ID or a prefix of one; with --to or --to-image, the newest run of that target; otherwise the run in progress or the newest run. If the verdicts of several targets differ, name the target: without it no verdict is Ready.

For a run that has ended, the report is shown. Gates, risks and the health of the cluster are evaluated now; the results of the release's checks are taken from the run. These results no longer hold, and the exit code is 4, if the run is older than a day; if a kubelet, the version of an operator or of the cluster, or a CustomResourceDefinition has changed; or if a newer run of the same target has ended. Findings that the run bypassed by force count. A record that was edited or cannot be authenticated has no verdict, and the exit code is 4.

If the update after the run was evaluated, the report names that decision; if the cluster runs the release and no decision is stored, the report shows NotJudged. "after RUN" has the details.

For a run in progress, the findings so far, the checks that have not reported and the holder of the run are shown. It is never Ready: the exit code is 3 if a finding blocks, otherwise 4.

With --watch, changes of the run are shown at once if you may watch ConfigMaps in the namespace openshift-cluster-version, otherwise after --interval. When the run has ended, the exit code follows its report; Ctrl-C before that is no error, exit code 0.

With --hosted-cluster, a run of a hosted cluster is shown, whose guest has the record; the HostedCluster and its NodePools are evaluated now as well.

With --archive, a run recorded in the archived cluster is shown, with the gates, risks and health of the archive. It cannot be authenticated, because the key is a Secret, which an archive does not have, so the exit code is 4.

The report lists the switches that make CVO honor the verdicts of the controller, as far as you may read them, with the limits of each.
` + exitcode.Help,
		Example: statusExamples,
		Args:    flagset.Arguments(0, 1, "the ID of one run at most"),
		RunE: func(c *cobra.Command, args []string) error {
			flags.Run = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return showStatus(c, client, flags) })
		},
	}
	flags.Output.AddText(c, reportview.Report{})
	flags.add(c)
	flags.Hosted.Add(c)
	client.ArchiveFlag(c)
	client.Roles.Declare(c, role.Role{
		Needs: role.Always(StatusNeeds), Flags: []string{"hosted-cluster"},
		Management: func(types.NamespacedName) role.Part { return role.Part{Needs: hostedguard.ReadNeeds()} },
	})
	return c
}

func showStatus(c *cobra.Command, client *cli.Client, flags StatusOptions) error {
	if err := flags.check(); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.Output.Open(client.Streams.Out, reportview.Report{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Cluster = flags.Hosted.Subject(client)
	return Status(c, client, flags, out)
}

// Status writes the report of a recorded run, evaluated for the cluster as it is now; its error has the exit code.
func Status(c *cobra.Command, client *cli.Client, flags StatusOptions, out *flagset.Destination) error {
	store, estate, err := OpenHosted(c.Context(), client, flags.Hosted, StatusNeeds())
	if err != nil {
		return err
	}
	find, err := monitoring.Querier{Config: store.Config(), Dynamic: store.Dynamic}.Locate(flags.Prometheus)
	if err != nil {
		return exitcode.BadUsage(fmt.Errorf("--prometheus: %w", err))
	}
	shown, now := flags.Watching.Watched(out, client), hosted.Reread(estate)
	return flags.Watching.Repeat(c.Context(), shown, store.records.Watch, func() (bool, error) {
		estate, err := now(c.Context())
		if err != nil {
			return false, err
		}
		// Metrics and alerts are read once by each client.
		options := runner.Options{
			Judgement: scene.Judgement{Monitoring: monitoring.New(find, monitoring.DefaultTimeout)}, Estate: estate,
			Hooks: runner.Hooks{Logger: client.Log, ToolVersion: program.Version()}, Origin: flagset.MonitoringOrigin(flags.Prometheus),
		}
		stored, err := store.read(c.Context(), client, wantedRun{id: flags.Run, target: flags.Target}, options)
		if err != nil {
			return false, err
		}
		if err := shown.Write(phrase.Of(c).WithCommands(stored), untimed(stored)); err != nil {
			return false, err
		}
		if flags.Watching.Watch && stored.Run.Phase == report.PhaseRunning {
			flags.Run, flags.Target = stored.Run.ID, runner.Target{} // one run is followed
			return false, nil
		}
		return true, exitcode.Of(stored)
	})
}

// read is the report of the wanted run, as the cluster is now.
func (s runStore) read(ctx context.Context, client *cli.Client, wanted wantedRun, options runner.Options) (report.Report, error) {
	done := client.Waiting("reading the record and the cluster")
	defer done()
	tracked, gaps := gap.Track(ctx)
	all, err := s.records.List(tracked)
	if err != nil {
		return report.Report{}, err
	}
	question := s.question(ctx, all, options.Origin.Monitoring)
	run, err := s.wanted(tracked, wanted, question)
	if err != nil {
		return report.Report{}, err
	}
	stored, err := question.Of(ctx, run.record)
	if err == nil {
		stored, err = reassessment.Of(ctx, s.Cluster, run.record, stored, options.Settings())
	}
	if err == nil {
		stored.AfterUpdate, err = s.afterUpdate(ctx, run.record)
	}
	if err == nil {
		stored.Switches, err = s.switches(ctx, options.Estate, client.Streams.ErrOut)
	}
	done()
	if err != nil {
		return report.Report{}, err
	}
	warnOfGaps(client.Streams.ErrOut, gaps)
	if selection.OtherMonitoring(run.record, options.Origin.Monitoring) {
		fmt.Fprintln(client.Streams.ErrOut, "the run read its alerts and metrics from another monitoring: give the "+
			"same --prometheus; its URL is not recorded, since it may have a password")
	}
	for _, other := range run.alsoRunning {
		fmt.Fprintf(client.Streams.ErrOut, "another run is in progress: %s\n", short(other))
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

// afterUpdate is the stored judgement of the update after a run; nil where that was not made.
func (s runStore) afterUpdate(ctx context.Context, of record.Record) (*report.AfterUpdate, error) {
	version, _ := snapshot.Of(s.Cluster).ClusterVersion(ctx) // what cannot be read now is reported by the judgement
	judged, err := judgement.OfRuns(ctx, s.Kubernetes, version)
	if err != nil {
		return nil, err
	}
	return judged.After(of), ctx.Err()
}

// switches are those that are on in the cluster, and of a hosted cluster in its management cluster.
// Those that cannot be read are reported on w; the error is ctx.Err().
func (s runStore) switches(ctx context.Context, estate hosted.Estate, w io.Writer) ([]report.Switch, error) {
	effects, err := guard.Active(ctx, s.Dynamic)
	if management := estate.Management(s.Cluster); management != s.Cluster {
		more, unread := hostedguard.Active(ctx, management.Dynamic)
		effects, err = append(effects, more...), errors.Join(err, unread)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(w, "unknown whether all switches of the controller are shown: %s\n", words.Line(err.Error(), terminal.MaxLine))
	}
	var switches []report.Switch
	for _, each := range effects {
		switches = append(switches, report.Switch{
			Name: each.Name, Mode: string(each.Mode), Limit: each.Limit,
			WithoutController: each.WithoutController,
		})
	}
	return switches, ctx.Err()
}

// StatusNeeds are the permissions that "status" needs.
func StatusNeeds() access.Needs {
	builtin := targets.Needs()
	return RecordNeeds().And(recordstore.WatchNeeds()).And(baselinestore.ReadNeeds()).And(standing.Needs()).And(published.AskedNeeds()).And(
		guard.ReadNeeds()).And(access.Needs{Optional: append(builtin.Required, builtin.Optional...)})
}

// LogsOptions are the arguments and flags of "logs".
type LogsOptions struct {
	// Run is the ID of the run, or a prefix of it; empty for the newest run.
	Run string
	// Check is the name of a check, or of one of its findings.
	Check string
	// Follow is true to show the output until the check has ended.
	Follow bool

	Hosted flagset.Hosted
}

// NewLogs returns the command "logs", which shows the output of a check.
func NewLogs(client *cli.Client) *cobra.Command {
	var flags LogsOptions
	c := &cobra.Command{
		Use:   "logs [RUN] CHECK",
		Short: "Show the output of a check",
		Long: `Show the output of the pods of a check while they exist: during the run, and after a run with --keep. If they were deleted, the recorded findings of the check are shown instead, with a note on standard error. With --hosted-cluster, the checks of a hosted cluster are searched in the guest and in the namespace of the control plane.

RUN is the ID of the run or a prefix of it; without it, it is the run in progress, or the newest one. CHECK is the name of a check as "checks" and "status" report it, or the name of one of its findings.

Exit codes: 0 output was shown, 1 there is none or the tool failed, 2 wrong usage, 130 interrupted.`,
		Example: `  # Of the run in progress, or the newest one
  oc preflight logs Etcd.Quorum

  oc preflight logs 3b6f2c1e Etcd.Quorum

  # Follow the output until the check has ended
  oc preflight logs 3b6f2c1e Etcd.Quorum -f`,
		Args: flagset.Arguments(1, 2, "the name of a check, after the ID of a run if it is not the newest"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				flags.Run, args = args[0], args[1:]
			}
			flags.Check = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return showLog(c.Context(), client, flags) })
		},
	}
	flags.Hosted.AddCluster(c)
	c.Flags().BoolVarP(&flags.Follow, "follow", "f", false, "Wait until the check starts, and follow its output until it has ended.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "follow")
	client.Roles.Declare(c, role.Role{
		Needs: role.Always(logsNeeds), Flags: []string{"hosted-cluster"},
		Management: role.InControlPlane(logs.Needs),
	})
	return c
}

// logsNeeds are the permissions that "logs" needs.
func logsNeeds() access.Needs { return RecordNeeds().And(logs.Needs()) }

// reader shows the output of the pods of a Job, and returns the number of pods.
type reader func(context.Context, kubernetes.Interface, *batchv1.Job, logs.Sink) (int, error)

// logSource is the check whose output is shown, and where its Job may be.
type logSource struct {
	client *cli.Client
	store  runStore
	places []place.Place
	run    record.Record
	check  string
}

func showLog(ctx context.Context, client *cli.Client, flags LogsOptions) error {
	found, err := findLog(ctx, client, flags)
	switch {
	case err != nil:
		return err
	case flags.Follow:
		return found.follow(ctx)
	}
	return found.show(ctx)
}

// findLog finds the check, and reads no output.
func findLog(ctx context.Context, client *cli.Client, flags LogsOptions) (logSource, error) {
	store, side, err := OpenHosted(ctx, client, flags.Hosted, logsNeeds())
	if err != nil {
		return logSource{}, err
	}
	defer client.Waiting("searching for the check")()
	var question standing.Question
	if flags.Run == "" {
		question.Runs, err = store.records.List(ctx)
	}
	run := foundRun{}
	if err == nil {
		run, err = store.wanted(ctx, wantedRun{id: flags.Run}, question)
	}
	if err != nil {
		return logSource{}, err
	}
	check, err := checkOf(run.record, format.BareName(format.CheckName, flags.Check))
	if err != nil {
		return logSource{}, exitcode.BadUsage(err)
	}
	return logSource{client: client, store: store, places: place.Of(store.Cluster, side), run: run.record, check: check}, nil
}

// show writes the output so far, or the recorded findings.
func (s logSource) show(ctx context.Context) error {
	pods, err := s.read(ctx, logs.Copy)
	if err != nil || pods > 0 {
		return err
	}
	return s.recorded()
}

// follow writes the output until the check has ended. A check that has not started is awaited while its run is in
// progress.
func (s logSource) follow(ctx context.Context) error {
	const interval = time.Second
	var waiting func()
	done := func() {
		if waiting != nil {
			waiting()
			waiting = nil
		}
	}
	defer done()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		pods, err := s.read(ctx, func(ctx context.Context, client kubernetes.Interface, job *batchv1.Job, sink logs.Sink) (int, error) {
			done()
			return logs.Follow(ctx, client, job, sink)
		})
		if err != nil || pods > 0 {
			return err
		}
		if s.run.Phase != record.Running || s.run.Verified() != nil || s.reported() >= 0 {
			done()
			return s.recorded()
		}
		if waiting == nil {
			waiting = s.client.Waiting(s.check + " has not started; waiting for it")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		run, err := s.store.records.Get(ctx, s.run.ID)
		if err != nil {
			return err
		}
		s.run = run
	}
}

// read reads the output of the Job of the check; 0 pods where there is none.
func (s logSource) read(ctx context.Context, read reader) (pods int, err error) {
	for _, p := range s.places {
		job, err := logs.Find(ctx, p.Cluster.Kubernetes, p.Objects.Namespace, s.run.ID, s.check)
		if err != nil {
			return 0, err
		}
		if job == nil {
			continue
		}
		if pods, err := read(ctx, p.Cluster.Kubernetes, job, logs.To(s.client.Streams.Out, s.client.Streams.ErrOut)); err != nil || pods > 0 {
			return pods, err
		}
	}
	return 0, nil
}

// reported is the place of the result of the check in the record; -1 for none.
func (s logSource) reported() int {
	return slices.IndexFunc(s.run.Results, func(result record.Result) bool { return result.Check == s.check })
}

// checkOf finds a check by its name or by the name of one of its findings.
func checkOf(run record.Record, name string) (string, error) {
	if slices.Contains(run.Checks, name) {
		return name, nil
	}
	for _, result := range run.Results {
		named := func(f finding.Finding) bool { return f.Name == name }
		if slices.ContainsFunc(result.Findings, named) {
			return result.Check, nil
		}
	}
	if len(run.Checks) == 0 {
		return "", fmt.Errorf("run %s has no checks of the release, so none is called %q", run.ID, name)
	}
	const most = 10
	return "", fmt.Errorf("run %s has no check %q; it has %s", run.ID, name, words.List(run.Checks, most))
}

// recorded shows the recorded findings of a check whose pods were deleted.
func (s logSource) recorded() error {
	if err := s.run.Verified(); err != nil {
		return err
	}
	at := s.reported()
	switch {
	case at >= 0:
		fmt.Fprintf(s.client.Streams.ErrOut, "the pods of %s and their logs were deleted; these are its recorded findings:\n", s.check)
		return format.Write(s.client.Streams.Out, "text", findingview.Findings(s.run.Results[at].Findings), terminal.Style(s.client.Streams.Out))
	case s.run.Phase == record.Running:
		return fmt.Errorf("%s has neither pods nor a result: it has not started, or its Job was just deleted", s.check)
	}
	return fmt.Errorf("the pods of %s were deleted, and the run ended before the check reported", s.check)
}
