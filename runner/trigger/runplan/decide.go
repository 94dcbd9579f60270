// Package runplan answers: which run should be in progress in this cluster, and when is this decided again?
//
// [Decide] is a pure function of the [State]: ClusterVersion, the requests, the recorded runs and the time.
// [Reconciled] returns the changes of the objects that request runs.
package runplan

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/schedule"
)

// Decide plans. It is pure: the same state has the same plan.
//
// A selected target runs immediately unless a Ready verdict is valid, and again when the spec of ClusterVersion or the
// cluster changes, when its verdict expires, and while it is not Ready. The update that is scheduled for MUO follows,
// before its time, and then the requests of administrators, with the rules of a selected target, each at its time.
// Otherwise the offered targets run one after the other; none starts while the cluster is updating, while a node is
// being drained, while the offers are unknown, or within an hour of a valid verdict on the target. A run in progress
// for a release that is neither selected, offered nor requested, or that CVO has accepted, is canceled, unless a user
// requested it.
//
// A target whose last run has no valid verdict, such as after a change of the cluster, runs again within a minute; the
// pause doubles while this repeats.
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

// State is the input of a plan.
type State struct {
	// Now is the time by the clock of the cluster.
	Now time.Time
	// ClusterVersion is required.
	ClusterVersion *configv1.ClusterVersion
	// Draining is true while a node is being drained for its machine configuration.
	Draining bool
	// Ahead is how many offered targets to run ahead; 0 for none.
	Ahead int
	// Requests are the preflights that administrators request, in the order in which they run.
	Requests []Request
	// Runs are the runs with the coverage of the controller's runs, in any order.
	Runs []Run
	// Scheduled is the update that the managed-upgrade-operator (MUO) starts; nil for none.
	Scheduled *schedule.Scheduled
	// Unscheduled is why MUO's configuration schedules no update that can be checked in advance; nil if it does, and if
	// there is none.
	Unscheduled *schedule.Invalid
}

// Request is a preflight that an administrator requests.
type Request struct {
	Target
	// Since is the time from which runs count; none starts before. Until is the time from
	// which none starts; zero for no end.
	Since, Until time.Time
	// MeetsTerms is false if the last verdict on the target has other acceptances.
	MeetsTerms bool
}

// Run is one run, in progress or ended.
type Run struct {
	// ID is empty for a run without a record.
	ID        string
	Target    update.Release
	Requester record.Requester
	// Selection is the coverage of the run; empty for the controller's.
	Selection string
	// Generation is the generation of the ClusterVersion that the run has read.
	Generation int64
	// Began is zero if unknown.
	Began time.Time
	// Ended is zero while the run is in progress.
	Ended time.Time
	// Decision and ValidUntil are fields of its verdict; zero without a verdict that is
	// authentic.
	Decision   verdict.Decision
	ValidUntil time.Time
	// Accepts is true for a verdict that rests on accepted findings.
	Accepts bool
	// Failure is why a run of this process has no record of its end; empty otherwise.
	Failure string
	// Changed is true when the cluster has changed since the verdict, and the checks of the
	// release are to run again.
	Changed bool
	// Differs is true if the decision differed when the verdict was evaluated again.
	Differs bool
}

// Begun is the run of a target that begins, for that generation of the ClusterVersion.
func Begun(target Target, generation int64) Run {
	return Run{Target: target.Release, Requester: target.Requester, Selection: target.Selection, Generation: generation}
}

// maxRemembered bounds the runs of a target that a process remembers: they double the pause.
const maxRemembered = 7

// Remember adds a run that has ended to those that a process remembers, in the order of their ends.
func Remember(runs []Run, ended Run) []Run {
	runs = append(runs, ended)
	same := 0
	for _, run := range runs {
		if run.Covered() == ended.Covered() {
			same++
		}
	}
	if same > maxRemembered {
		oldest := slices.IndexFunc(runs, func(run Run) bool { return run.Covered() == ended.Covered() })
		runs = slices.Delete(runs, oldest, oldest+1)
	}
	return runs
}

// Covered is the subject of the run's verdict.
func (r Run) Covered() Covered { return Covered{r.Target.Digest(), r.Selection} }

// InProgress reports whether the run has not ended.
func (r Run) InProgress() bool { return r.Ended.IsZero() }

// Ours reports whether the controller began the run, or is to.
func (r Run) Ours() bool { return r.Requester == record.BySelection || r.Requester == record.Ahead }

// Ended are the runs of a target that have ended, newest first.
func (s State) Ended(target Target) []Run {
	var runs []Run
	for _, run := range s.Runs {
		if !run.InProgress() && run.Covered() == target.Covered() {
			runs = append(runs, run)
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return b.Ended.Compare(a.Ended) })
	return runs
}

// Verdicts are the reports of the runs whose verdicts count, of authentic records only.
type Verdicts map[Covered]report.Report

// DecisionOf is the decision of a verdict for a plan: a forced run permits no update.
func DecisionOf(decided report.Report) verdict.Decision {
	if decided.Verdict.Forced && decided.Verdict.Decision == verdict.Ready {
		return verdict.Undecided
	}
	return decided.Verdict.Decision
}

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

// Plan is the work to do.
type Plan struct {
	// Run is the run that should be in progress; nil for none. A run in progress of its release is joined.
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

// Wait plans again at that time, if there is nothing to do before.
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
