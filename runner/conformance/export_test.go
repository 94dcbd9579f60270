package conformance

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/runner/launch"
)

// Stopped reports whether the kubelet stopped a check, as observed in its pod.
func Stopped(check launch.Check, pod corev1.Pod) bool { return observe(check, pod).stopped }
