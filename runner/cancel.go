package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/record"
)

// CancelNeeds is what Cancel asks of the API server.
func CancelNeeds() access.Needs { return record.Needs().And(launch.CleanupNeeds()) }

// Cancel ends a run before its time, and returns its record when that says so. It
// asks whoever holds the run; where nobody does any more, it takes the run over,
// deletes what the run has in the cluster, and closes its record. id may be the
// beginning of an ID. Where the run has ended already the error is a
// *record.NotRunningError. ctx bounds the waiting.
func Cancel(ctx context.Context, api kubernetes.Interface, id string, progress func(Event)) (record.Record, error) {
	c := cancellation{api: api, records: record.New(api), progress: progress}
	run, err := c.records.Get(ctx, id)
	if err != nil {
		return record.Record{}, err
	}
	if run.Phase != record.Running {
		return run, &record.NotRunningError{ID: run.ID, Phase: run.Phase}
	}
	for {
		if err := c.records.Cancel(ctx, run.ID); err != nil {
			return run, err
		}
		c.step("run %s was asked to end: waiting until it has", run.ID)
		ended, err := c.records.Follow(ctx, run.ID, c.heard)
		if !errors.Is(err, record.ErrAbandoned) {
			return ended, err
		}
		c.step("nobody holds run %s any more: ending it from here", run.ID)
		ended, err = c.end(ctx, run)
		if _, busy := errors.AsType[*record.BusyError](err); !busy {
			return ended, err
		}
	}
}

// cancellation is the end of one run on its way.
type cancellation struct {
	api      kubernetes.Interface
	records  *record.Store
	progress func(Event)
}

func (c cancellation) step(format string, args ...any) {
	c.progress(Event{Step: fmt.Sprintf(format, args...)})
}

// heard tells how far the run is while its holder ends it.
func (c cancellation) heard(now record.Record) {
	if now.Phase == record.Running {
		c.step("run %s goes on: %d of %d checks have answered", now.ID, len(now.Results), len(now.Checks))
	}
}

// end does what the holder of the run should have done. What cannot be deleted
// leaves the run as it is, for the next who tries.
func (c cancellation) end(ctx context.Context, run record.Record) (record.Record, error) {
	held, err := c.records.Begin(ctx, run.Intent, holder())
	if err != nil {
		return c.missed(ctx, run, err)
	}
	_, release := held.Hold(ctx) // its context ends at once: the run is canceled
	defer release()
	removal, err := launch.New(c.api).Cleanup(ctx, run.ID)
	if err != nil {
		return run, errors.Join(err, held.Detach(ctx))
	}
	c.step("%d objects of run %s were deleted", len(removal.Deleted), run.ID)
	text, decided, err := closing(held, removal)
	if err != nil {
		return run, err
	}
	if err := held.Finish(ctx, record.Canceled, string(decided), text, nil); err != nil {
		return run, err
	}
	return c.records.Get(ctx, run.ID)
}

// missed is for a run that could not be taken over: its holder may have ended it
// at the last moment.
func (c cancellation) missed(ctx context.Context, run record.Record, cause error) (record.Record, error) {
	now, err := c.records.Get(ctx, run.ID)
	if err == nil && now.Phase != record.Running {
		return now, nil
	}
	return run, cause
}

// closing is the report of a run that is closed for a holder who has gone.
func closing(held *record.Held, removal launch.Removal) ([]byte, verdict.Decision, error) {
	run := held.Record()
	run.Phase, run.CompletionTime = record.Canceled, held.Now()
	told := soFar(run)
	told.Removal = &report.Removal{Deleted: slices.Concat([]preflight.Object{}, removal.Deleted), Left: slices.Concat([]preflight.Object{}, removal.Left)}
	text, err := json.Marshal(told)
	if err != nil {
		return nil, "", fmt.Errorf("the report of run %s cannot be recorded: %w", run.ID, err)
	}
	return text, told.Verdict.Decision, nil
}
