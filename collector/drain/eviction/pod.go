package eviction

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod is what the outcome of an eviction depends on, apart from budgets.
type Pod struct {
	// Ready is true if the condition Ready is true.
	Ready bool
	// Unstarted is true for a pod in phase Pending, and Ended for one in phase Succeeded or
	// Failed. The API server deletes both without looking at budgets.
	Unstarted, Ended bool
	Terminating      bool
	// Kept is why a drain does not evict the pod: KeptDaemonSet or KeptMirror; empty for all others.
	Kept Kept
}

// Kept is why a drain leaves a pod on its node.
type Kept string

// The reasons (kubectl pkg/drain/filters.go).
const (
	// KeptDaemonSet is a pod of a DaemonSet that exists.
	KeptDaemonSet Kept = "DaemonSet"
	// KeptMirror is the mirror of a static pod.
	KeptMirror Kept = "Mirror"
)

// PodOf is the pod as an eviction meets it. daemonSet reports whether a DaemonSet exists; a
// drain with the option Force, as that of MCO, evicts the pods of one that does not. Where nil,
// all exist.
func PodOf(pod *corev1.Pod, daemonSet func(namespace, name string) bool) Pod {
	return Pod{
		Ready:       Ready(pod),
		Unstarted:   pod.Status.Phase == corev1.PodPending,
		Ended:       pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Terminating: pod.DeletionTimestamp != nil,
		Kept:        keptOf(pod, daemonSet),
	}
}

// Ready reports whether the condition Ready of a pod is true.
func Ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

func keptOf(pod *corev1.Pod, daemonSet func(namespace, name string) bool) Kept {
	if _, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		return KeptMirror
	}
	// Only the kind is compared, and ended pods of a DaemonSet are deleted
	// (kubectl pkg/drain/filters.go, daemonSetFilter).
	owner := metav1.GetControllerOfNoCopy(pod)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if owner == nil || owner.Kind != "DaemonSet" || ended {
		return ""
	}
	if daemonSet != nil && !daemonSet(pod.Namespace, owner.Name) {
		return ""
	}
	return KeptDaemonSet
}
