// Package projection answers: what is the status of an UpdatePreflight, given the
// recorded runs?
//
// It is pure: the object, the verdict of its target and the time go in, the status comes
// out. The previous status counts only for the times of its conditions and for the history
// of releases that the target has selected before.
package projection

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/standing"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// documentWindow is how long a window of mode Document without an end is open.
const documentWindow = 30 * time.Minute

// Observation is the state on which a status depends, in addition to the object.
type Observation struct {
	// Now is the time by the clock of the cluster.
	Now time.Time
	// Target is the release that spec.target selects; zero where it selects none, and then
	// Unknown states why.
	Target  update.Release
	Unknown string
	// Outlook is set for the update that is scheduled for the managed-upgrade-operator.
	Outlook *Outlook
	// Running is the run in progress of the target; nil for none.
	Running *Run
	// Verdict is the report of the last complete run of the target that covers the object,
	// with its standing; nil for none. It is of an authentic record.
	Verdict *report.Report
	// Waiting states why the preflight does not start though it is due; empty otherwise.
	Waiting string
}

// Run is a run in progress.
type Run struct {
	// ID is empty while the run has no record.
	ID string
}

// Times are the times at which the preflight may start: from opens until closes, which is
// zero for no end. opens is zero for at once.
func Times(spec v1alpha1.UpdatePreflightSpec) (opens, closes time.Time) {
	switch {
	case spec.When == nil:
	case spec.When.At != nil:
		opens = spec.When.At.Time
	case spec.When.Window != nil:
		window := spec.When.Window
		opens = window.Start.Time
		switch {
		case window.End != nil:
			closes = window.End.Time
		case window.Mode != v1alpha1.Operator:
			closes = opens.Add(documentWindow)
		}
	}
	return opens, closes
}

// Status is the status of an object.
func Status(object *v1alpha1.UpdatePreflight, o Observation) v1alpha1.UpdatePreflightStatus {
	p := projected{object: object, Observation: o}
	p.opens, p.closes = Times(object.Spec)
	p.ended = p.whyEnded()
	status := v1alpha1.UpdatePreflightStatus{ObservedGeneration: object.Generation, Phase: p.phase()}
	if o.Target.Image != "" {
		status.Target = p.release()
	}
	if p.valid() {
		p.decide(&status)
	}
	if status.Phase == v1alpha1.Checking {
		status.Run = words.Cut(o.Running.ID, maxID)
	}
	status.History = p.history()
	status.Conditions = p.conditions(status)
	return status
}

// Next is the next time after now at which the status changes without an event; zero for never.
func Next(object *v1alpha1.UpdatePreflight, status v1alpha1.UpdatePreflightStatus, now time.Time) time.Time {
	opens, closes := Times(object.Spec)
	times := []time.Time{opens, closes}
	if status.ValidUntil != nil {
		times = append(times, status.ValidUntil.Time)
	}
	var next time.Time
	for _, at := range times {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

const (
	maxID      = 64
	maxVersion = 128
	maxName    = 256
)

// projected is an object with what its status depends on.
type projected struct {
	Observation

	object        *v1alpha1.UpdatePreflight
	opens, closes time.Time
	// ended is why the verdict does not count; empty where it does, and without one.
	ended string
}

// valid reports whether there is a verdict that counts.
func (p projected) valid() bool { return p.Verdict != nil && p.ended == "" }

// whyEnded is why the verdict is not that of the object.
func (p projected) whyEnded() string {
	if p.Verdict == nil {
		return ""
	}
	completed, err := time.Parse(time.RFC3339, p.Verdict.Run.CompletionTime)
	switch {
	case err != nil:
		return "the time of its verdict is unknown"
	case completed.Before(p.opens):
		return "its verdict is older than the time for which the preflight is requested"
	case p.Verdict.Standing == nil:
		return "unknown whether its verdict is valid"
	case len(p.Verdict.Standing.Ended) > 0:
		return words.Clauses(p.Verdict.Standing.Ended, maxCauses)
	}
	if expired := standing.Expired(*p.Verdict, p.Now); expired != "" {
		return expired
	}
	return terms(*p.Verdict, p.object)
}

func (p projected) phase() v1alpha1.Phase {
	opened, closed := !p.Now.Before(p.opens), !p.closes.IsZero() && !p.Now.Before(p.closes)
	switch {
	case p.Target.Image == "":
		return v1alpha1.New
	case !opened:
		return v1alpha1.Pending
	case p.Running != nil:
		return v1alpha1.Checking
	case p.valid():
		return v1alpha1.Phase(p.Verdict.Verdict.Decision)
	case closed || p.expired():
		return v1alpha1.Expired
	}
	return v1alpha1.Pending
}

// expired reports whether the object had a verdict that is no longer valid.
func (p projected) expired() bool {
	return p.Verdict != nil && p.ended != "" && terms(*p.Verdict, p.object) == "" && !p.before()
}

// before reports whether the verdict is older than the request.
func (p projected) before() bool {
	completed, err := time.Parse(time.RFC3339, p.Verdict.Run.CompletionTime)
	return err != nil || completed.Before(p.opens)
}

func (p projected) release() *v1alpha1.Release {
	release := v1alpha1.Release{Version: p.Target.Version, Image: p.Target.Image}
	if release.Version == "" && p.Verdict != nil {
		release.Version = p.Verdict.Target.Version
	}
	release.Version = words.Cut(release.Version, maxVersion)
	return &release
}

// decide sets what a valid verdict states.
func (p projected) decide(status *v1alpha1.UpdatePreflightStatus) {
	decided := p.Verdict.Verdict
	status.Run = words.Cut(p.Verdict.Run.ID, maxID)
	status.Decision = string(decided.Decision)
	status.Blocking, status.BlockingOmitted = bounded(decided.Blocking)
	status.Undecided, status.UndecidedOmitted = bounded(decided.Undecided)
	status.Accepted, status.AcceptedOmitted = bounded(decided.Accepted)
	if until, known := standing.ValidUntil(*p.Verdict); known {
		status.ValidUntil = &metav1.Time{Time: until}
	}
}
