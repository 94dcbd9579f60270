package runplan

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/schedule"
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
	// Requests are the preflights that administrators request, in the order in which they run.
	Requests []Request
	// Runs are the runs that cover what the controller would run, in any order.
	Runs []Run
	// Scheduled is the update that the managed-upgrade-operator (MUO) starts; nil for none.
	Scheduled *schedule.Scheduled
	// Unscheduled is why MUO's configuration schedules none that can be checked before; nil
	// where it does, and where there is none.
	Unscheduled *schedule.Invalid
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
	// Generation is the generation of the ClusterVersion that the run has read.
	Generation int64
	// Began is zero where it is unknown.
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
	// Differs is true when the decision was another one when the verdict was judged again.
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

// Covered is what the verdict of the run is about.
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
