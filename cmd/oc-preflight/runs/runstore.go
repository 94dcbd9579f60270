// Package runs answers: what can be done with runs that are recorded?
//
// Each file is one command; [OpenRunStore] has the records that they read.
package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/report"
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
var errNoRun = exitcode.Remedied(errors.New("no run is recorded in this cluster"), "Start one", finding.Read("oc preflight run --to-latest"))

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

// confirm is an error for an estate of another hosted cluster than that of the run, if it is recorded.
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

// question is what a stored verdict is asked for: what the controller of the cluster asks, or without one, everything.
// monitoring identifies where alerts are read from by this command.
func (s runStore) question(ctx context.Context, runs []record.Record, monitoring string) standing.Question {
	asked, err := selection.ParseAsked(published.Asked(ctx, s.Kubernetes))
	if err != nil || asked.By == "" {
		asked = selection.Asked{By: "this program", ToolVersion: program.Version(), Covers: selection.Coverage{Monitoring: monitoring}}
	}
	return standing.Question{Present: standing.Present{Cluster: snapshot.Of(s.Cluster), Now: s.Now()}, Asked: asked, Runs: runs}
}

// wantedRun is which run to show: that of an argument, the newest one of a target, or
// without both the one in progress or the newest one.
type wantedRun struct {
	args   []string
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
	if len(wanted.args) > 0 {
		run, err := s.records.Get(ctx, RunID(wanted.args[0]))
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
			finding.Read("oc preflight run").Adding(flagset.TargetFlag(report.Target{Version: wanted.target.Version, Image: wanted.target.Image})...))
	case len(matching) == 0:
		return foundRun{}, errNoRun
	}
	running := slices.DeleteFunc(slices.Clone(matching), func(run record.Record) bool { return run.Phase != record.Running })
	chosen := append(running, matching...)[0]
	if counts, exists := question.Newest(chosen.Target.Digest()); len(running) == 0 && exists && chosen.Phase == record.Complete && !chosen.Provisional {
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

// InProgress is the run of the argument, or without one the run in progress, of which there
// must be one.
func (s runStore) InProgress(ctx context.Context, args []string) (record.Record, error) {
	if len(args) > 0 {
		return s.records.Get(ctx, RunID(args[0]))
	}
	all, err := s.records.List(ctx)
	if err != nil {
		return record.Record{}, err
	}
	running := slices.DeleteFunc(all, func(run record.Record) bool { return run.Phase != record.Running })
	switch len(running) {
	case 0:
		return record.Record{}, exitcode.BadUsage(exitcode.Remedied(errors.New("no run is in progress"), "Show the newest one", finding.Read("oc preflight status")))
	case 1:
		return s.records.Get(ctx, running[0].ID)
	}
	var names []string
	for _, run := range running {
		names = append(names, short(run))
	}
	return record.Record{}, exitcode.BadUsage(fmt.Errorf("%s are in progress; name one: %s", words.Count(len(running), "run"), words.List(names, maxNamed)))
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

// differing are the newest verdicts of targets other than that of the run, if they have
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
	Meaning: "Reported by \"status\" without a target where the verdicts of several targets differ.",
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
	several := finding.Unknown(reasonSeveralTargets, "this is the verdict on %s, and others differ: %s", stored.Target.Version, words.List(verdicts, 5)).
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
