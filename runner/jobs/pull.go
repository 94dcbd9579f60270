package jobs

import corev1 "k8s.io/api/core/v1"

// PullFailure is why a node does not get an image.
type PullFailure struct {
	// Detail is a clause for people, Remedy what to do.
	Detail, Remedy string
	// Final is true when it will not get better by itself.
	Final bool
}

// FailedPull says why the node does not get the image of a container; false when
// it is not known to fail.
func FailedPull(container corev1.ContainerStatus) (PullFailure, bool) {
	if container.State.Waiting == nil {
		return PullFailure{}, false
	}
	why, ok := Observation{}.containerWaits(container.Name, container.Image, container.State.Waiting)
	if !ok || why.cause != causeImagePull {
		return PullFailure{}, false
	}
	return PullFailure{Detail: why.detail, Remedy: why.remedy, Final: why.patience == 0}, true
}
