package jobs

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
)

// PullFailure is why a node cannot pull an image.
type PullFailure struct {
	// Detail is a clause about the cause, Remedy an imperative sentence.
	Detail, Remedy string
	// Actions are the commands of the remedy.
	Actions []finding.Action
	// Final is true when a retry cannot succeed.
	Final bool
}

// FailedPull returns why the image of a container cannot be pulled; false when
// no failure is reported.
func FailedPull(container corev1.ContainerStatus) (PullFailure, bool) {
	if container.State.Waiting == nil {
		return PullFailure{}, false
	}
	why, ok := containerWaiting(Observation{}, container.Name, container.Image, container.State.Waiting)
	if !ok || why.reason != ReasonImagePull {
		return PullFailure{}, false
	}
	return PullFailure{Detail: why.detail, Remedy: why.remedy, Actions: why.actions, Final: why.timeout == 0}, true
}
