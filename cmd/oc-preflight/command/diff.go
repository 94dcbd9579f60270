package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	changes "github.com/openshift/update-preflight/collector/diff"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/standing"
)

func newDiff(client *client) *cobra.Command {
	var output outputFlags
	c := &cobra.Command{
		Use:   "diff RUN [RUN]",
		Short: "Show what is new, fixed or changed since a run",
		Long: `Compare the findings of two runs: those that are new in the second run, those of the
first that were fixed, and those that changed. Without the second RUN, it is the newest
run that has ended. Names of Jobs, times and IDs, which differ in every run, are not
compared.

Exit codes: 0 the runs were compared, whatever the differences, 1 the tool failed,
2 wrong usage.`,
		Example: `  # What has changed since that run?
  oc preflight diff 3b6f2c1e

  # Count the new findings, for a script
  oc preflight diff 3b6f2c1e 8a525a4e -o json | jq '.new | length'`,
		Args: oneOrTwoRuns,
		RunE: func(c *cobra.Command, args []string) error { return diff(c, client, args, output) },
	}
	output.add(c, changes.Changes{})
	return c
}

func diff(c *cobra.Command, client *client, args []string, flags outputFlags) error {
	out, err := flags.open(client.streams.Out, changes.Changes{})
	if err != nil {
		return err
	}
	defer out.close()
	store, err := client.runStore(c.Context(), recordNeeds())
	if err != nil {
		return err
	}
	done := client.waiting("reading the records")
	defer done()
	before, err := store.ended(c.Context(), args[0])
	if err != nil {
		return err
	}
	after, err := store.second(c.Context(), args)
	done()
	if err != nil {
		return err
	}
	return out.write(changes.Compare(before, after))
}

// ended is the report of a run that has ended: findings that a run in progress has
// not reported yet would count as fixed.
func (s runStore) ended(ctx context.Context, id string) (report.Report, error) {
	run, err := s.records.Get(ctx, runID(id))
	if err != nil {
		return report.Report{}, err
	}
	if run.Phase == record.Running {
		return report.Report{}, fmt.Errorf("run %s is in progress and cannot be compared; show it with: oc preflight status %[1]s", run.ID)
	}
	if err := run.Verified(); err != nil {
		return report.Report{}, err
	}
	return standing.Stored(run)
}

// second is the run to compare with: the one that is named, or the newest that has
// ended.
func (s runStore) second(ctx context.Context, args []string) (report.Report, error) {
	if len(args) == 2 {
		return s.ended(ctx, args[1])
	}
	all, err := s.records.List(ctx)
	if err != nil {
		return report.Report{}, err
	}
	for _, each := range all {
		if each.Phase != record.Running {
			return s.ended(ctx, each.ID)
		}
	}
	return report.Report{}, errNoRun
}
