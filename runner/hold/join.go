// Package hold answers: which process runs the checks of a run?
//
// [Join] determines it: either this process holds the run, or another process does and Join waits for its result.
// [Reusable] finds an earlier run whose results are still valid, and [Cancel] ends a run early.
package hold

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
)

// Wanted is the run that a process wants.
type Wanted struct {
	Intent record.Intent
	// Rerun is true if all checks must run again.
	Rerun bool
}

// Outdated is why the results so far of a run that another process began cannot be used for the wanted run; empty if
// they can.
func (w Wanted) Outdated(taken record.Record, now time.Time) string {
	if w.Rerun {
		return "all checks must run again"
	}
	if difference := taken.Difference(w.Intent); difference != "" {
		return difference
	}
	if now.Sub(taken.StartTime) >= fingerprint.MaxAge {
		return "it began at " + words.Time(taken.StartTime)
	}
	return ""
}

// unsuitable is why the verdict of a run that another process has ended is none of the wanted run; empty where
// it is.
func (w Wanted) unsuitable(finished record.Record) string {
	if err := finished.Verified(); err != nil {
		return err.Error()
	}
	if difference := finished.Difference(w.Intent); difference != "" {
		return difference
	}
	if stored, err := standing.Stored(finished); w.Rerun && err == nil && stored.Run.ChecksFrom != "" {
		return "it has reused results of an earlier run"
	}
	return ""
}

// Join makes this process the holder of the run, or waits for the result of another holder, which may belong to another
// run of the same release: it returns one of the two. It returns an *input.Error if a run in progress has another
// selection.
func Join(ctx context.Context, runs *lease.Runs, wanted Wanted, observer *progress.Serial) (*lease.Held, record.Record, error) {
	holder := holder()
	for {
		begun, err := runs.Begin(ctx, wanted.Intent, holder)
		busy, isBusy := errors.AsType[*lease.BusyError](err)
		if !isBusy {
			return begun, record.Record{}, notClaimed(err)
		}
		observer.Started(busy.ID)
		observer.Stepf("run %s of this release is held by %s: waiting for its result", busy.ID, busy.Holder)
		finished, err := runs.Follow(ctx, busy.ID, Reporting(observer))
		cause := ""
		if err == nil {
			cause = wanted.unsuitable(finished)
		}
		switch {
		case cause != "":
			observer.Stepf("the result of run %s is not used, and the preflight runs again: %s", busy.ID, cause)
			continue
		case !errors.Is(err, lease.ErrAbandoned):
			return nil, finished, err
		}
		observer.Stepf("run %s was abandoned by %s: taking it over", busy.ID, busy.Holder)
	}
}

// notClaimed turns the error for a run in progress with another selection into bad input.
func notClaimed(err error) error {
	if other, ok := errors.AsType[*record.SelectionError](err); ok {
		return &input.Error{Err: other}
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

// Reporting reports the results of a record, each once.
func Reporting(observer *progress.Serial) func(record.Record) {
	reported := map[string]bool{}
	return func(now record.Record) {
		for _, result := range now.Results {
			if !reported[result.Check] {
				reported[result.Check] = true
				observer.Reported(result.Findings)
			}
		}
	}
}

// Results are the findings of checks that have reported, by check.
type Results map[string][]finding.Finding

// Settled are the results of a record that need not be collected again. What was
// inconclusive may be known by now.
func Settled(taken record.Record) Results {
	settled := Results{}
	for _, result := range taken.Results {
		if IsSettled(result.Findings) {
			settled[result.Check] = result.Findings
		}
	}
	return settled
}

// IsSettled reports whether a check has a result that is not inconclusive.
func IsSettled(findings []finding.Finding) bool {
	return len(findings) > 0 && !slices.ContainsFunc(findings, finding.Finding.Inconclusive)
}

// Cancel ends a run early, and returns its record when it has ended. It requests the end from the process that holds
// the run. Without such a process, it takes the run over, deletes its objects in the cluster, and closes its record. id
// may be a prefix of an ID. For a run that has ended, it returns a *lease.NotRunningError. The first of places is the
// cluster with the record. ctx bounds the waiting.
func Cancel(ctx context.Context, places []place.Place, id string, observer *progress.Serial) (record.Record, error) {
	client := places[0].Cluster.Kubernetes
	c := cancellation{places: places, records: recordstore.New(client), runs: lease.New(client), progress: observer}
	run, err := c.records.Get(ctx, id)
	if err != nil {
		return record.Record{}, err
	}
	if run.Phase != record.Running {
		return run, &lease.NotRunningError{ID: run.ID, Phase: run.Phase}
	}
	for {
		if err := c.runs.Cancel(ctx, run.ID); err != nil {
			return run, err
		}
		c.progress.Stepf("cancellation of run %s was requested: waiting for it to end", run.ID)
		ended, err := c.runs.Follow(ctx, run.ID, c.followed)
		if !errors.Is(err, lease.ErrAbandoned) {
			return ended, err
		}
		c.progress.Stepf("run %s was abandoned: ending it here", run.ID)
		ended, err = c.end(ctx, run)
		if _, busy := errors.AsType[*lease.BusyError](err); !busy {
			return ended, err
		}
	}
}

// CancelNeeds are the permissions of Cancel.
func CancelNeeds() access.Needs { return recordstore.Needs().And(cleanup.Needs()) }

// cancellation is the end of one run in progress.
type cancellation struct {
	places   []place.Place
	records  *recordstore.Store
	runs     *lease.Runs
	progress *progress.Serial
}

// followed reports how far the run is while its holder ends it.
func (c cancellation) followed(now record.Record) {
	if now.Phase == record.Running {
		c.progress.Stepf("run %s continues: %d of %s have reported", now.ID, len(now.Results), words.Count(len(now.Checks), "check"))
	}
}

// end does what the holder of the run did not do.
func (c cancellation) end(ctx context.Context, run record.Record) (record.Record, error) {
	held, err := c.runs.Begin(ctx, run.Intent, holder())
	if err != nil {
		return c.endedMeanwhile(ctx, run, err)
	}
	removal, err := End(ctx, c.places, held, record.Canceled)
	if err != nil {
		return run, err
	}
	c.progress.Stepf("deleted %s of run %s", words.Count(len(removal.Deleted), "object"), run.ID)
	return c.records.Get(ctx, run.ID)
}

// endedMeanwhile is for a run that could not be taken over: its holder may have ended it
// at the last moment.
func (c cancellation) endedMeanwhile(ctx context.Context, run record.Record, cause error) (record.Record, error) {
	now, err := c.records.Get(ctx, run.ID)
	if err == nil && now.Phase != record.Running {
		return now, nil
	}
	return run, cause
}

// End ends a run that this process holds in that phase, with the results so far: it deletes the objects of the
// run, and closes its record. Where objects cannot be deleted, the run stays in progress, without a holder.
func End(ctx context.Context, places []place.Place, held *lease.Held, phase record.Phase) (place.Removal, error) {
	_, release := held.Hold(ctx) // its context ends at once where the run is canceled
	defer release()
	removal, err := place.Cleanup(ctx, places, held.Record().ID)
	if err != nil {
		return removal, errors.Join(err, held.Detach(ctx))
	}
	run := held.Record()
	run.Phase, run.CompletionTime = phase, held.Now()
	partial := standing.Partial(run)
	partial.Removal = RemovalOf(removal)
	ending, err := EndingOf(partial)
	if err != nil {
		return removal, err
	}
	return removal, held.Finish(ctx, ending)
}

// Timeout bounds the last writes about a run.
const Timeout = 30 * time.Second

// EndingOf returns the part of a report that is recorded.
func EndingOf(decided report.Report) (record.Ending, error) {
	text, err := json.Marshal(decided)
	if err != nil {
		return record.Ending{}, fmt.Errorf("the report cannot be recorded: %w", err)
	}
	taken, _ := time.Parse(time.RFC3339, decided.Run.Baseline) // empty for none
	return record.Ending{Phase: record.Phase(decided.Run.Phase), Verdict: decided.Verdict, Report: text, Baseline: taken}, nil
}

// RemovalOf returns the part of a report about a cleanup.
func RemovalOf(done place.Removal) *report.Removal {
	return &report.Removal{
		Deleted: append([]report.Object{}, done.Deleted...), Left: append([]report.Object{}, done.Left...),
		Foreign: done.Foreign,
	}
}

// RemovalError is the error about objects of a run that could not be deleted.
type RemovalError struct {
	// Run is its ID, Left counts its objects that are still in the cluster.
	Run  string
	Left int
	Err  error
}

// Error implements error.
func (e *RemovalError) Error() string {
	return fmt.Sprintf("%s of run %s left in the cluster: %v", words.Count(e.Left, "object"), e.Run, e.Err)
}

// Unwrap returns the cause.
func (e *RemovalError) Unwrap() error { return e.Err }

// Reuse is a complete run whose results are reused; the zero value is none.
type Reuse struct {
	ID      string
	Results Results
	// Until is when the reused results expire; zero if this run reuses no results.
	Until time.Time
}

// Reusable finds the last complete run of the intent, if its record is authentic and
// all its checks passed and still hold. Everything that may have been fixed since is checked again.
func Reusable(ctx context.Context, client kubernetes.Interface, intent record.Intent, present standing.Present,
	observer *progress.Serial,
) (Reuse, bool) {
	if len(intent.Checks) == 0 {
		return Reuse{}, false
	}
	last, found, err := recordstore.New(client).Latest(ctx, intent)
	if err != nil || !found {
		return Reuse{}, false
	}
	if err := last.Verified(); err != nil {
		observer.Stepf("%v; its results are not used", err)
		return Reuse{}, false
	}
	if !covers(last, intent) {
		return Reuse{}, false
	}
	stored, err := standing.Stored(last)
	if err != nil {
		return Reuse{}, false
	}
	if slices.ContainsFunc(stored.Findings, func(f finding.Finding) bool { return f.Reason == writeguard.ReasonGuardChanged.String() }) {
		observer.Stepf("the checks of run %s run again: its read-only guard was changed", last.ID)
		return Reuse{}, false
	}
	if causes := standing.Changed(ctx, last, stored, present); len(causes) > 0 {
		observer.Stepf("the results of run %s of %s are no longer valid: %s", last.ID, stored.Run.CompletionTime, causes[0])
		return Reuse{}, false
	}
	if err := lease.New(client).DeleteStaleLease(ctx, last); err != nil {
		observer.Stepf("%v", err)
	}
	until, _ := standing.ValidUntil(stored) // it is known, since it has not passed
	observer.Stepf("the checks of the release passed in run %s of %s, and their results are still valid; they do not "+
		"run again", last.ID,
		stored.Run.CompletionTime)
	return Reuse{ID: cmp.Or(stored.Run.ChecksFrom, last.ID), Results: Settled(last), Until: until}, true
}

// covers reports whether a run is comparable and covered the same checks, and none of them failed.
func covers(last record.Record, intent record.Intent) bool {
	if last.Difference(intent) != "" {
		return false
	}
	settled := Settled(last)
	for _, check := range intent.Checks {
		findings, ok := settled[check]
		if !ok || slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Outcome == preflight.Fail }) {
			return false
		}
	}
	return true
}
