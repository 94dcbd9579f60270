// Package runplan answers: which run is to be in progress in this cluster, and when is that
// decided again?
//
// [Decide] is a pure function of the [State]: ClusterVersion, the requests, the recorded runs
// and the time. [Reconciled] returns the changes of the objects that request runs.
package runplan

import (
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
)

// Decide plans. It is pure: the same state has the same plan.
//
// A selected target runs at once unless a Ready verdict holds, and again when the spec of
// ClusterVersion or the cluster changes, when its verdict ends, and while it is not Ready. The update that is
// scheduled for MUO follows, before its time, and then the requests of administrators, by
// the rules of a selected target, each at its time. Otherwise the offered
// targets run one after the other; none starts while the cluster is updating, while a
// node is drained, while the offers are unknown, or within an hour of a verdict on the target
// that holds. A run in progress for a release that is neither selected, offered nor
// requested, or that CVO has accepted, is canceled, unless a user requested it.
//
// A target whose last run has no verdict that holds, such as after a change of the cluster,
// runs again within a minute; the pause doubles while that repeats.
func Decide(s State) Plan {
	selected, isSelected := Selected(s.ClusterVersion)
	var plan Plan
	for _, request := range s.Requests {
		plan.Requests = append(plan.Requests, request.Object.UID)
	}
	continued := s.continued(&plan, selected)
	if isSelected {
		due := s.selectedDue(selected)
		if continued != nil || !due.After(s.Now) {
			plan.Run = &selected
			return plan
		}
		plan.Wait(due)
	}
	switch {
	case continued != nil:
		plan.Run = continued
	case !isSelected && s.planScheduled(&plan):
	case s.planRequests(&plan):
	case isSelected || Progressing(s.ClusterVersion) || s.Draining || offersUnknown(s.ClusterVersion):
	default:
		s.planAhead(&plan)
	}
	return plan
}

// continued is the target of the run in progress that is needed for an update that is
// selected or offered; nil for none. Those that are not needed are canceled.
func (s State) continued(plan *Plan, selected Target) *Target {
	var continued *Target
	for _, run := range s.Runs {
		switch {
		case !run.InProgress() || !run.Ours() || run.Selection != "":
		case s.needed(run, selected):
			continued = &Target{Release: run.Target, Requester: run.Requester}
		case run.ID != "" && !s.requested(run):
			plan.Cancel = append(plan.Cancel, run.ID)
		}
	}
	slices.Sort(plan.Cancel)
	return continued
}

// requested reports whether a request asks for the result of the run in progress.
func (s State) requested(run Run) bool {
	return slices.ContainsFunc(s.Requests, func(request Request) bool { return request.Covered() == run.Covered() })
}

// needed reports whether the result of a run in progress is needed.
func (s State) needed(run Run, selected Target) bool {
	digest := run.Target.Digest()
	switch {
	case selected.Digest() != "":
		return digest == selected.Digest()
	case digest == acceptedDigest(s.ClusterVersion):
		return false // a preflight of it would compare the release with itself
	case s.Scheduled != nil && digest == s.Scheduled.Release.Digest():
		return true
	case run.Requester == record.BySelection || Progressing(s.ClusterVersion):
		return false
	}
	return offersUnknown(s.ClusterVersion) || slices.ContainsFunc(Offered(s.ClusterVersion, s.Ahead), func(offered Target) bool {
		return offered.Digest() == digest
	})
}

// selectedDue is when the selected target is to run. Of runs before the last change of the
// spec, which may have selected the target again or changed its accepted risks, only one
// counts that is Ready, holds and rests on no acceptance. CVO waits for the verdict, so one that is
// outdated counts as none, at most once a minute.
func (s State) selectedDue(target Target) time.Time {
	ended := s.Ended(target)
	if len(ended) == 0 || !ended[0].holds() || ended[0].Accepts {
		ended = slices.DeleteFunc(ended, func(run Run) bool { return run.Generation != s.ClusterVersion.Generation })
	}
	if len(ended) > 0 && ended[0].outdated() {
		if len(ended) == 1 || !ended[1].outdated() {
			return s.Now
		}
		return ended[0].Ended.Add(changePause)
	}
	return s.again(ended)
}

// outdated reports whether the verdict of the run was another one if it was made now.
func (r Run) outdated() bool { return r.Decision != "" && (r.Changed || r.Differs) }

// holds reports whether the verdict of the run is Ready and not outdated. Its validity is a time.
func (r Run) holds() bool { return r.Decision == verdict.Ready && !r.outdated() }
