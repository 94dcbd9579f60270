package conformance

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

// Stopped reports whether the kubelet stopped a check, as observed in its pod.
func Stopped(check launch.Check, pod corev1.Pod) bool { return observe(check, pod).stopped }

// Replaces reports whether a second attempt counts instead of the first. End is nil if it
// did not end.
func Replaces(end *corev1.ContainerStateTerminated, stopped bool, outcome preflight.Outcome) bool {
	second := attempt{end: end, stopped: stopped, findings: []finding.Finding{{Finding: preflight.Finding{Outcome: outcome}}}}
	return second.replaces()
}
