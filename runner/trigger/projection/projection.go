// Package projection answers: what is the status of an UpdatePreflight, given the
// recorded runs?
//
// It is pure: the object, the verdict of its target and the time go in, the status comes
// out. The previous status counts only for the times of its conditions and for the history
// of releases that the target has selected before.
package projection

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/update"
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
	status.AfterUpdate = p.judgement()
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

// history is that of the previous status with the verdict of the target, valid or not, as
// the newest: one per digest. A verdict with other acceptances, or from before the request,
// does not belong to the object.
func (p projected) history() []v1alpha1.Verdict {
	history := slices.Clone(p.object.Status.History)
	if p.observed.Verdict != nil && terms(*p.observed.Verdict, p.object) == "" && !p.before() {
		completed, _ := time.Parse(time.RFC3339, p.observed.Verdict.Run.CompletionTime) // before has parsed it
		last := v1alpha1.Verdict{
			Release: *p.release(), Run: words.Cut(p.observed.Verdict.Run.ID, maxID), Decision: string(p.observed.Verdict.Verdict.Decision),
			CompletionTime: metav1.Time{Time: completed},
		}
		digest := p.observed.Target.Digest()
		history = slices.DeleteFunc(history, func(v v1alpha1.Verdict) bool { return update.Release{Image: v.Image}.Digest() == digest })
		history = append(history, last)
	}
	slices.SortStableFunc(history, func(a, b v1alpha1.Verdict) int { return b.CompletionTime.Compare(a.CompletionTime.Time) })
	return history[:min(len(history), v1alpha1.MaxHistory)]
}

// documentWindow is how long a window of mode Document without an end is open.
const documentWindow = 30 * time.Minute

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
