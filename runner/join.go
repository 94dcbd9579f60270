package runner

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/standing"
)

// run is the fifth stage: held by this process, followed while another process
// holds it, or unheld because it has no Jobs.
type run interface {
	// conduct brings the run to its report. limited is ctx with the deadline of the
	// run.
	conduct(ctx, limited context.Context) (report.Report, error)
}

// join finds out who makes the checks. A run of the same release that is in
// progress comes first: it is followed. Otherwise the run is this process's; its
// checks need not run where those of a complete run still hold.
func join(ctx context.Context, p plan) (run, error) {
	if p.options.NoJobs {
		return unheld{plan: p, id: uuid.NewString()}, nil
	}
	records := record.New(p.cluster.Kubernetes)
	begun, finished, err := claim(ctx, p, records)
	if err != nil {
		return nil, err
	}
	if begun == nil {
		return followed{view: p.view, finished: finished}, nil
	}
	h := held{plan: p, records: records, record: begun, results: settledResults(begun.Record())}
	p.progress.Started(begun.Record().ID)
	if err := begun.Record().Verified(); err != nil {
		p.progress.step("%v; no recorded results are used", err)
	}
	if begun.Resumed() {
		p.progress.step("continuing run %s: %d of %d checks have reported", begun.Record().ID, len(h.results), len(begun.Record().Checks))
		return h, nil
	}
	if earlier, ok := reusable(ctx, p, records); ok {
		h.results, h.reused = earlier.results, earlier
	}
	return h, nil
}

// claim makes this process the holder of the run, or waits for the result of
// another holder: one of the two is returned.
func claim(ctx context.Context, p plan, records *record.Store) (*record.Held, record.Record, error) {
	intent, holder := p.intent(uuid.NewString()), holder()
	for {
		begun, err := records.Begin(ctx, intent, holder)
		busy, isBusy := errors.AsType[*record.BusyError](err)
		if !isBusy {
			return begun, record.Record{}, notClaimed(err)
		}
		p.progress.Started(busy.ID)
		p.progress.step("run %s of this release is held by %s: waiting for its result", busy.ID, busy.Holder)
		finished, err := records.Follow(ctx, busy.ID, resultsOf(p.progress))
		switch {
		case err == nil && finished.Verified() != nil:
			p.progress.step("%v; the preflight is run again", finished.Verified())
			continue
		case !errors.Is(err, record.ErrAbandoned):
			return nil, finished, err
		}
		p.progress.step("run %s was abandoned by %s: taking it over", busy.ID, busy.Holder)
	}
}

// notClaimed turns the error for a run in progress with another selection into bad input.
func notClaimed(err error) error {
	if other, ok := errors.AsType[*record.SelectionError](err); ok {
		return &BadInputError{Err: other}
	}
	return err
}

// holder names this process among all that may hold a run.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return host + "_" + uuid.NewString()
}

// resultsOf reports the results of a record, each once.
func resultsOf(progress *serial) func(record.Record) {
	reported := map[string]bool{}
	return func(now record.Record) {
		for _, result := range now.Results {
			if !reported[result.Check] {
				reported[result.Check] = true
				progress.Reported(result.Findings)
			}
		}
	}
}

// results are the findings of checks that have reported, by check.
type results map[string][]finding.Finding

// settledResults are those of a record that need not be collected again. What was
// inconclusive may be known by now.
func settledResults(taken record.Record) results {
	settled := results{}
	for _, result := range taken.Results {
		if isSettled(result.Findings) {
			settled[result.Check] = result.Findings
		}
	}
	return settled
}

func isSettled(findings []finding.Finding) bool {
	return len(findings) > 0 && !slices.ContainsFunc(findings, finding.Finding.Inconclusive)
}

// reuse is a complete run whose results are reused.
type reuse struct {
	id      string
	results results
	// until is when the results end to hold.
	until time.Time
}

// reusable finds the last complete run of the release, if its record is authentic and
// all its checks passed and still hold. Everything that may have been fixed since is checked again.
func reusable(ctx context.Context, p plan, records *record.Store) (reuse, bool) {
	if p.options.Rerun || len(p.draft.Checks) == 0 {
		return reuse{}, false
	}
	last, found, err := records.Latest(ctx, p.intent(""))
	if err != nil || !found {
		return reuse{}, false
	}
	if err := last.Verified(); err != nil {
		p.progress.step("%v; its results are not used", err)
		return reuse{}, false
	}
	if !covers(last, p) {
		return reuse{}, false
	}
	stored, err := standing.Stored(last)
	if err != nil {
		return reuse{}, false
	}
	if slices.ContainsFunc(stored.Findings, func(f finding.Finding) bool { return f.Reason == string(launch.ReasonGuardChanged) }) {
		p.progress.step("the checks of run %s are run again: its read-only guard was changed", last.ID)
		return reuse{}, false
	}
	if causes := standing.Ended(ctx, last, stored, standing.Present{Cluster: p.snapshot, Now: p.cluster.Now()}); len(causes) > 0 {
		p.progress.step("the results of run %s of %s no longer hold: %s", last.ID, stored.Run.CompletionTime, causes[0])
		return reuse{}, false
	}
	if err := records.DeleteStaleLease(ctx, last); err != nil {
		p.progress.step("%v", err)
	}
	until, _ := standing.ValidUntil(stored) // it is known, since it has not passed
	p.progress.step("the checks of the release passed in run %s of %s and still hold; they are not run again", last.ID, stored.Run.CompletionTime)
	return reuse{id: cmp.Or(stored.Run.ChecksFrom, last.ID), results: settledResults(last), until: until}, true
}

// covers reports whether a run covered the same checks, and none of them failed.
func covers(last record.Record, p plan) bool {
	if last.ToolVersion != p.options.ToolVersion {
		return false
	}
	settled := settledResults(last)
	for _, check := range p.draft.Checks {
		findings, ok := settled[check.Name]
		if !ok || slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Outcome == preflight.Fail }) {
			return false
		}
	}
	return true
}

// followed is a run that another process has brought to its end.
type followed struct {
	view
	finished record.Record
}

// conduct implements run: the findings of the other process are judged by what
// this user accepts.
func (f followed) conduct(context.Context, context.Context) (report.Report, error) {
	if err := f.finished.Verified(); err != nil {
		return report.Report{}, err
	}
	stored, err := standing.Stored(f.finished)
	if err != nil {
		return report.Report{}, err
	}
	if len(f.finished.Report) > 0 {
		stored = f.refold(stored)
	}
	for _, result := range f.finished.Results {
		f.shared.put(result.Check, f.finished.Target.Version, result.Findings)
	}
	f.progress.Decided(stored)
	return stored, nil
}
