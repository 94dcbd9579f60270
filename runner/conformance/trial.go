package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
)

const (
	// memoryLimit is the memory that must suffice for a check: a preflight runs some
	// thirty of them concurrently.
	memoryLimit = "128Mi"
	// smallBudget is the least that a runner may grant a result (WIRE.md).
	smallBudget = 512
	// stopSeconds is how long a check may take to end after SIGTERM, in seconds.
	stopSeconds = 5
	// minSettle and maxSettle bound how long a check runs before it is stopped, in seconds.
	// Times of a kubelet have a precision of a second.
	minSettle, maxSettle = 3, 10
	// cleanupTimeout bounds the reading and deletion after an attempt.
	cleanupTimeout = time.Minute
)

// trial is one way to run a check.
type trial struct {
	name string
	// describe completes "running …".
	describe string
	// change applies the restriction; the check is the first container.
	change func(pod *corev1.PodSpec)
	// stop stops the pods soon after they run.
	stop bool
	// inspect is called while the objects of the attempt exist; optional.
	inspect func(ctx context.Context, plan launch.Plan) error
}

// The names of the trials.
const (
	asIs       = "as it is"
	again      = "again"
	killed     = "killed"
	terminated = "terminated"
	nonRoot    = "non-root"
	readOnly   = "read-only"
	memory     = "memory"
	budget     = "budget"
	cutOff     = "cut off"
)

// first are the trials that are not compared with another.
func first(inspect func(context.Context, launch.Plan) error) []trial {
	return []trial{
		{name: asIs, describe: "the check unchanged", inspect: inspect},
		{name: killed, describe: "the check, then killing it", stop: true, change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", silentHost)
			// Kept where the cluster has ContainerStopSignals, else dropped.
			pod.OS = &corev1.PodOS{Name: corev1.Linux}
			pod.Containers[0].Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.SIGKILL)}
		}},
		{name: terminated, describe: "the check, then terminating it", stop: true, change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", silentHost)
		}},
	}
}

const (
	// silentHost is an unassigned address (RFC 5737): a check waits there
	// for the API server.
	silentHost = "192.0.2.1"
	// closedHost is an address without an API server.
	closedHost = "127.0.0.1"
)

// compared are the trials whose results are compared with the first.
func compared() []trial {
	return []trial{
		{name: again, describe: "the check again"},
		{name: nonRoot, describe: "the check as a user other than root", change: func(pod *corev1.PodSpec) {
			secure(pod, func(security *corev1.SecurityContext) { security.RunAsNonRoot = new(true) })
		}},
		{name: readOnly, describe: "the check on a read-only file system", change: func(pod *corev1.PodSpec) {
			secure(pod, func(security *corev1.SecurityContext) { security.ReadOnlyRootFilesystem = new(true) })
		}},
		{name: memory, describe: "the check with " + memoryLimit + " of memory", change: func(pod *corev1.PodSpec) {
			limit := resource.MustParse(memoryLimit)
			resources := &pod.Containers[0].Resources
			if wanted, ok := resources.Requests[corev1.ResourceMemory]; ok && wanted.Cmp(limit) > 0 {
				resources.Requests[corev1.ResourceMemory] = limit
			}
			if resources.Limits == nil {
				resources.Limits = corev1.ResourceList{}
			}
			resources.Limits[corev1.ResourceMemory] = limit
		}},
		{name: budget, describe: fmt.Sprintf("the check with %d bytes for its result", smallBudget), change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "PREFLIGHT_RESULT_BYTES", strconv.Itoa(smallBudget))
		}},
		{name: cutOff, describe: "the check without an API server", change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", closedHost)
		}},
	}
}

func secure(pod *corev1.PodSpec, change func(*corev1.SecurityContext)) {
	container := &pod.Containers[0]
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	change(container.SecurityContext)
}

func setEnvironment(pod *corev1.PodSpec, name, value string) {
	container := &pod.Containers[0]
	container.Env = slices.DeleteFunc(container.Env, func(variable corev1.EnvVar) bool { return variable.Name == name })
	container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
}

// attempt makes one attempt with each of the checks, and records what they
// left.
func (s *session) attempt(ctx context.Context, t trial, checks []string) (err error) {
	run := s.newRun()
	plan := s.launcher.CopyAccounts(ctx, launch.NewDraft(s.From, s.subject.release).Bind(run))
	plan.Checks = slices.DeleteFunc(plan.Checks, func(check launch.Check) bool { return !slices.Contains(checks, check.Name) })
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
		left, err := s.read(ctx, check)
		if err != nil {
			return err
		}
		left.findings = findings[check.Name]
		s.write(check.Name, t.name, left)
	}
	return nil
}

// prepare applies the restriction. There is only one pod, and it ends soon
// after it is deleted.
func (t trial) prepare(check launch.Check) {
	check.Job.Spec.BackoffLimit = new(int32(0))
	pod := &check.Job.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(stopSeconds))
	if t.change != nil {
		t.change(pod)
	}
}

// collect runs the plan as a preflight does, and returns its findings.
func (s *session) collect(ctx context.Context, t trial, plan launch.Plan) (map[string][]finding.Finding, error) {
	limited, cancel := context.WithDeadline(ctx, plan.Run.Deadline)
	defer cancel()
	var stopping errgroup.Group
	options := jobs.Options{}
	if t.stop {
		options.Progress = onceRunning(plan, func(check launch.Check) {
			stopping.Go(func() error { return s.limit(limited, check) })
		})
	}
	sources, err := jobs.Sources(limited, s.Kubernetes, s.launcher, plan, options)
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

// onceRunning returns a function that calls first for each check when it runs.
func onceRunning(plan launch.Plan, first func(launch.Check)) func(jobs.Status) {
	waiting := map[string]launch.Check{}
	for _, check := range plan.Checks {
		waiting[check.Name] = check
	}
	return func(status jobs.Status) {
		if check, ok := waiting[status.Check]; ok && status.State == jobs.Running {
			delete(waiting, status.Check)
			first(check)
		}
	}
}

// limit makes the kubelet stop a check after a while, by the deadline of its pod: unlike a
// deleted pod, it remains readable. A check must have the time to report that it runs, also
// on a busy node: at least as long as the node needed to start it.
func (s *session) limit(ctx context.Context, check launch.Check) error {
	pods, err := s.pods(ctx, check)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		state := checkStatus(check, pod).State
		if state.Running == nil || pod.Status.StartTime == nil {
			continue // it has ended
		}
		starting := int64(state.Running.StartedAt.Sub(pod.Status.StartTime.Time).Seconds())
		seconds := starting + min(max(minSettle, starting), maxSettle)
		if earlier := pod.Spec.ActiveDeadlineSeconds; earlier != nil {
			seconds = min(seconds, *earlier) // it cannot be raised
		}
		_, err := s.Kubernetes.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"activeDeadlineSeconds":%d}}`, seconds), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("could not stop pod %q: %w", pod.Name, err)
		}
	}
	return nil
}

func ofRun(run string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{label.Run: run}.String()}
}

// cleanup deletes the objects of an attempt, also after an interruption.
func (s *session) cleanup(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := s.launcher.Cleanup(ctx, run)
	return err
}
