package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/cmd/oc-preflight/logs"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/record"
)

func newLogs(client *client) *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use:   "logs RUN CHECK",
		Short: "Show what a check has printed",
		Long: `Show what the pods of a check have printed, while they are there: during the run, and
after it where that was told to --keep them. Where they are gone, what the record of
the run has of the check is shown instead, and that is said on standard error.

RUN is the ID of the run, or the beginning of it. CHECK is the name of a check as
"checks" and "status" have it, or that of a finding of it.

Exit codes: 0 something was shown, 1 there is nothing or the tool failed, 2 wrong usage,
130 interrupted.`,
		Example: `  oc preflight logs 3b6f2c1e Etcd.Quorum

  # As it is printed, until the check has ended
  oc preflight logs 3b6f2c1e Etcd.Quorum -f`,
		Args: runAndCheck,
		RunE: func(c *cobra.Command, args []string) error {
			if follow {
				return readLogs(c.Context(), client, args, followLogs)
			}
			return readLogs(c.Context(), client, args, copyLogs)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "Go on with what is printed, until the check has ended.")
	return c
}

func runAndCheck(c *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usageError(fmt.Errorf("%q takes the ID of a run and the name of a check, but got %d arguments; see %q", c.CommandPath(), len(args), c.CommandPath()+" --help"))
	}
	return nil
}

// logsNeeds is what "logs" asks of the API server.
func logsNeeds() access.Needs { return recordNeeds().And(logs.Needs()) }

// reader shows what the pods of a Job print, and returns how many there were.
type reader func(context.Context, runStore, *batchv1.Job, logs.Sink) (int, error)

func copyLogs(ctx context.Context, store runStore, job *batchv1.Job, sink logs.Sink) (int, error) {
	return logs.Copy(ctx, store.Kubernetes, job, sink)
}

func followLogs(ctx context.Context, store runStore, job *batchv1.Job, sink logs.Sink) (int, error) {
	return logs.Follow(ctx, store.Kubernetes, job, sink)
}

func readLogs(ctx context.Context, client *client, args []string, read reader) error {
	done := waiting(client.streams.ErrOut, "looking for the check")
	defer done()
	store, err := client.runStore(ctx, logsNeeds())
	if err != nil {
		return err
	}
	run, err := store.records.Get(ctx, args[0])
	if err != nil {
		return err
	}
	check, err := checkOf(run, args[1])
	if err != nil {
		return usageError(err)
	}
	job, err := logs.Find(ctx, store.Kubernetes, run.ID, check)
	done()
	if err != nil {
		return err
	}
	if job != nil {
		pods, err := read(ctx, store, job, logs.To(client.streams.Out, client.streams.ErrOut))
		if err != nil || pods > 0 {
			return err
		}
	}
	return remembered(client, run, check)
}

// checkOf is the check that is named, by itself or by one of its findings.
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
	names := strings.Join(run.Checks[:min(most, len(run.Checks))], ", ")
	if more := len(run.Checks) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return "", fmt.Errorf("run %s has no check %q; it has %s", run.ID, name, names)
}

// remembered shows what the record has of a check whose pods are gone.
func remembered(client *client, run record.Record, check string) error {
	at := slices.IndexFunc(run.Results, func(result record.Result) bool { return result.Check == check })
	switch {
	case at >= 0:
		fmt.Fprintf(client.streams.ErrOut, "the pods of %s are gone, and their logs with them: this is what the record of the run has\n", check)
		return report.Findings(run.Results[at].Findings).WriteText(client.streams.Out)
	case run.Phase == record.Running:
		return fmt.Errorf("%s has no pods, and has not answered: it has not started, or its Job has just been deleted", check)
	}
	return errors.New("the pods of " + check + " are gone, and the run ended before it had answered")
}
