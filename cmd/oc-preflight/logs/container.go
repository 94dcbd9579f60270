package logs

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

type container struct {
	namespace, pod, name string
	status               corev1.ContainerStatus
}

func (c container) key() string { return c.pod + "/" + c.name }

// containersOf lists the containers of a pod in the order in which they start.
func containersOf(pod *corev1.Pod) []container {
	statuses := map[string]corev1.ContainerStatus{}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		statuses[status.Name] = status
	}
	var all []container
	for _, each := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, container{namespace: pod.Namespace, pod: pod.Name, name: each.Name, status: statuses[each.Name]})
	}
	return all
}

// started reports whether the container has a log.
func (c container) started() bool {
	return c.status.State.Running != nil || c.status.State.Terminated != nil
}

// waiting is why a container has not started.
func (c container) waiting() string {
	why := c.status.State.Waiting
	if why == nil {
		return "the container has not started"
	}
	if why.Message == "" {
		return "the container has not started: " + why.Reason
	}
	return fmt.Sprintf("the container has not started: %s: %s", why.Reason, why.Message)
}

func oldestFirst(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
