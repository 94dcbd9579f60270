package hold

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
)

// Reuse is a complete run whose results are reused; the zero value is none.
type Reuse struct {
	ID      string
	Results Results
	// Until is when the results end to hold; zero for no results but those of this run.
	Until time.Time
}

// Reusable finds the last complete run of the intent, if its record is authentic and
// all its checks passed and still hold. Everything that may have been fixed since is checked again.
func Reusable(ctx context.Context, client kubernetes.Interface, intent record.Intent, present standing.Present, observer *progress.Serial) (Reuse, bool) {
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
		observer.Stepf("the checks of run %s are run again: its read-only guard was changed", last.ID)
		return Reuse{}, false
	}
	if causes := standing.Changed(ctx, last, stored, present); len(causes) > 0 {
		observer.Stepf("the results of run %s of %s no longer hold: %s", last.ID, stored.Run.CompletionTime, causes[0])
		return Reuse{}, false
	}
	if err := lease.New(client).DeleteStaleLease(ctx, last); err != nil {
		observer.Stepf("%v", err)
	}
	until, _ := standing.ValidUntil(stored) // it is known, since it has not passed
	observer.Stepf("the checks of the release passed in run %s of %s and still hold; they are not run again", last.ID, stored.Run.CompletionTime)
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
