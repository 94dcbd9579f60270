package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	changes "github.com/openshift/update-preflight/collector/report/diff"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/standing"
)

// NewDiff makes "diff", which compares the findings of two runs.
func NewDiff(client *cli.Client) *cobra.Command {
	var output flagset.Output
	c := &cobra.Command{
		Use:   "diff [RUN|FILE [RUN|FILE]]",
		Short: "Show what is new, fixed or changed since a run",
		Long: `Compare the findings of two runs: those that are new in the second run, those of the first that were fixed, and those that changed. Without the second RUN, it is the newest run that has ended; without both, the two newest that have ended are compared. Names of Jobs, times and IDs, which differ in every run, are not compared. A FILE has the report of a run in JSON, such as one of an archive; runs of two clusters are reported as such. For two files no cluster is needed.

Exit codes: 0 the runs were compared, whatever the differences, 1 the tool failed, 2 wrong usage.`,
		Example: `  # What did the last run change?
  oc preflight diff

  # What has changed since that run?
  oc preflight diff 3b6f2c1e

  # What has changed between two archives?
  oc preflight run --to 4.19.3 --archive before.tar.gz -o json > before.json
  oc preflight run --to 4.19.3 --archive after.tar.gz -o json > after.json
  oc preflight diff before.json after.json

  # Count the new findings, for a script
  oc preflight diff 3b6f2c1e 8a525a4e -o json | jq '.new | length'`,
		Args: flagset.Arguments(0, 2, "the IDs of two runs at most"),
		RunE: func(c *cobra.Command, args []string) error { return diff(c, client, args, output) },
	}
	output.Add(c, changes.Changes{})
	client.Roles.Declare(c, role.Role{Needs: role.Always(RecordNeeds)})
	return c
}

func diff(c *cobra.Command, client *cli.Client, args []string, flags flagset.Output) error {
	out, err := flags.Open(client.Streams.Out, changes.Changes{})
	if err != nil {
		return err
	}
	defer out.Close()
	done := client.Waiting("reading the reports")
	defer done()
	reports, err := compared(c.Context(), client, args)
	done()
	if err != nil {
		return err
	}
	return out.Write(changes.Compare(reports[0], reports[1]))
}

// ended is the report of a run that has ended: findings that a run in progress has
// not reported yet would count as fixed.
func (s runStore) ended(ctx context.Context, id string) (report.Report, error) {
	run, err := s.records.Get(ctx, RunID(id))
	if err != nil {
		return report.Report{}, err
	}
	if run.Phase == record.Running {
		return report.Report{}, exitcode.Remedied(fmt.Errorf("run %s is in progress and cannot be compared", run.ID), "Show it", finding.Read("oc preflight status %s", run.ID))
	}
	if err := run.Verified(); err != nil {
		return report.Report{}, err
	}
	return standing.Stored(run)
}

// compared are the reports of two runs: those that are named, then the newest that have ended,
// the oldest first. For two files no cluster is needed.
func compared(ctx context.Context, client *cli.Client, args []string) ([]report.Report, error) {
	records := sync.OnceValues(func() (runStore, error) { return OpenRunStore(ctx, client, RecordNeeds()) })
	var reports []report.Report
	for _, arg := range args {
		named, err := reportOf(ctx, client, arg, records)
		if err != nil {
			return nil, err
		}
		reports = append(reports, named)
	}
	if len(reports) == comparedRuns {
		return reports, nil
	}
	store, err := records()
	if err != nil {
		return nil, err
	}
	newest, err := store.newestEnded(ctx, comparedRuns-len(args))
	return append(reports, newest...), err
}

// comparedRuns is how many runs are compared.
const comparedRuns = 2

// reportOf is the report in a file, or of a run.
func reportOf(ctx context.Context, client *cli.Client, arg string, records func() (runStore, error)) (report.Report, error) {
	if info, err := os.Stat(arg); err == nil && !info.IsDir() || strings.HasSuffix(arg, ".json") {
		stored, err := readDocument(ctx, client.Streams.In, arg)
		if err != nil {
			return report.Report{}, exitcode.BadUsage(err)
		}
		read, err := stored.Report()
		if err == nil && read.Run.Phase == report.PhaseRunning {
			err = errors.New("it is of a run in progress, which cannot be compared")
		}
		if err != nil {
			return report.Report{}, exitcode.BadUsage(fmt.Errorf("%s: %w", arg, err))
		}
		return read, nil
	}
	store, err := records()
	if err != nil {
		return report.Report{}, err
	}
	return store.ended(ctx, arg)
}

// newestEnded are the reports of the newest runs that have ended, the oldest first; an error
// where there are fewer.
func (s runStore) newestEnded(ctx context.Context, number int) ([]report.Report, error) {
	all, err := s.records.List(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(run record.Record) bool { return run.Phase == record.Running })
	if len(all) < number {
		return nil, exitcode.Remedied(fmt.Errorf("%s ended, and %d are compared", words.Count(len(all), "run"), number), "Show them", finding.Read("oc preflight history"))
	}
	var reports []report.Report
	for _, each := range slices.Backward(all[:number]) {
		ended, err := s.ended(ctx, each.ID)
		if err != nil {
			return nil, err
		}
		reports = append(reports, ended)
	}
	return reports, nil
}
