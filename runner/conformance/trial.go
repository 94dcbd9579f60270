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
	// memoryLimit is what a check has to get by with: a preflight runs some
	// thirty of them side by side.
	memoryLimit = "128Mi"
	// smallBudget is the least that a runner may grant a result (WIRE.md).
	smallBudget = 512
	// patience is how long a check has to end after SIGTERM, in seconds.
	patience = 5
	// settle is how long a check is at work before it is ended, so that it had
	// time to say that it runs.
	settle = 2 * time.Second
	// tidyTime bounds the reading and the deleting after an attempt.
	tidyTime = time.Minute
)

// trial is one way to run a check.
type trial struct {
	name string
	// describe completes "running …".
	describe string
	// change makes the hardship; the check is the first container.
	change func(pod *corev1.PodSpec)
	// stop has the pods ended soon after they run.
	stop bool
	// look is asked while the objects of the attempt are there.
	look func(ctx context.Context, plan launch.Plan) error
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

// first are the trials that need no other.
func first(look func(context.Context, launch.Plan) error) []trial {
	return []trial{
		{name: asIs, describe: "the check as it is", look: look},
		{name: killed, describe: "the check, and killing it", stop: true, change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", silentHost)
			// Kept where the cluster has ContainerStopSignals, else dropped.
			pod.OS = &corev1.PodOS{Name: corev1.Linux}
			pod.Containers[0].Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.SIGKILL)}
		}},
		{name: terminated, describe: "the check, and terminating it", stop: true, change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", silentHost)
		}},
	}
}

const (
	// silentHost is an address that nobody has (RFC 5737): it has a check wait
	// for the API server.
	silentHost = "192.0.2.1"
	// closedHost is one where nobody listens.
	closedHost = "127.0.0.1"
)

// compared are the trials whose answers are held against that of the first.
func compared() []trial {
	return []trial{
		{name: again, describe: "the check once more"},
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

// attempt makes one attempt with each of the checks, and writes down what they
// left.
func (s *session) attempt(ctx context.Context, t trial, checks []string) (err error) {
	run := s.newRun()
	plan := launch.NewDraft(s.From, s.subject.release).Bind(run)
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
	if t.look != nil {
		if err := t.look(ctx, plan); err != nil {
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

// prepare makes the hardship. There is one pod only, and it does not stay long
// when it is deleted.
func (t trial) prepare(check launch.Check) {
	check.Job.Spec.BackoffLimit = new(int32(0))
	pod := &check.Job.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(patience))
	if t.change != nil {
		t.change(pod)
	}
}

// collect runs the plan as a preflight does, and returns what it would report.
func (s *session) collect(ctx context.Context, t trial, plan launch.Plan) (map[string][]finding.Finding, error) {
	limited, cancel := context.WithDeadline(ctx, plan.Run.Deadline)
	defer cancel()
	ender := &ender{session: s, ctx: limited, run: plan.Run.ID}
	options := jobs.Options{}
	if t.stop {
		options.Progress = ender.seen
	}
	sources, err := jobs.Sources(limited, s.Kubernetes, s.launcher, plan, options)
	if err != nil {
		return nil, err
	}
	findings := map[string][]finding.Finding{}
	collector.Collect(limited, sources, func(source collector.Source, said []finding.Finding) {
		findings[source.Name] = said
	})
	return findings, errors.Join(ctx.Err(), ender.wait())
}

// ender ends pods that run.
type ender struct {
	session *session
	ctx     context.Context //nolint:containedctx // it is that of the attempt, which a callback is not given
	run     string

	once    sync.Once
	pending sync.WaitGroup
	err     error
}

// seen is told how the checks are doing. All pods are ended when the first has
// been at work for a while.
func (e *ender) seen(status jobs.Status) {
	if status.State != jobs.Running {
		return
	}
	e.once.Do(func() { e.pending.Go(func() { e.err = e.session.end(e.ctx, e.run) }) })
}

func (e *ender) wait() error {
	e.pending.Wait()
	return e.err
}

// end has the kubelet end the pods of a run: it does when their time is up, and
// unlike a deleted pod they stay to be read.
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
			return fmt.Errorf("could not end pod %q: %w", pod.Name, err)
		}
	}
	return nil
}

func ofRun(run string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{label.Run: run}.String()}
}

// cleanup deletes what an attempt created, also when it was interrupted.
func (s *session) cleanup(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	_, err := s.launcher.Cleanup(ctx, run)
	return err
}
