package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

type trial struct {
	name string
	// describe completes "running …".
	describe string
	// change applies the restriction; the check is the first container.
	change func(pod *corev1.PodSpec)
	// stop stops the pods after they have run for a while.
	stop bool
	// inspect is called while the objects of the attempt exist; optional.
	inspect func(ctx context.Context, plan jobplan.Plan) error
}

func first(inspect func(context.Context, jobplan.Plan) error) []trial {
	return []trial{
		{name: requirement.AsIs, describe: "the check unchanged", inspect: inspect},
		{name: requirement.Killed, describe: "the check, then killing it", stop: true, change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", silentHost)
			// Kept where the cluster has ContainerStopSignals, else dropped.
			pod.OS = &corev1.PodOS{Name: corev1.Linux}
			pod.Containers[0].Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.SIGKILL)}
		}},
		{name: requirement.Terminated, describe: "the check, then terminating it", stop: true, change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "KUBERNETES_SERVICE_HOST", silentHost)
		}},
	}
}

const (
	// silentHost is an unassigned address (RFC 5737): a check waits there for the API server.
	silentHost = "192.0.2.1"
	// closedHost is an address without an API server.
	closedHost = "127.0.0.1"
)

func compared() []trial {
	return []trial{
		{name: requirement.Again, describe: "the check again"},
		{name: requirement.NonRoot, describe: "the check as a user other than root", change: func(pod *corev1.PodSpec) {
			secure(pod, func(security *corev1.SecurityContext) { security.RunAsNonRoot = new(true) })
		}},
		{name: requirement.ReadOnly, describe: "the check on a read-only file system", change: func(pod *corev1.PodSpec) {
			secure(pod, func(security *corev1.SecurityContext) { security.ReadOnlyRootFilesystem = new(true) })
		}},
		{name: requirement.Memory, describe: "the check with " + requirement.MemoryLimit + " of memory", change: func(pod *corev1.PodSpec) {
			limit := resource.MustParse(requirement.MemoryLimit)
			resources := &pod.Containers[0].Resources
			if wanted, ok := resources.Requests[corev1.ResourceMemory]; ok && wanted.Cmp(limit) > 0 {
				resources.Requests[corev1.ResourceMemory] = limit
			}
			if resources.Limits == nil {
				resources.Limits = corev1.ResourceList{}
			}
			resources.Limits[corev1.ResourceMemory] = limit
		}},
		{name: requirement.Budget, describe: fmt.Sprintf("the check with %d bytes for its result", requirement.SmallBudget), change: func(pod *corev1.PodSpec) {
			setEnvironment(pod, "PREFLIGHT_RESULT_BYTES", strconv.Itoa(requirement.SmallBudget))
		}},
		{name: requirement.CutOff, describe: "the check without an API server", change: func(pod *corev1.PodSpec) {
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

// prepare applies the restriction. There is only one pod, and it ends soon after it is deleted.
func (t trial) prepare(check jobplan.Check) {
	check.Job.Spec.BackoffLimit = new(int32(0))
	pod := &check.Job.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64(requirement.StopSeconds))
	if t.change != nil {
		t.change(pod)
	}
}

func readPod(ctx context.Context, client kubernetes.Interface, check jobplan.Check) (requirement.Attempt, error) {
	pods, err := podsOf(ctx, client, check)
	if err != nil || len(pods) == 0 {
		return requirement.Attempt{}, err
	}
	newest := slices.MaxFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	left := requirement.Observe(check, newest)
	if left.End == nil {
		return left, nil
	}
	log, err := logOf(ctx, client, newest, check.Job.Spec.Template.Spec.Containers[0].Name)
	if err != nil {
		return requirement.Attempt{}, err
	}
	return left.Logged(check, log), nil
}

func podsOf(ctx context.Context, client kubernetes.Interface, check jobplan.Check) ([]corev1.Pod, error) {
	selection := ofRun(check.Job.Labels[label.Run])
	selection.LabelSelector += "," + labels.Set{"job-name": check.Job.Name}.String()
	pods, err := client.CoreV1().Pods(check.Job.Namespace).List(ctx, selection)
	if err != nil {
		return nil, fmt.Errorf("could not list the pods of Job %q: %w", check.Job.Name, err)
	}
	return pods.Items, nil
}

func ofRun(run string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{label.Run: run}.String()}
}

// logOf returns the first maxLog+1 bytes of the check's log.
func logOf(ctx context.Context, client kubernetes.Interface, pod corev1.Pod, container string) ([]byte, error) {
	stream, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, LimitBytes: new(int64(requirement.MaxLog + 1)),
	}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the log of pod %q: %w", pod.Name, err)
	}
	text, err := io.ReadAll(io.LimitReader(stream, requirement.MaxLog+1))
	if err := errors.Join(err, stream.Close()); err != nil {
		return nil, fmt.Errorf("could not read the log of pod %q: %w", pod.Name, err)
	}
	return text, nil
}
