package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
)

// Cancel ends a run early, and returns its record when it has ended. It requests the end
// from the process that holds the run. Without such a process it takes the run over,
// deletes its objects in the cluster, and closes its record. id may be a
// prefix of an ID. The error for a run that has ended is a *lease.NotRunningError.
// The first of places is the cluster with the record. ctx bounds the waiting.
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
		c.progress.Stepf("cancellation of run %s was requested: waiting for its end", run.ID)
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

// EndingOf is what is recorded of a report.
func EndingOf(decided report.Report) (record.Ending, error) {
	text, err := json.Marshal(decided)
	if err != nil {
		return record.Ending{}, fmt.Errorf("the report cannot be recorded: %w", err)
	}
	taken, _ := time.Parse(time.RFC3339, decided.Run.Baseline) // empty for none
	return record.Ending{Phase: record.Phase(decided.Run.Phase), Verdict: decided.Verdict, Report: text, Baseline: taken}, nil
}

// RemovalOf is what a report has of a cleanup.
func RemovalOf(done place.Removal) *report.Removal {
	return &report.Removal{Deleted: append([]report.Object{}, done.Deleted...), Left: append([]report.Object{}, done.Left...), Foreign: done.Foreign}
}

// RemovalError is what could not be deleted of a run.
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
