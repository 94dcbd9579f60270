package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

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
