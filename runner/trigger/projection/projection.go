// Package projection answers: what is the status of an UpdatePreflight, given the
// recorded runs?
//
// It is pure: the object, the verdict of its target and the time go in, the status comes
// out. The previous status counts only for the times of its conditions and for the history
// of releases that the target has selected before.
package projection

import (
	"time"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// Status is the status of an object.
func Status(object *v1alpha1.UpdatePreflight, o Observation) v1alpha1.UpdatePreflightStatus {
	p := projected{object: object, observed: o}
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
	p.report(&status)
	status.Conditions = p.conditions(status)
	return status
}

func (p projected) phase() v1alpha1.Phase {
	opened, closed := !p.observed.Now.Before(p.opens), !p.closes.IsZero() && !p.observed.Now.Before(p.closes)
	switch {
	case p.observed.Target.Image == "":
		return v1alpha1.New
	case !opened:
		return v1alpha1.Pending
	case p.observed.Running != nil:
		return v1alpha1.Checking
	case p.valid():
		return v1alpha1.Phase(p.observed.Verdict.Verdict.Decision)
	case closed || p.expired():
		return v1alpha1.Expired
	}
	return v1alpha1.Pending
}

// Next is the next time after now at which the status changes without an event; zero for never.
func Next(object *v1alpha1.UpdatePreflight, status v1alpha1.UpdatePreflightStatus, now time.Time) time.Time {
	opens, closes := Times(object.Spec)
	times := []time.Time{opens, closes}
	if status.ValidUntil != nil {
		times = append(times, status.ValidUntil.Time)
	}
	if status.ReportTime != nil {
		times = append(times, status.ReportTime.Add(reportInterval))
	}
	var next time.Time
	for _, at := range times {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
