package runner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/lease"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/recordstore"
	"github.com/openshift/update-preflight/runner/standing"
	"github.com/openshift/update-preflight/runner/writeguard"
)

// reuse is a complete run whose results are reused.
type reuse struct {
	id      string
	results results
	// until is when the results end to hold.
	until time.Time
}

// reusable finds the last complete run of the release, if its record is authentic and
// all its checks passed and still hold. Everything that may have been fixed since is checked again.
func reusable(ctx context.Context, p plan, records *lease.Runs) (reuse, bool) {
	if p.options.Rerun || len(p.draft.Checks) == 0 {
		return reuse{}, false
	}
	last, found, err := recordstore.New(p.cluster.Kubernetes).Latest(ctx, p.intent(""))
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
	if slices.ContainsFunc(stored.Findings, func(f finding.Finding) bool { return f.Reason == string(writeguard.ReasonGuardChanged) }) {
		p.progress.step("the checks of run %s are run again: its read-only guard was changed", last.ID)
		return reuse{}, false
	}
	if causes := standing.Changed(ctx, last, stored, standing.Present{Cluster: p.snapshot, Now: p.cluster.Now()}); len(causes) > 0 {
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
