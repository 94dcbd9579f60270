package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/fingerprint"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/inventory"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/lease"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/recordstore"
	"github.com/openshift/update-preflight/runner/writeguard"
)

// held is a run that this process holds.
type held struct {
	plan
	records *lease.Runs
	record  *lease.Held
	results results
	reused  reuse
}

// conduct implements run.
func (h held) conduct(ctx, limited context.Context) (report.Report, error) {
	bound, cancel := h.limit(ctx, limited)
	defer cancel()
	return h.bind(bound).conduct(ctx, bound)
}

// limit is limited, or the whole time of a run from now on for one that was taken
// over: waiting for its last holder does not count.
func (h held) limit(ctx, limited context.Context) (context.Context, context.CancelFunc) {
	if !h.record.Resumed() {
		return limited, func() {}
	}
	return context.WithTimeout(ctx, h.options.Timeout)
}

// bind gives the run its ID. The draft, which may have thousands of manifests, is
// not kept.
func (h held) bind(bound context.Context) execution {
	taken := h.record.Record()
	objects := inventory.New(h.cluster.Kubernetes, h.cluster.Metadata)
	e := execution{
		manifests: h.manifests, sources: h.sources, id: taken.ID, started: taken.StartTime, deadline: h.deadline(),
		expected: map[string]bool{}, launcher: launch.New(objects), objects: objects,
		results: h.results, reused: h.reused, records: h.records, record: h.record,
	}
	if until, ok := bound.Deadline(); ok && h.record.Resumed() {
		e.deadline = h.cluster.Now().Add(time.Until(until))
	}
	e.planned = h.draft.Bind(e.launchRun())
	e.readOnly = writeguard.New(objects, e.launcher, e.planned.Run)
	for _, check := range e.planned.Checks {
		e.expected[check.Name] = true
	}
	return e
}

// conduct brings the run to its end, here or where it was taken over.
func (e execution) conduct(ctx, bound context.Context) (report.Report, error) {
	decided, err := e.hold(ctx, bound)
	if !errors.Is(err, recordstore.ErrTakenOver) {
		return decided, err
	}
	e.progress.step("run %s was taken over by another process: waiting for its result", e.id)
	finished, failed := e.records.Follow(bound, e.id, resultsOf(e.progress))
	if failed != nil {
		return report.Report{}, fmt.Errorf("run %s was taken over by another process; run the preflight again: %w", e.id, failed)
	}
	return followed{view: e.view, finished: finished}.conduct(ctx, bound)
}

// hold executes the run while its Lease is renewed, and closes its record.
func (e execution) hold(ctx, bound context.Context) (report.Report, error) {
	holding, release := e.record.Hold(bound)
	defer release()
	collected, failure := e.execute(holding)
	why := context.Cause(holding)
	if errors.Is(why, recordstore.ErrTakenOver) {
		return report.Report{}, fmt.Errorf("run %s: %w", e.id, why)
	}
	if err := flush(ctx, e.record); errors.Is(err, recordstore.ErrTakenOver) {
		return report.Report{}, fmt.Errorf("run %s: %w", e.id, err)
	}
	if failure != nil {
		_, failed := e.remove(ctx)
		return report.Report{}, errors.Join(failure, failed, e.abort(ctx))
	}
	e.view = collected.seen
	decided := e.conclude(ctx, collected)
	if ctx.Err() != nil && collected.phase == report.PhaseInterrupted && e.options.OnInterrupt(e.id) == Detach {
		return e.detach(ctx, decided)
	}
	e.progress.Decided(decided)
	removal, failed := e.remove(ctx)
	decided.Removal = removal
	return decided, errors.Join(failed, e.close(ctx, decided, why))
}

// flush writes the results before the Jobs are deleted that they were read from:
// otherwise a process that continues the run would run them again. An error that
// is not a takeover is met again when the record is closed.
func flush(ctx context.Context, held *lease.Held) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return held.Flush(ctx)
}

// detach leaves the Jobs running, for the next Run of the release.
func (e execution) detach(ctx context.Context, decided report.Report) (report.Report, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	decided.Run.Detached = true
	decided.Findings = attachable(decided.Findings, e.id)
	e.progress.Decided(decided)
	return decided, e.record.Detach(ctx)
}

// attachable replaces the remedy of checks that continue after the run was detached from.
func attachable(findings []finding.Finding, run string) []finding.Finding {
	changed := slices.Clone(findings)
	for i, f := range changed {
		if f.Reason == string(collector.ReasonInterrupted) {
			f.Actions = nil
			changed[i] = f.Remedy("Attach to the run, which continues the check.").Do(finding.Attach(run))
		}
	}
	return changed
}

// abort closes the record of a run without a report.
func (e execution) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return e.record.Finish(ctx, record.Ending{Phase: record.Interrupted})
}

// close writes the end of the run into its record.
func (e execution) close(ctx context.Context, decided report.Report, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	ending, err := endingOf(decided)
	if err != nil {
		return err
	}
	if errors.Is(why, lease.ErrCanceled) {
		ending.Phase = record.Canceled
	}
	ending.Fingerprint = fingerprint.Read(ctx, e.snapshot)
	return e.record.Finish(ctx, ending)
}
