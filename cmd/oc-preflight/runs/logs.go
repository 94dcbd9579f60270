package runs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/logs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/standing"
)

// NewLogs makes "logs", which shows the output of a check.
func NewLogs(client *cli.Client) *cobra.Command {
	var follow bool
	var selected flagset.Hosted
	c := &cobra.Command{
		Use:   "logs [RUN] CHECK",
		Short: "Show the output of a check",
		Long: `Show the output of the pods of a check while they exist: during the run, and after a run with --keep. Where they have been deleted, the recorded findings of the check are shown instead, with a note on standard error. The checks of a hosted cluster are found with --hosted-cluster, in the guest and in the namespace of the control plane.

RUN is the ID of the run or a prefix of it; without it, it is the run in progress, or the newest one. CHECK is the name of a check as "checks" and "status" report it, or the name of one of its findings.

Exit codes: 0 output was shown, 1 there is none or the tool failed, 2 wrong usage, 130 interrupted.`,
		Example: `  # Of the run in progress, or the newest one
  oc preflight logs Etcd.Quorum

  oc preflight logs 3b6f2c1e Etcd.Quorum

  # Follow the output until the check has ended
  oc preflight logs 3b6f2c1e Etcd.Quorum -f`,
		Args: flagset.Arguments(1, 2, "the name of a check, after the ID of a run if it is not the newest"),
		RunE: func(c *cobra.Command, args []string) error {
			found, err := findLog(c.Context(), client, selected, args)
			switch {
			case err != nil:
				return err
			case follow:
				return found.follow(c.Context())
			}
			return found.show(c.Context())
		},
	}
	selected.AddCluster(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "Wait until the check starts, and follow its output until it has ended.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "follow")
	client.Roles.Declare(c, role.Role{Needs: role.Always(logsNeeds), Flags: []string{"hosted-cluster"}, Management: role.InControlPlane(logs.Needs)})
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

// findLog finds the check of the arguments, and reads no output.
func findLog(ctx context.Context, client *cli.Client, selected flagset.Hosted, args []string) (logSource, error) {
	store, side, err := OpenHosted(ctx, client, selected, logsNeeds())
	if err != nil {
		return logSource{}, err
	}
	defer client.Waiting("searching for the check")()
	var question standing.Question
	if len(args) == 1 {
		question.Runs, err = store.records.List(ctx)
	}
	run := foundRun{}
	if err == nil {
		run, err = store.wanted(ctx, wantedRun{args: args[:len(args)-1]}, question)
	}
	if err != nil {
		return logSource{}, err
	}
	check, err := checkOf(run.record, format.BareName(format.CheckName, args[len(args)-1]))
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
