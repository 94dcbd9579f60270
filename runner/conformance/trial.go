package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

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
	// settle is how long a check runs before it is stopped, so that it has
	// time to report that it runs.
	settle = 2 * time.Second
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
	ender := &ender{session: s, ctx: limited, run: plan.Run.ID}
	options := jobs.Options{}
	if t.stop {
		options.Progress = ender.observe
	}
	sources, err := jobs.Sources(limited, s.Kubernetes, s.launcher, plan, options)
	if err != nil {
		return nil, err
	}
	findings := map[string][]finding.Finding{}
	collector.Collect(limited, sources, func(source collector.Source, reported []finding.Finding) {
		findings[source.Name] = reported
	})
	return findings, errors.Join(ctx.Err(), ender.wait())
}

// ender stops running pods.
type ender struct {
	session *session
	ctx     context.Context //nolint:containedctx // the context of the attempt, which the callback does not receive
	run     string

	once    sync.Once
	pending sync.WaitGroup
	err     error
}

// observe receives the status of checks. All pods are stopped after the first has
// run for the settle time.
func (e *ender) observe(status jobs.Status) {
	if status.State != jobs.Running {
		return
	}
	e.once.Do(func() { e.pending.Go(func() { e.err = e.session.end(e.ctx, e.run) }) })
}

func (e *ender) wait() error {
	e.pending.Wait()
	return e.err
}

// end stops the pods of a run by their deadline;
// unlike deleted pods they remain readable.
func (s *session) end(ctx context.Context, run string) error {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
	}
	pods, err := s.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, ofRun(run))
	if err != nil {
		return fmt.Errorf("could not list the pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		_, err := s.Kubernetes.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType,
			[]byte(`{"spec":{"activeDeadlineSeconds":1}}`), metav1.PatchOptions{})
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
