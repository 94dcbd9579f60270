package controller

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/schedule"
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
	// Requests are those of administrators, in the order in which they run.
	Requests []Request
	// Runs are the runs that cover what the controller would run, in any order.
	Runs []Run
	// Scheduled is the update that the managed-upgrade-operator (MUO) starts; nil for none.
	Scheduled *schedule.Scheduled
}

// Request is a preflight that an administrator requests.
type Request struct {
	Target
	// Since is the time from which runs count; none starts before. Until is the time from
	// which none starts; zero for no end.
	Since, Until time.Time
	// MeetsTerms is false where the last verdict on the target has other acceptances.
	MeetsTerms bool
}

// Run is one run, in progress or ended.
type Run struct {
	// ID is empty for a run without a record.
	ID        string
	Target    update.Release
	Requester record.Requester
	// Selection states what the run covers; empty for that of the controller.
	Selection string
	// Generation is that of the ClusterVersion that the run has read.
	Generation int64
	// Began is zero where it is unknown.
	Began time.Time
	// Ended is zero while the run is in progress.
	Ended time.Time
	// Decision and ValidUntil are those of its verdict; zero without a verdict that is
	// authentic.
	Decision   verdict.Decision
	ValidUntil time.Time
	// Changed is true when the cluster has changed since the verdict.
	Changed bool
}

func (r Run) covered() covered { return covered{r.Target.Digest(), r.Selection} }

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
	// Requests are the UpdatePreflights whose runs are not canceled: a run of theirs that
	// gives way is continued later.
	Requests []types.UID
	// Cancel are the IDs of runs in progress whose result is not needed.
	Cancel []string
	// Next is when to plan again if nothing changes until then; zero for never.
	Next time.Time
}

// Decide plans. It is pure: the same state has the same plan.
//
// A selected target runs at once, and again when the spec of ClusterVersion or the
// cluster changes, when its verdict ends, and while it is not Ready. The update that is
// scheduled for MUO follows, before its time, and then the requests of administrators, by
// the rules of a selected target, each at its time. Otherwise the offered
// targets run one after the other; none starts while the cluster is updating, while a
// node is drained, while the offers are unknown, or within an hour of the last run of the
// target. A run in progress for a release that is neither selected, accepted, offered nor
// requested is canceled, unless a user requested it.
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
		plan.wait(due)
	}
	switch {
	case continued != nil:
		plan.Run = continued
	case !isSelected && s.planScheduled(&plan):
	case s.planRequests(&plan):
	case isSelected || progressing(s.ClusterVersion) || s.Draining || offersUnknown(s.ClusterVersion):
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
		case !run.inProgress() || !run.ours() || run.Selection != "":
		case s.needed(run, selected):
			continued = &Target{Release: run.Target, Requester: run.Requester}
		case run.ID != "" && !s.requested(run):
			plan.Cancel = append(plan.Cancel, run.ID)
		}
	}
	slices.Sort(plan.Cancel)
	return continued
}

// wait plans again at that time, if nothing is to be done before.
func (p *Plan) wait(until time.Time) {
	if !until.IsZero() && (p.Next.IsZero() || until.Before(p.Next)) {
		p.Next = until
	}
}

// requested reports whether the result of a run in progress is that of a request.
func (s State) requested(run Run) bool {
	return slices.ContainsFunc(s.Requests, func(request Request) bool { return request.covered() == run.covered() })
}

// planRequests plans the request whose run is in progress, or else the first one that is
// due. It returns false where there is none, and plans when there will be.
func (s State) planRequests(plan *Plan) bool {
	for _, request := range s.Requests {
		if s.running(request) {
			plan.Run = &request.Target
			return true
		}
	}
	for _, request := range s.Requests {
		due := s.requestDue(request)
		switch {
		case !request.Until.IsZero() && !due.Before(request.Until):
		case due.After(s.Now):
			plan.wait(due)
		default:
			plan.Run = &request.Target
			return true
		}
	}
	return false
}

// running reports whether a run of the request is in progress.
func (s State) running(request Request) bool {
	return slices.ContainsFunc(s.Runs, func(run Run) bool {
		return run.inProgress() && run.covered() == request.covered() && !s.Now.Before(request.Since)
	})
}

// requestDue is when a request is to run; the present time at the earliest.
func (s State) requestDue(request Request) time.Time {
	if s.Now.Before(request.Since) {
		return request.Since
	}
	ended := slices.DeleteFunc(s.ended(request.Target), func(run Run) bool { return run.Ended.Before(request.Since) })
	if len(ended) > 0 && !request.MeetsTerms {
		ended[0].Decision = ""
	}
	due := s.again(ended)
	if due.Before(s.Now) {
		return s.Now
	}
	return due
}

// needed reports whether the result of a run in progress is needed.
func (s State) needed(run Run, selected Target) bool {
	digest := run.Target.Digest()
	switch {
	case selected.Digest() != "":
		return digest == selected.Digest()
	case digest == acceptedDigest(s.ClusterVersion) || s.Scheduled != nil && digest == s.Scheduled.Release.Digest():
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
	next := plan.Next
	for _, offered := range Offered(s.ClusterVersion, s.Ahead) {
		due := s.aheadDue(offered)
		if !due.After(s.Now) {
			plan.Run, plan.Delay, plan.Next = &offered, true, next
			return
		}
		plan.wait(due)
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
	return s.again(ended)
}

// again is when a target is to run that has these runs, newest first: while it is not
// Ready, after a pause that doubles.
func (s State) again(ended []Run) time.Time {
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
		if !run.inProgress() && run.covered() == target.covered() {
			runs = append(runs, run)
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return b.Ended.Compare(a.Ended) })
	return runs
}
