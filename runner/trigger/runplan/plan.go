package runplan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/verdict"
)

const (
	// aheadPause is the longest time until the next run of a target whose verdict does not
	// hold any longer, and the time between two runs ahead whose verdicts end by themselves.
	aheadPause = time.Hour
	// changePause is the time until the next run of a target whose verdict has ended before
	// its time, or that has none. It doubles with each run of the last changeWindow, up to
	// aheadPause; where the results of the checks are reused, of the last judgeWindow.
	changePause  = time.Minute
	changeWindow = time.Hour
	judgeWindow  = 10 * time.Minute
	// selectedPause is the time until the next run of a selected target that is not
	// Ready, since a remedy need not change an object that is watched. It doubles with
	// each run, up to aheadPause.
	selectedPause = 2 * time.Minute
)

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

// Wait plans again at that time, if nothing is to be done before.
func (p *Plan) Wait(until time.Time) {
	if !until.IsZero() && (p.Next.IsZero() || until.Before(p.Next)) {
		p.Next = until
	}
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
			plan.Wait(due)
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
		return run.InProgress() && run.Covered() == request.Covered() && !s.Now.Before(request.Since)
	})
}

// requestDue is when a request is to run; the present time at the earliest.
func (s State) requestDue(request Request) time.Time {
	if s.Now.Before(request.Since) {
		return request.Since
	}
	ended := slices.DeleteFunc(s.Ended(request.Target), func(run Run) bool { return run.Ended.Before(request.Since) })
	if len(ended) > 0 && !request.MeetsTerms {
		ended[0].Decision = ""
	}
	due := s.again(ended)
	if due.Before(s.Now) {
		return s.Now
	}
	return due
}

// planAhead plans the first offered target that is due, or when the first one will be.
func (s State) planAhead(plan *Plan) {
	next := plan.Next
	for _, offered := range Offered(s.ClusterVersion, s.Ahead) {
		due, soon := s.aheadDue(offered)
		if !due.After(s.Now) {
			plan.Run, plan.Delay, plan.Next = &offered, !soon, next
			return
		}
		plan.Wait(due)
	}
}

// aheadDue is when an offered target is to run; soon where its last run has no verdict that
// holds, which concerns this cluster only, so that the run is not delayed.
func (s State) aheadDue(target Target) (due time.Time, soon bool) {
	ended := s.Ended(target)
	if len(ended) == 0 {
		return s.Now, false
	}
	last := ended[0]
	if last.Decision == "" || last.Changed || last.Differs {
		return last.Ended.Add(changed(ended)), true
	}
	if earliest := last.Ended.Add(aheadPause); last.ValidUntil.Before(earliest) {
		return earliest, false
	}
	return last.ValidUntil, false
}

// changed is the pause after the last of these runs, newest first, whose verdict does not
// hold.
func changed(ended []Run) time.Duration {
	last, window := ended[0], changeWindow
	if last.Differs && !last.Changed {
		window = judgeWindow
	}
	pause := changePause
	for _, run := range ended[1:] {
		if run.Ended.After(last.Ended.Add(-window)) {
			pause = min(2*pause, aheadPause)
		}
	}
	return pause
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
	if last.Changed || last.Differs {
		return last.Ended.Add(min(pause, changed(ended)))
	}
	if last.Decision != verdict.Ready || last.ValidUntil.Before(earliest) {
		return earliest
	}
	return last.ValidUntil
}
