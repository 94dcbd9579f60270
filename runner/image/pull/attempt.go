package pull

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
)

// grace is how long to put up with a failure that may pass by itself.
const grace = 90 * time.Second

// attempt is what came of pulling onto one node.
type attempt struct {
	node string
	// failed has why an image was not pulled, by pull spec.
	failed map[string]jobs.PullFailure
	// trouble is what kept the node from trying all of them, if anything.
	trouble, remedy string
}

// pullOnto starts the Job of one node and waits until the node has tried each
// image.
func (n Nodes) pullOnto(ctx context.Context, node string, check launch.Check) attempt {
	if err := n.Start.Start(ctx, check); err != nil {
		explained := launch.Explain(check, err)
		return attempt{node: node, trouble: explained.Message, remedy: explained.Remediation}
	}
	last := attempt{node: node, trouble: "no pod has come of the Job"}
	start := time.Now()
	_, err := watchtools.UntilWithSync(ctx, n.pods(check), &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		read, done := Read(pod, time.Since(start))
		last = attempt{node: node, failed: read.Failed, trouble: read.Trouble, remedy: read.Remedy}
		return done, nil
	})
	if err != nil {
		last.trouble = "it took too long: " + cmp.Or(last.trouble, err.Error())
	}
	return last
}

func (n Nodes) pods(check launch.Check) *cache.ListWatch {
	client := n.Client.CoreV1().Pods(check.Job.Namespace)
	selector := labels.Set{"batch.kubernetes.io/job-name": check.Job.Name}.String()
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

// Reading is what a pod says about the images of its containers.
type Reading struct {
	// Failed has why an image is not to be had, by pull spec.
	Failed map[string]jobs.PullFailure
	// Trouble is what keeps the node from trying the others.
	Trouble, Remedy string
}

// Read says what a pod, which was asked for so long ago, means. It is done when
// each image was pulled, or failed for good. It is pure.
func Read(pod *corev1.Pod, waited time.Duration) (Reading, bool) {
	read := Reading{Failed: map[string]jobs.PullFailure{}}
	tried := 0
	open := false
	for _, container := range pod.Status.ContainerStatuses {
		failure, failed := jobs.FailedPull(container)
		switch {
		case failed:
			read.Failed[specOf(pod, container.Name)] = failure
			open = open || !failure.Final && waited < grace
			tried++
		case pulled(container):
			tried++
		}
	}
	missing := len(pod.Spec.Containers) - tried
	if missing == 0 {
		return read, !open
	}
	read.Trouble = fmt.Sprintf("%d of %d images were not tried", missing, len(pod.Spec.Containers))
	read.Remedy = "See what the node does: oc get events -n " + pod.Namespace + " --field-selector involvedObject.name=" + pod.Name
	if pod.Status.Phase == corev1.PodFailed {
		read.Trouble += fmt.Sprintf(" before the pod ended (%s)", cmp.Or(pod.Status.Reason, "without a reason"))
		return read, true
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			read.Trouble += ": the pod finds no room there (" + condition.Reason + ")"
		}
	}
	return read, false
}

// specOf is the pull spec as the Job has it: a node may call it otherwise.
func specOf(pod *corev1.Pod, container string) string {
	for _, each := range pod.Spec.Containers {
		if each.Name == container {
			return each.Image
		}
	}
	return ""
}

// pulled is true when the kubelet has come past the pulling, whatever came
// then: a kubelet pulls before it looks at anything else of the container
// (pkg/kubelet/kuberuntime, startContainer).
func pulled(container corev1.ContainerStatus) bool {
	if waiting := container.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "CrashLoopBackOff":
			return true
		}
		return false
	}
	if ended := container.State.Terminated; ended != nil {
		// A kubelet makes up an end for a container that never was.
		return container.ImageID != "" || ended.ContainerID != ""
	}
	return container.State.Running != nil
}
