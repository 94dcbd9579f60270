package conformance

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rights"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// The names of the trials.
const (
	AsIs       = requirement.AsIs
	Again      = requirement.Again
	Killed     = requirement.Killed
	Terminated = requirement.Terminated
	NonRoot    = requirement.NonRoot
	ReadOnly   = requirement.ReadOnly
	Memory     = requirement.Memory
	Budget     = requirement.Budget
	CutOff     = requirement.CutOff
)

// Stopped reports whether the kubelet stopped a check, as observed in its pod.
func Stopped(check jobplan.Check, pod corev1.Pod) bool {
	return requirement.Observe(check, pod).Stopped
}

// Invalid returns the results about Jobs for which the API server returned these findings.
func Invalid(findings []finding.Finding, checks []jobplan.Check) []requirement.Result {
	return invalid(findings, checks)
}

// plan is the plan of one attempt.
func (s *session) plan() jobplan.Plan {
	return jobplan.New(s.config.From, s.subject.release).Bind(s.newRun())
}

// Planned returns the first check of a subject, as one attempt runs it.
func Planned(subject Subject) jobplan.Check {
	s := session{subject: subject}
	return s.plan().Checks[0]
}

// RunOf returns the ID of the run of a planned check.
func RunOf(check jobplan.Check) string { return check.Job.Labels[label.Run] }

// Left is what one trial of a check left.
type Left struct {
	// Pod is its pod as it was last observed, nil without one; Log is its log.
	Pod *corev1.Pod
	Log []byte
	// Findings are what a preflight reports.
	Findings []finding.Finding
}

func (l Left) attempt(check jobplan.Check) requirement.Attempt {
	var a requirement.Attempt
	if l.Pod != nil {
		a = requirement.Observe(check, *l.Pod)
	}
	if a.End != nil {
		a = a.Logged(check, l.Log)
	}
	a.Findings = l.Findings
	return a
}

// Results returns the results for a planned check of a subject whose account has these
// rights, after each trial left something. As in a test of conformance, trials that are
// compared with the first are ignored without a result of the first.
func Results(subject Subject, check jobplan.Check, held rights.Rights, left map[string]Left) []requirement.Result {
	s := session{subject: subject, results: trialResults{tried: map[string]map[string]requirement.Attempt{}}}
	for _, t := range first(nil) {
		s.results.write(check.Name, t.name, left[t.name].attempt(check))
	}
	if len(s.results.answered([]string{check.Name})) > 0 {
		for _, t := range compared() {
			s.results.write(check.Name, t.name, left[t.name].attempt(check))
		}
	}
	s.results.accounts, s.results.reading = map[string]rights.Rights{check.Name: held}, map[string]bool{}
	plan := s.plan()
	for _, account := range accountcopy.Of(plan) {
		for _, name := range account.Checks {
			s.results.reading[name] = bound(plan, account.Namespace, account.Name)
		}
	}
	return s.evidence(check).Results()
}

// Prepared returns the Job of a check in each trial, by the name of the trial.
func Prepared(check jobplan.Check) map[string]*batchv1.Job {
	jobs := map[string]*batchv1.Job{}
	for _, t := range append(first(nil), compared()...) {
		changed := check
		changed.Job = check.Job.DeepCopy()
		t.prepare(changed)
		jobs[t.name] = changed.Job
	}
	return jobs
}

// Ending is how a check ends in one attempt. It passes or is Unknown.
type Ending struct {
	// Lost is true if its end is not known.
	Lost bool
	// Stopped is true if the kubelet stopped it.
	Stopped bool
	Passes  bool
}

func (e Ending) attempt() requirement.Attempt {
	left := requirement.Attempt{Stopped: e.Stopped, Findings: []finding.Finding{{Finding: preflight.Finding{Outcome: preflight.Unknown}}}}
	if !e.Lost {
		left.End = &corev1.ContainerStateTerminated{}
	}
	if e.Passes {
		left.Findings[0].Outcome = preflight.Pass
	}
	return left
}

// TryAll makes the attempts of a trial with some checks. The first check ends as stated in
// the first and in a second attempt. TryAll returns the checks of each attempt, and whether
// the first check counts as one that passes although it is stopped.
func TryAll(ctx context.Context, name string, checks []string, endings ...Ending) (attempts [][]string, violates bool, err error) {
	s := session{results: trialResults{tried: map[string]map[string]requirement.Attempt{}}}
	for _, t := range append(first(nil), compared()...) {
		if t.name != name {
			continue
		}
		err = s.tryAll(ctx, t, checks, func(_ context.Context, t trial, checks []string) error {
			s.results.write(checks[0], t.name, endings[len(attempts)].attempt())
			attempts = append(attempts, checks)
			return nil
		})
	}
	left, _ := s.results.left(checks[0], name)
	return attempts, left.Stopped && left.Passed(), err
}

// Settle returns how long a check runs before it is stopped, in seconds, on a node that
// needed so long to start it, after it ran as long in a first attempt; 0 before the first.
func Settle(starting int64, before time.Duration) int64 {
	check := jobplan.Check{Name: "Zoo.Candidate"}
	t := first(nil)[2]
	s := session{results: trialResults{tried: map[string]map[string]requirement.Attempt{}}}
	if before > 0 {
		end := &corev1.ContainerStateTerminated{}
		end.FinishedAt.Time = end.StartedAt.Add(before)
		s.results.write(check.Name, t.name, requirement.Attempt{End: end})
	}
	return s.settle(t, check, starting)
}
