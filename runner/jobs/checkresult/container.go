package checkresult

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// MainContainer is the name of the container that is the check.
func MainContainer(check jobplan.Check) string {
	if containers := check.Job.Spec.Template.Spec.Containers; len(containers) > 0 {
		return containers[0].Name
	}
	return ""
}

// Status is the status of the check's container; nil without one.
func Status(check jobplan.Check, pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == MainContainer(check) {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// Terminated is the last termination of the check's container, also if it was
// restarted since; nil before the first.
func Terminated(check jobplan.Check, pod *corev1.Pod) *corev1.ContainerStateTerminated {
	current := Status(check, pod)
	if current == nil {
		return nil
	}
	if current.State.Terminated != nil {
		return current.State.Terminated
	}
	return current.LastTerminationState.Terminated
}
