package runplan

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/schedule"
)

// ScheduledTarget is the target of an update that MUO starts. It is none while that update
// is selected, or in progress.
func ScheduledTarget(scheduled *schedule.Scheduled, clusterVersion *configv1.ClusterVersion) (Target, bool) {
	if scheduled == nil || scheduled.Release.Digest() == acceptedDigest(clusterVersion) || Progressing(clusterVersion) {
		return Target{}, false
	}
	return Target{Release: scheduled.Release, Requester: record.Ahead}, true
}

// Targets are the selected target, the scheduled one, and those to run ahead.
func Targets(clusterVersion *configv1.ClusterVersion, scheduled *schedule.Scheduled, ahead int) []Target {
	all := Offered(clusterVersion, ahead)
	if target, ok := ScheduledTarget(scheduled, clusterVersion); ok {
		all = first(target, all)
	}
	if selected, ok := Selected(clusterVersion); ok {
		all = first(selected, all)
	}
	return all
}

// first are the targets with one before all others.
func first(target Target, others []Target) []Target {
	others = slices.DeleteFunc(others, func(other Target) bool { return other.Digest() == target.Digest() })
	return append([]Target{target}, others...)
}

// planScheduled plans the preflight of the scheduled update, or when it is due. It returns
// false where it is not due.
func (s State) planScheduled(plan *Plan) bool {
	target, exists := ScheduledTarget(s.Scheduled, s.ClusterVersion)
	if !exists || s.Draining {
		return false
	}
	due := s.scheduledDue(target)
	if due.IsZero() || due.After(s.Now) {
		plan.Wait(due)
		return false
	}
	plan.Run = &target
	return true
}

// scheduledDue is when the scheduled update is to run next; zero for never.
func (s State) scheduledDue(target Target) time.Time {
	var ends []time.Time
	for _, run := range s.Ended(target) {
		ends = append(ends, run.Ended)
	}
	return s.Scheduled.Due(ends, s.scheduledVerdict(target), s.Now)
}

// scheduledVerdict is the last verdict on the scheduled update, if the cluster is as it was.
func (s State) scheduledVerdict(target Target) schedule.Verdict {
	ended := s.Ended(target)
	if len(ended) == 0 || ended[0].Changed || ended[0].Differs || ended[0].Decision == "" {
		return schedule.Verdict{}
	}
	return schedule.Verdict{Decision: string(ended[0].Decision), ValidUntil: ended[0].ValidUntil}
}

// Outlook is whether the verdict on a target is there when MUO starts its update; nil for
// another target. An UpgradeConfig that schedules none concerns every target.
func (s State) Outlook(of Target, expected time.Duration) *projection.Outlook {
	if s.Unscheduled != nil {
		return &projection.Outlook{Invalid: s.Unscheduled}
	}
	target, exists := ScheduledTarget(s.Scheduled, s.ClusterVersion)
	if !exists || target.Covered() != of.Covered() {
		return nil
	}
	start := s.scheduledDue(target)
	for _, run := range s.Runs {
		took := run.Ended.Sub(run.Began)
		switch {
		case run.InProgress() && run.Covered() == target.Covered():
			start = run.Began
			if start.IsZero() { // it is this process's, and has no record yet
				start = s.Now
			}
		case !run.InProgress() && !run.Began.IsZero() && run.Decision != "":
			expected = min(expected, max(took, time.Minute))
		}
	}
	return &projection.Outlook{At: s.Scheduled.At, State: s.Scheduled.Outlook(s.scheduledVerdict(target), start, expected, s.Now)}
}
