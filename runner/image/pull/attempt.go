package pull

import (
	"cmp"
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// retryTime is how long the kubelet may retry a failed pull that a retry can fix.
const retryTime = 90 * time.Second

// Result is the result of the pulls on one node.
type Result struct {
	Failed map[string]diagnosis.PullFailure
	// Incomplete is a clause about why the node did not try all images; empty when it did.
	Incomplete string
	// Remedy is an imperative sentence for Incomplete, or empty. Actions are its commands.
	Remedy  string
	Actions []finding.Action
}

type attempt struct {
	node string
	Result
}

// pullOnto starts the Job of one node and waits until the node has tried each image or ctx ends.
func (n Nodes) pullOnto(ctx context.Context, draft jobplan.Draft) Result {
	if len(draft.Checks) == 0 {
		return notStarted(draft.Refused[0])
	}
	check := draft.Bind(n.Run).Checks[0]
	if err := n.Start.Start(ctx, check); err != nil {
		return notStarted(launch.Explain(check, err))
	}
	last := Result{Incomplete: "the Job has no pod"}
	start := time.Now()
	_, err := watchtools.UntilWithSync(ctx, n.pods(check.Job.Namespace, n.Start.UID(check)), &corev1.Pod{}, nil, func(event watch.Event) (done bool, _ error) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		last, done = Read(pod, time.Since(start))
		return done, nil
	})
	if err != nil {
		last.Incomplete = "the pulls did not end in time: " + cmp.Or(last.Incomplete, err.Error())
	}
	return last
}

// notStarted is the result of a node whose Job was not started, for the reason in the finding.
func notStarted(why finding.Finding) Result {
	return Result{Incomplete: why.Message, Remedy: why.Remediation, Actions: why.Actions}
}

func (n Nodes) pods(namespace string, job types.UID) *cache.ListWatch {
	client := n.Client.CoreV1().Pods(namespace)
	selector := labels.Set{batchv1.ControllerUidLabel: string(job)}.String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return client.Watch(ctx, options)
		},
	}
}

// Read returns the result of a pod whose Job was started before the given duration,
// and whether it is final: each image was pulled, failed permanently, or will not be
// tried.
func Read(pod *corev1.Pod, waited time.Duration) (result Result, done bool) {
	result = Result{Failed: map[string]diagnosis.PullFailure{}}
	tried := 0
	retrying := false
	for _, container := range pod.Status.ContainerStatuses {
		failure, failed := diagnosis.FailedPull(container)
		switch {
		case failed:
			result.Failed[pullSpecOf(pod, container.Name)] = failure
			retrying = retrying || !failure.Final && waited < retryTime
			tried++
		case pulled(container):
			tried++
		}
	}
	missing := len(pod.Spec.Containers) - tried
	if missing == 0 {
		return result, !retrying
	}
	result.Incomplete = fmt.Sprintf("not tried: %d of %s", missing, words.Count(len(pod.Spec.Containers), "image"))
	result.Remedy = "Read the events of the pod."
	result.Actions = []finding.Action{finding.Read("oc get events -n %s --field-selector involvedObject.name=%s", pod.Namespace, pod.Name)}
	if pod.Status.Phase == corev1.PodFailed {
		result.Incomplete += fmt.Sprintf(" before the pod ended (%s)", cmp.Or(pod.Status.Reason, "without a reason"))
		return result, true
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			result.Incomplete += ": the pod cannot be scheduled" + words.Aside(condition.Reason)
		}
	}
	return result, false
}

// pullSpecOf is the pull spec of a container in the Job; the one in its status may differ.
func pullSpecOf(pod *corev1.Pod, container string) string {
	for _, each := range pod.Spec.Containers {
		if each.Name == container {
			return each.Image
		}
	}
	return ""
}

// pulled reports whether the node has the image of a container: the kubelet pulls it
// before all other steps of the start (pkg/kubelet/kuberuntime, startContainer).
func pulled(container corev1.ContainerStatus) bool {
	if waiting := container.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "CrashLoopBackOff":
			return true
		}
		return false
	}
	if ended := container.State.Terminated; ended != nil {
		// A kubelet also reports a termination of a container that never existed.
		return container.ImageID != "" || ended.ContainerID != ""
	}
	return container.State.Running != nil
}
