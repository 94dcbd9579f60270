// Package hold answers: which process makes the checks of a run?
//
// [Join] finds out: this process holds the run, or another one does and its result is
// waited for. [Reusable] finds an earlier run whose results still hold, and [Cancel] ends
// one early.
package hold

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
)

// Join makes this process the holder of the run, or waits for the result of another
// holder, which may be of another run of the same release: one of the two is returned. An
// *input.Error is about a run in progress with another selection.
func Join(ctx context.Context, runs *lease.Runs, intent record.Intent, observer *progress.Serial) (*lease.Held, record.Record, error) {
	holder := holder()
	for {
		begun, err := runs.Begin(ctx, intent, holder)
		busy, isBusy := errors.AsType[*lease.BusyError](err)
		if !isBusy {
			return begun, record.Record{}, notClaimed(err)
		}
		observer.Started(busy.ID)
		observer.Stepf("run %s of this release is held by %s: waiting for its result", busy.ID, busy.Holder)
		finished, err := runs.Follow(ctx, busy.ID, Reporting(observer))
		switch {
		case err == nil && finished.Verified() != nil:
			observer.Stepf("%v; the preflight is run again", finished.Verified())
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
