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
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/standing"
)

// Wanted is the run that a process wants.
type Wanted struct {
	Intent record.Intent
	// Rerun is true where all checks are to be run again.
	Rerun bool
}

// Outdated is why the results so far of a run that another process began are not those of the wanted run;
// empty where they are.
func (w Wanted) Outdated(taken record.Record, now time.Time) string {
	if w.Rerun {
		return "all checks are to be run again"
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
		return "it has used results of an earlier run again"
	}
	return ""
}

// Join makes this process the holder of the run, or waits for the result of another
// holder, which may be of another run of the same release: one of the two is returned. An
// *input.Error is about a run in progress with another selection.
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
			observer.Stepf("the result of run %s is not used, and the preflight is run again: %s", busy.ID, cause)
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
