package eviction

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Budgets finds the budgets that select a pod. Each is indexed by one label that it requires,
// so that a pod is not compared with all.
type Budgets struct {
	byNamespace map[string]*selection
	// Invalid are the budgets whose selector cannot be parsed, as namespace/name, in the
	// given order. The API server takes them for budgets that select nothing.
	Invalid []string
}

type selection struct {
	byLabel map[string][]selector
	// others require no particular label.
	others []selector
}

type selector struct {
	labels labels.Selector
	at     int
}

// NewBudgets indexes budgets. A selector {} selects all pods of the namespace, and none selects none (policy/v1).
func NewBudgets(budgets []policyv1.PodDisruptionBudget) *Budgets {
	index := &Budgets{byNamespace: map[string]*selection{}}
	for i := range budgets {
		budget := &budgets[i]
		matching, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			index.Invalid = append(index.Invalid, budget.Namespace+"/"+budget.Name)
			continue
		}
		in := index.byNamespace[budget.Namespace]
		if in == nil {
			in = &selection{byLabel: map[string][]selector{}}
			index.byNamespace[budget.Namespace] = in
		}
		in.add(budget.Spec.Selector, selector{labels: matching, at: i})
	}
	return index
}

func (s *selection) add(of *metav1.LabelSelector, added selector) {
	if of != nil {
		for key, value := range of.MatchLabels {
			label := key + "=" + value
			s.byLabel[label] = append(s.byLabel[label], added)
			return
		}
	}
	s.others = append(s.others, added)
}

// Of are the positions, in the list of NewBudgets, of the budgets that select a pod with these labels, sorted.
func (b *Budgets) Of(namespace string, pod map[string]string) []int {
	in := b.byNamespace[namespace]
	if in == nil {
		return nil
	}
	var found []int
	add := func(candidates []selector) {
		for _, candidate := range candidates {
			if candidate.labels.Matches(labels.Set(pod)) {
				found = append(found, candidate.at)
			}
		}
	}
	add(in.others)
	if len(in.byLabel) > 0 {
		for key, value := range pod {
			add(in.byLabel[key+"="+value])
		}
	}
	slices.Sort(found)
	return found
}

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
