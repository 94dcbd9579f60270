package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/help"
	"github.com/openshift/update-preflight/cmd/oc-preflight/logs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/record"
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
		Args: flagset.RunAndCheck,
		RunE: func(c *cobra.Command, args []string) error {
			if follow {
				return readLogs(c.Context(), client, selected, args, logs.Follow)
			}
			return readLogs(c.Context(), client, selected, args, logs.Copy)
		},
	}
	selected.AddCluster(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "Follow the output until the check has ended.")
	help.Declare(c.Flags(), help.Output, "follow")
	return c
}

// LogsNeeds are the permissions that "logs" needs.
func LogsNeeds() access.Needs { return RecordNeeds().And(logs.Needs()) }

// reader shows the output of the pods of a Job, and returns the number of pods.
type reader func(context.Context, kubernetes.Interface, *batchv1.Job, logs.Sink) (int, error)

func readLogs(ctx context.Context, client *cli.Client, selected flagset.Hosted, args []string, read reader) error {
	store, side, err := OpenHosted(ctx, client, selected, LogsNeeds())
	if err != nil {
		return err
	}
	done := client.Waiting("searching for the check")
	defer done()
	run, err := store.wanted(ctx, wantedRun{args: args[:len(args)-1]})
	if err != nil {
		return err
	}
	check, err := checkOf(run.Record, format.BareName(format.CheckName, args[len(args)-1]))
	if err != nil {
		return exitcode.BadUsage(err)
	}
	for _, p := range place.Of(store.Cluster, side) {
		job, err := logs.Find(ctx, p.Cluster.Kubernetes, p.Objects.Namespace, run.ID, check)
		if err != nil {
			return err
		}
		if job == nil {
			continue
		}
		done()
		pods, err := read(ctx, p.Cluster.Kubernetes, job, logs.To(client.Streams.Out, client.Streams.ErrOut))
		if err != nil || pods > 0 {
			return err
		}
	}
	done()
	return recorded(client, run.Record, check)
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
func recorded(client *cli.Client, run record.Record, check string) error {
	if err := run.Verified(); err != nil {
		return err
	}
	at := slices.IndexFunc(run.Results, func(result record.Result) bool { return result.Check == check })
	switch {
	case at >= 0:
		fmt.Fprintf(client.Streams.ErrOut, "the pods of %s and their logs were deleted; these are its recorded findings:\n", check)
		return format.Write(client.Streams.Out, "text", findingview.Findings(run.Results[at].Findings), terminal.Style(client.Streams.Out))
	case run.Phase == record.Running:
		return fmt.Errorf("%s has neither pods nor a result: it has not started, or its Job was just deleted", check)
	}
	return fmt.Errorf("the pods of %s were deleted, and the run ended before the check reported", check)
}
