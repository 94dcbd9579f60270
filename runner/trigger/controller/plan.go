package controller

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
)

const (
	// aheadPause is the time between two runs ahead of one target.
	aheadPause = time.Hour
	// selectedPause is the time until the next run of a selected target that is not
	// Ready, since a remedy need not change an object that is watched. It doubles with
	// each run, up to aheadPause.
	selectedPause = 2 * time.Minute
)

// State is what a plan depends on.
type State struct {
	// Now is the time by the clock of the cluster.
	Now time.Time
	// ClusterVersion is required.
	ClusterVersion *configv1.ClusterVersion
	// Draining is true while a node is being drained for its machine configuration.
	Draining bool
	// Ahead is how many offered targets to run ahead; 0 for none.
	Ahead int
	// Runs are the runs that cover what the controller would run, in any order.
	Runs []Run
}

// Run is one run, in progress or ended.
type Run struct {
	// ID is empty for a run without a record.
	ID        string
	Target    update.Release
	Requester record.Requester
	// Generation is that of the ClusterVersion that the run has read.
	Generation int64
	// Ended is zero while the run is in progress.
	Ended time.Time
	// Decision and ValidUntil are those of its verdict; zero without a verdict that is
	// authentic.
	Decision   verdict.Decision
	ValidUntil time.Time
	// Changed is true when the cluster has changed since the verdict.
	Changed bool
}

func (r Run) inProgress() bool { return r.Ended.IsZero() }

// ours reports whether the controller began the run, or is to.
func (r Run) ours() bool { return r.Requester == record.BySelection || r.Requester == record.Ahead }

// Plan is what is to be done.
type Plan struct {
	// Run is the run that is to be in progress; nil for none. A run in progress of its
	// release is joined.
	Run *Target
	// Delay is true for a new run ahead: clusters that are offered a release at the same
	// time do not start at the same time.
	Delay bool
	// Cancel are the IDs of runs in progress whose result is not needed.
	Cancel []string
	// Next is when to plan again if nothing changes until then; zero for never.
	Next time.Time
}

// Decide plans. It is pure: the same state has the same plan.
//
// A selected target runs at once, and again when the spec of ClusterVersion or the
// cluster changes, when its verdict ends, and while it is not Ready. Otherwise the
// offered targets run one after the other; none starts while the cluster is updating,
// while a node is drained, while the offers are unknown, or within an hour of the last
// run of the target. A run in progress for a release that is neither selected, accepted
// nor offered is canceled, unless a user requested it.
func Decide(s State) Plan {
	selected, isSelected := Selected(s.ClusterVersion)
	var plan Plan
	var continued *Target
	for _, run := range s.Runs {
		switch {
		case !run.inProgress() || !run.ours():
		case s.needed(run, selected):
			continued = &Target{Release: run.Target, Requester: run.Requester}
		case run.ID != "":
			plan.Cancel = append(plan.Cancel, run.ID)
		}
	}
	slices.Sort(plan.Cancel)
	switch {
	case isSelected:
		plan.Next = s.selectedDue(selected)
		if continued != nil || !plan.Next.After(s.Now) {
			plan.Run, plan.Next = &selected, time.Time{}
		}
	case continued != nil:
		plan.Run = continued
	case progressing(s.ClusterVersion) || s.Draining || offersUnknown(s.ClusterVersion):
	default:
		s.planAhead(&plan)
	}
	return plan
}

// needed reports whether the result of a run in progress is needed.
func (s State) needed(run Run, selected Target) bool {
	digest := run.Target.Digest()
	switch {
	case selected.Digest() != "":
		return digest == selected.Digest()
	case digest == acceptedDigest(s.ClusterVersion):
		return true
	case run.Requester == record.BySelection || progressing(s.ClusterVersion):
		return false
	}
	return offersUnknown(s.ClusterVersion) || slices.ContainsFunc(Offered(s.ClusterVersion, s.Ahead), func(offered Target) bool {
		return offered.Digest() == digest
	})
}

// planAhead plans the first offered target that is due, or when the first one will be.
func (s State) planAhead(plan *Plan) {
	for _, offered := range Offered(s.ClusterVersion, s.Ahead) {
		due := s.aheadDue(offered)
		if !due.After(s.Now) {
			plan.Run, plan.Delay, plan.Next = &offered, true, time.Time{}
			return
		}
		if plan.Next.IsZero() || due.Before(plan.Next) {
			plan.Next = due
		}
	}
}

// aheadDue is when an offered target is to run.
func (s State) aheadDue(target Target) time.Time {
	ended := s.ended(target)
	if len(ended) == 0 {
		return s.Now
	}
	last := ended[0]
	earliest := last.Ended.Add(aheadPause)
	if last.Decision == "" || last.Changed || last.ValidUntil.Before(earliest) {
		return earliest
	}
	return last.ValidUntil
}

// selectedDue is when the selected target is to run. Only runs since the last change of
// the spec count: it may have selected the target again, or accepted its risks.
func (s State) selectedDue(target Target) time.Time {
	ended := slices.DeleteFunc(s.ended(target), func(run Run) bool { return run.Generation != s.ClusterVersion.Generation })
	if len(ended) == 0 {
		return s.Now
	}
	last := ended[0]
	pause := selectedPause
	for range ended[1:] {
		pause = min(2*pause, aheadPause)
	}
	earliest := last.Ended.Add(pause)
	if last.Decision != verdict.Ready || last.Changed || last.ValidUntil.Before(earliest) {
		return earliest
	}
	return last.ValidUntil
}

// ended are the runs of a target that have ended, newest first.
func (s State) ended(target Target) []Run {
	var runs []Run
	for _, run := range s.Runs {
		if !run.inProgress() && run.Target.Digest() == target.Digest() {
			runs = append(runs, run)
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return b.Ended.Compare(a.Ended) })
	return runs
}
