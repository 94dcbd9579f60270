// Package conformance answers: does this check conform to the requirements?
//
// [Run] runs the Jobs of a check in a cluster as a preflight would, several times: unchanged, and under one restriction
// each. The outcomes are compared with the requirements for checks; each [Result] belongs to one requirement. All
// created objects and namespaces have the label of a run, and are deleted at the end.
//
// The package uses runner/jobs, so that it evaluates an attempt as a preflight does, with the same messages.
//
// # Limitations
//
// A node stops a container with SIGTERM first. The check only receives SIGKILL first if the cluster has the feature
// ContainerStopSignals; otherwise it receives SIGKILL after it has ignored SIGTERM. A check that passes although it was
// stopped may have completed its work, so it is stopped again, later. A check that exits before it can be stopped, even
// without an API server, is not tested for this. The absence of writes follows from the roles of the check's account,
// not from a comparison of the cluster, which others change concurrently.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Run tests the checks of a subject. Their violations are Results;
// an error means that the test itself failed or was interrupted, or
// names objects that could not be deleted.
func Run(ctx context.Context, config Config, subject Subject) (report Report, err error) {
	objects := inventory.New(config.Kubernetes, config.Metadata)
	s := &session{
		config: config, subject: subject, launcher: launch.New(objects), objects: objects,
		results: trialResults{
			tried: map[string]map[string]requirement.Attempt{}, accounts: map[string]rights.Rights{},
			reading: map[string]bool{},
		},
	}
	report.Results = subject.unreadable()
	draft := jobplan.New(config.From, subject.release)
	report.Results = append(report.Results, subject.rejected(draft.Refused)...)
	if len(draft.Checks) == 0 {
		return report, nil
	}
	plan := draft.Bind(s.newRun())
	if err := baseNeeds().And(draft.Needs()).Check(ctx, config.Kubernetes.AuthorizationV1()); err != nil {
		return Report{}, err
	}
	made := namespaces{client: config.Kubernetes, id: uuid.NewString()}
	defer func() { err = errors.Join(err, made.remove(ctx)) }()
	if err := made.make(ctx, plan, config.Progress); err != nil {
		return Report{}, err
	}
	config.Progress("validating the manifests at the API server")
	impossible, plan := s.launcher.Validate(ctx, plan)
	report.Results = append(report.Results, invalid(impossible, draft.Checks)...)
	if err := s.try(ctx, names(plan.Checks)); err != nil {
		return Report{}, err
	}
	for _, check := range plan.Checks {
		report.Results = append(report.Results, s.evidence(check).Results()...)
	}
	return report, nil
}

func (s *session) evidence(check jobplan.Check) requirement.Evidence {
	return requirement.Evidence{
		Check: check, Images: s.subject.describeImages(check), Tried: s.results.tried[check.Name], Rights: s.results.accounts[check.Name],
		Reads: s.results.reading[check.Name], Alone: s.subject.alone,
	}
}

// try makes all attempts. Those that are compared with the first are made only
// for checks that were conclusive in it.
func (s *session) try(ctx context.Context, checks []string) error {
	if err := s.round(ctx, first(s.readAccounts), checks); err != nil {
		return err
	}
	return s.round(ctx, compared(), s.results.answered(checks))
}

// round makes attempts concurrently.
func (s *session) round(ctx context.Context, trials []trial, checks []string) error {
	const parallel = 8
	if len(checks) == 0 {
		return ctx.Err()
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, t := range trials {
		group.Go(func() error {
			if err := s.tryAll(limited, t, checks, s.attempt); err != nil {
				return fmt.Errorf("could not run %s: %w", t.describe, err)
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

func names(checks []jobplan.Check) []string {
	var names []string
	for _, check := range checks {
		names = append(names, check.Name)
	}
	return names
}

// cleanupTimeout bounds the reading and deletion after an attempt.
const cleanupTimeout = time.Minute

// Config configures Run. Every field is required.
type Config struct {
	Kubernetes kubernetes.Interface
	Metadata   metadata.Interface
	// From and To are the versions of the update passed to the checks.
	From, To string
	// Timeout bounds one attempt; up to three are made one after another.
	Timeout time.Duration
	// ToolVersion is recorded on created objects.
	ToolVersion string
	// Progress is called with each step, concurrently.
	Progress func(step string)
}

type session struct {
	config   Config
	subject  Subject
	launcher *launch.Launcher
	objects  *inventory.Objects
	results  trialResults
}

func (s *session) newRun() jobplan.Run {
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	now := time.Now().UTC()
	return jobplan.Run{
		ID: uuid.NewString(), From: s.config.From,
		// There is no release.
		Target:    update.Release{Version: s.config.To, Image: "conformance.invalid/release@" + digest},
		StartTime: now, Deadline: now.Add(s.config.Timeout), ToolVersion: s.config.ToolVersion,
	}
}

// trialResults holds the attempts by check and trial, and the rights of its account by check.
type trialResults struct {
	mutex    sync.Mutex
	tried    map[string]map[string]requirement.Attempt
	accounts map[string]rights.Rights
	// reading is true when a binding of the manifest grants the account rights.
	reading map[string]bool
}

func (s *trialResults) write(check, trial string, left requirement.Attempt) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.tried[check] == nil {
		s.tried[check] = map[string]requirement.Attempt{}
	}
	s.tried[check][trial] = left
}

// answered are the checks with a final result in the first trial.
func (s *trialResults) answered(checks []string) []string {
	var answered []string
	for _, check := range checks {
		if s.tried[check][requirement.AsIs].Answered {
			answered = append(answered, check)
		}
	}
	return answered
}

// left is the latest attempt of a trial with a check; ok is false before the first.
func (s *trialResults) left(check, trial string) (left requirement.Attempt, ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	left, ok = s.tried[check][trial]
	return left, ok
}

// Needs are the permissions to test any manifest, apart from those in its roles.
func Needs() access.Needs { return baseNeeds().And(jobplan.AnyNeeds()) }

// baseNeeds do not depend on the manifest. Namespaces are created only if the cluster lacks them.
func baseNeeds() access.Needs {
	own := access.Needs{
		Required: append(
			rights.GrantsNeeds(),
			access.Request{Verb: "get", Resource: "namespaces"},
			access.Request{Verb: "patch", Resource: "pods"},
		),
		Optional: append(
			access.Verbs(access.Request{Resource: "namespaces"}, "create", "delete"),
			access.Request{Verb: "get", Resource: "serviceaccounts", Name: "default"},
		),
	}
	return own.And(jobs.Needs()).And(cleanup.ListNeeds())
}

// minSettle and maxSettle bound how long a check runs before it is first stopped, in seconds.
// Times of a kubelet have a precision of a second.
const minSettle, maxSettle = 3, 10

// tryAll calls attempt once with each of the checks, and a second time with those that
// passed although they were stopped: a check may have completed its work after its
// deadline, by itself. Then it passes before it is stopped the second time. Otherwise the
// first attempt counts.
func (s *session) tryAll(ctx context.Context, t trial, checks []string, attempt func(context.Context, trial, []string) error) error {
	if err := attempt(ctx, t, checks); err != nil || !t.stop {
		return err
	}
	passed := s.passedStopped(t.name, checks)
	if len(passed) == 0 {
		return nil
	}
	t.describe += " later"
	if err := attempt(ctx, t, slices.Sorted(maps.Keys(passed))); err != nil {
		return err
	}
	for check, first := range passed {
		if second, _ := s.results.left(check, t.name); !second.Replaces() {
			s.results.write(check, t.name, first)
		}
	}
	return nil
}

// passedStopped are the attempts that passed although the kubelet stopped them, by check.
func (s *session) passedStopped(trial string, checks []string) map[string]requirement.Attempt {
	passed := map[string]requirement.Attempt{}
	for _, check := range checks {
		if left, _ := s.results.left(check, trial); left.Stopped && left.Passed() {
			passed[check] = left
		}
	}
	return passed
}

// replaces reports whether a second attempt counts instead of a first one, in which the
// check passed although it was stopped: the check passes by itself, or it is unknown how it
// ends.

// attempt makes one attempt with each of the checks, and records what they left.
func (s *session) attempt(ctx context.Context, t trial, checks []string) (err error) {
	s.config.Progress("running " + t.describe)
	run := s.newRun()
	plan := accountcopy.Make(ctx, s.config.Kubernetes, jobplan.New(s.config.From, s.subject.release).Bind(run))
	plan.Checks = slices.DeleteFunc(plan.Checks, func(check jobplan.Check) bool { return !slices.Contains(checks, check.Name) })
	for _, check := range plan.Checks {
		t.prepare(check)
	}
	defer func() { err = errors.Join(err, s.cleanup(ctx, run.ID)) }()
	if err := s.launcher.Prepare(ctx, plan); err != nil {
		return err
	}
	findings, err := s.collect(ctx, t, plan)
	if err != nil {
		return err
	}
	if t.inspect != nil {
		if err := t.inspect(ctx, plan); err != nil {
			return err
		}
	}
	for _, check := range plan.Checks {
		left, err := readPod(ctx, s.config.Kubernetes, check)
		if err != nil {
			return err
		}
		left.Findings = findings[check.Name]
		s.results.write(check.Name, t.name, left)
	}
	return nil
}

func (s *session) collect(ctx context.Context, t trial, plan jobplan.Plan) (map[string][]finding.Finding, error) {
	limited, cancel := context.WithDeadline(ctx, plan.Run.Deadline)
	defer cancel()
	var stopping errgroup.Group
	options := jobs.Options{}
	if t.stop {
		options.Progress = onceRunning(plan, func(check jobplan.Check) {
			stopping.Go(func() error { return s.limit(limited, t, check) })
		})
	}
	sources, err := jobs.Sources(limited, s.config.Kubernetes, s.launcher, plan, options)
	if err != nil {
		return nil, err
	}
	findings := map[string][]finding.Finding{}
	collector.Collect(limited, sources, func(source collector.Source, reported []finding.Finding) {
		findings[source.Name] = reported
	})
	err = stopping.Wait()
	if limited.Err() != nil {
		err = nil // the checks have ended by their deadline, or the test is interrupted
	}
	return findings, errors.Join(ctx.Err(), err)
}

func onceRunning(plan jobplan.Plan, first func(jobplan.Check)) func(jobs.Status) {
	waiting := map[string]jobplan.Check{}
	for _, check := range plan.Checks {
		waiting[check.Name] = check
	}
	return func(status jobs.Status) {
		if check, ok := waiting[status.Check]; ok && status.State == diagnosis.Running {
			delete(waiting, status.Check)
			first(check)
		}
	}
}

// limit makes the kubelet stop a check after a while, by the deadline of its pod: unlike a
// deleted pod, it remains readable. A check must have the time to report that it runs, also
// on a busy node.
func (s *session) limit(ctx context.Context, t trial, check jobplan.Check) error {
	pods, err := podsOf(ctx, s.config.Kubernetes, check)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		state := requirement.CheckStatus(check, pod).State
		if state.Running == nil || pod.Status.StartTime == nil {
			continue // it has ended
		}
		starting := int64(state.Running.StartedAt.Sub(pod.Status.StartTime.Time).Seconds())
		seconds := starting + s.settle(t, check, starting)
		if earlier := pod.Spec.ActiveDeadlineSeconds; earlier != nil {
			seconds = min(seconds, *earlier) // it cannot be raised
		}
		_, err := s.config.Kubernetes.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"activeDeadlineSeconds":%d}}`, seconds), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("could not stop pod %q: %w", pod.Name, err)
		}
	}
	return nil
}

// settle is how long a check runs before it is stopped, in seconds: as long as the node
// needed to start it, and in a second attempt more than twice as long as it ran in the
// first.
func (s *session) settle(t trial, check jobplan.Check, starting int64) int64 {
	if first, ok := s.results.left(check.Name, t.name); ok {
		return 2*int64(first.Took().Seconds()) + minSettle
	}
	return min(max(minSettle, starting), maxSettle)
}

// cleanup deletes the objects of an attempt, also after an interruption.
func (s *session) cleanup(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := cleanup.Run(ctx, s.objects, run)
	return err
}
