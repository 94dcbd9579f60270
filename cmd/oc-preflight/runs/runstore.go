// Package runs answers: what can be done with runs that are recorded?
//
// Each file is one command; [OpenRunStore] has the records that they read.
package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/report"
	changes "github.com/openshift/update-preflight/collector/report/diff"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// errNoRun is returned for a cluster without records.
var errNoRun = exitcode.Remedied(errors.New("no run is recorded in this cluster"), "Start one",
	finding.Read("oc preflight run --to-latest"))

// maxNamed bounds the runs that an error names.
const maxNamed = 10

// RecordNeeds are the permissions to read records, without following a run.
func RecordNeeds() access.Needs {
	needs := recordstore.ReadNeeds()
	needs.Required = slices.DeleteFunc(needs.Required, func(request access.Request) bool { return request.Verb == "watch" })
	return needs
}

type runStore struct {
	*cluster.Cluster

	records *recordstore.Store
	// archived is true for the records of an archive, in which nothing can be recorded.
	archived bool
}

// OpenRunStore connects to the cluster, for commands with these permissions.
func OpenRunStore(ctx context.Context, c *cli.Client, needs access.Needs) (runStore, error) {
	reached, err := c.Open(ctx)
	if err != nil {
		return runStore{}, err
	}
	return openStore(ctx, c, reached, needs)
}

// OpenHosted is OpenRunStore of the cluster that the flags select, with the estate that it belongs to.
func OpenHosted(ctx context.Context, c *cli.Client, selected flagset.Hosted, needs access.Needs) (runStore, hosted.Estate, error) {
	reached, estate, err := selected.Open(ctx, c)
	if err != nil {
		return runStore{}, hosted.Estate{}, err
	}
	if err := estate.GuestError(); err != nil {
		return runStore{}, hosted.Estate{}, fmt.Errorf("the records of the runs are in the guest: %w", err)
	}
	store, err := openStore(ctx, c, reached, needs)
	return store, estate, err
}

// confirm returns an error if the estate is of another hosted cluster than the recorded one of the run.
func (s runStore) confirm(ctx context.Context, estate hosted.Estate, id string) error {
	run, err := s.records.Get(ctx, id)
	if err != nil {
		return nil //nolint:nilerr // the caller reports what has no record
	}
	covered, err := selection.Recorded(run)
	if err != nil {
		return nil //nolint:nilerr // a record that cannot be read names no hosted cluster
	}
	return covered.Confirm(estate, run)
}

func openStore(ctx context.Context, c *cli.Client, reached *cluster.Cluster, needs access.Needs) (runStore, error) {
	if err := c.Review(ctx, reached, needs); err != nil {
		return runStore{}, err
	}
	return runStore{Cluster: reached, records: recordstore.New(reached.Kubernetes), archived: c.Archived()}, nil
}

// question returns the checks that a stored verdict must cover: those that the controller of the cluster runs, or without
// a controller, all.
// monitoring identifies where alerts are read from by this command.
func (s runStore) question(ctx context.Context, runs []record.Record, monitoring string) standing.Question {
	asked, err := selection.ParseAsked(published.Asked(ctx, s.Kubernetes))
	if err != nil || asked.By == "" {
		asked = selection.Asked{By: "this program", ToolVersion: program.Version(), Covers: selection.Coverage{Monitoring: monitoring}}
	}
	return standing.Question{Present: standing.Present{Cluster: snapshot.Of(s.Cluster), Now: s.Now()}, Asked: asked, Runs: runs}
}

// wantedRun selects the run to show: the run of an argument, the newest run of a target, or
// without both the one in progress or the newest one.
type wantedRun struct {
	id     string
	target runner.Target
}

type foundRun struct {
	record record.Record
	// alsoRunning are other runs in progress.
	alsoRunning []record.Record
	// others are the newest verdicts of other targets with another decision.
	others []record.Record
}

func (s runStore) wanted(ctx context.Context, wanted wantedRun, question standing.Question) (foundRun, error) {
	if wanted.id != "" {
		run, err := s.records.Get(ctx, RunID(wanted.id))
		return foundRun{record: run}, err
	}
	all := question.Runs
	named := wanted.target.Version != "" || wanted.target.Image != ""
	matching := slices.DeleteFunc(slices.Clone(all), func(run record.Record) bool { return named && !isOf(run, wanted.target) })
	switch {
	case len(matching) == 0 && s.archived:
		return foundRun{}, errors.New("the archive has no such run: its cluster had recorded none when it was gathered")
	case len(matching) == 0 && named:
		return foundRun{}, exitcode.Remedied(fmt.Errorf("no run of %s is recorded in this cluster", targetName(wanted.target)), "Start one",
			finding.Read("oc preflight run").Adding(
				flagset.TargetFlag(report.Target{Version: wanted.target.Version, Image: wanted.target.Image})...))
	case len(matching) == 0:
		return foundRun{}, errNoRun
	}
	running := slices.DeleteFunc(slices.Clone(matching), func(run record.Record) bool { return run.Phase != record.Running })
	chosen := append(running, matching...)[0]
	if counts, exists := question.Newest(chosen.Target.Digest()); len(running) == 0 && exists && chosen.Phase == record.Complete &&
		!chosen.Provisional {
		chosen = counts
	}
	found := foundRun{}
	if len(running) > 1 {
		found.alsoRunning = running[1:]
	}
	if !named {
		found.others = differing(chosen, all)
	}
	var err error
	found.record, err = s.records.Get(ctx, chosen.ID)
	return found, err
}

// InProgress returns the run with that ID or prefix; for an empty one the run in progress, of which there
// must be one.
func (s runStore) InProgress(ctx context.Context, id string) (record.Record, error) {
	if id != "" {
		return s.records.Get(ctx, RunID(id))
	}
	all, err := s.records.List(ctx)
	if err != nil {
		return record.Record{}, err
	}
	running := slices.DeleteFunc(all, func(run record.Record) bool { return run.Phase != record.Running })
	switch len(running) {
	case 0:
		return record.Record{}, exitcode.BadUsage(exitcode.Remedied(errors.New("no run is in progress"), "Show the newest one",
			finding.Read("oc preflight status")))
	case 1:
		return s.records.Get(ctx, running[0].ID)
	}
	var names []string
	for _, run := range running {
		names = append(names, short(run))
	}
	return record.Record{}, exitcode.BadUsage(fmt.Errorf("%s are in progress; name one: %s", words.Count(len(running), "run"),
		words.List(names, maxNamed)))
}

// isOf reports whether a run is one of an update of the cluster to a target.
func isOf(run record.Record, target runner.Target) bool {
	if run.Provisional {
		return false
	}
	digest := target.Image[strings.LastIndex(target.Image, "@")+1:]
	return target.Version != "" && run.Target.Version == target.Version ||
		target.Image != "" && (run.Target.Image == target.Image || run.Target.Digest() == digest)
}

func targetName(target runner.Target) string { return cmp.Or(target.Version, target.Image) }

// differing are the newest verdicts of targets other than the target of the run, if they have
// another decision and have not ended.
func differing(run record.Record, all []record.Record) []record.Record {
	seen := map[string]bool{run.Target.Digest(): true}
	var others []record.Record
	for _, other := range all {
		if other.Phase != record.Complete || other.Provisional || other.Verified() != nil || seen[other.Target.Digest()] {
			continue
		}
		seen[other.Target.Digest()] = true
		if other.Ended == "" && other.Decision != run.Decision {
			others = append(others, other)
		}
	}
	return others
}

var reasonSeveralTargets = finding.NewReason("SeveralTargets", finding.Explanation{
	Meaning: "Several targets have verdicts, and the verdicts differ; without a target, \"status\" does not choose one.",
	Cause:   "Runs of several targets are recorded, and the command does not name one.",
	Remedy:  "Name the target.",
	Command: "oc preflight status --to VERSION",
})

// ambiguous is the report of a run that was not asked for by its target: it is not Ready
// where another target has another verdict.
func (r foundRun) ambiguous(stored report.Report) report.Report {
	if len(r.others) == 0 || stored.Verdict.Decision != verdict.Ready {
		return stored
	}
	var verdicts []string
	for _, other := range r.others {
		verdicts = append(verdicts, fmt.Sprintf("%s is %s", words.Line(other.Target.Version, terminal.MaxLine), other.Decision))
	}
	several := finding.Unknown(reasonSeveralTargets, "this is the verdict on %s, and others differ: %s", stored.Target.Version,
		words.List(verdicts, 5)).
		Named("Target").From(finding.SourceGate).Do(finding.Read("oc preflight status").Adding(flagset.TargetFlag(stored.Target)...))
	stored.Verdict.Decision = verdict.Undecided
	stored.Verdict.Undecided = append(stored.Verdict.Undecided, several.Name)
	several.Effect = several.EffectOf()
	stored.Findings = append([]finding.Finding{several}, stored.Findings...)
	return stored
}

// RunID is the ID of a run in an argument: as it is, or as "-o name" writes it.
func RunID(argument string) string { return format.BareName(format.RunName, argument) }

// short names a run in a sentence.
func short(run record.Record) string {
	return fmt.Sprintf("%s (to %s)", run.ID, words.Line(run.Target.Version, terminal.MaxLine))
}

// DiffOptions are the arguments and flags of "diff".
type DiffOptions struct {
	// Runs are the IDs of at most two runs, prefixes of them, or paths of reports.
	Runs []string

	Output flagset.Output
}

// NewDiff returns the command "diff", which compares the findings of two runs.
func NewDiff(client *cli.Client) *cobra.Command {
	var flags DiffOptions
	c := &cobra.Command{
		Use:   "diff [RUN|FILE [RUN|FILE]]",
		Short: "Show what is new, fixed or changed since a run",
		Long: `Compare the findings of two runs: list findings that are new in the second run, that were fixed since the first, and that changed. The second RUN defaults to the newest run that has ended; without arguments, the two newest runs that have ended are compared. Names of Jobs, times and IDs, which differ in every run, are ignored. FILE is a report in JSON, such as the report of an archive; if the runs are from two clusters, the output says so. For two files no cluster is needed.

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
		RunE: func(c *cobra.Command, args []string) error {
			flags.Runs = args
			return flagset.Execute(c, flags, func() error { return diff(c, client, flags) })
		},
	}
	flags.Output.Add(c, changes.Changes{})
	client.Roles.Declare(c, role.Role{Needs: role.Always(RecordNeeds)})
	return c
}

func diff(c *cobra.Command, client *cli.Client, flags DiffOptions) error {
	out, err := flags.Output.Open(client.Streams.Out, changes.Changes{})
	if err != nil {
		return err
	}
	defer out.Close()
	done := client.Waiting("reading the reports")
	defer done()
	reports, err := compared(c.Context(), client, flags.Runs)
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
		return report.Report{}, exitcode.Remedied(fmt.Errorf("run %s is in progress and cannot be compared", run.ID), "Show it",
			finding.Read("oc preflight status %s", run.ID))
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
			err = errors.New("its run is in progress and cannot be compared")
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
		return nil, exitcode.Remedied(fmt.Errorf("%s ended, and %d are compared", words.Count(len(all), "run"), number), "Show them",
			finding.Read("oc preflight history"))
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
