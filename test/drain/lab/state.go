package lab

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ready reports whether a pod is ready.
func Ready(pod *corev1.Pod) bool {
	return condition(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

func condition(pod *corev1.Pod, of corev1.PodConditionType) corev1.PodCondition {
	for _, found := range pod.Status.Conditions {
		if found.Type == of {
			return found
		}
	}
	return corev1.PodCondition{}
}

// ControllerOf is the controller of an object; empty for one without.
func ControllerOf(object metav1.Object) metav1.OwnerReference {
	if of := metav1.GetControllerOfNoCopy(object); of != nil {
		return *of
	}
	return metav1.OwnerReference{}
}

// Absent counts the pods without a node, or that are missing, as in Outcome, given the cluster before the
// drains.
func (c *Cluster) Absent(before *Cluster) map[string]int {
	found := before.wanted()
	for i := range c.Pods {
		count(&c.Pods[i], found)
	}
	maps.DeleteFunc(found, func(_ string, number int) bool { return number <= 0 })
	return found
}

// wanted counts the pods that are to have a node, by controller. Those of DaemonSets are to have one if
// they exist.
func (c *Cluster) wanted() map[string]int {
	found := map[string]int{}
	for i := range c.Pods {
		switch by := ControllerOf(&c.Pods[i]); by.Kind {
		case "DaemonSet":
		default:
			found[cmp.Or(by.Name, c.Pods[i].Name)]++
		}
	}
	for i := range c.ReplicaSets {
		found[c.ReplicaSets[i].Name] = int(*c.ReplicaSets[i].Spec.Replicas)
	}
	for i := range c.StatefulSets {
		found[c.StatefulSets[i].Name] = int(*c.StatefulSets[i].Spec.Replicas)
	}
	for i := range c.Jobs {
		found[c.Jobs[i].Name] = int(*c.Jobs[i].Spec.Parallelism)
	}
	return found
}

// Missing counts the pods that are to exist and do not, by controller: they have no names.
func (c *Cluster) Missing() map[string]int {
	found := c.wanted()
	for i := range c.Pods {
		found[OwnerOf(&c.Pods[i])]--
	}
	maps.DeleteFunc(found, func(_ string, number int) bool { return number <= 0 })
	return found
}

// OwnerOf is the name of the controller of a pod; its own if it has none.
func OwnerOf(pod *corev1.Pod) string { return cmp.Or(ControllerOf(pod).Name, pod.Name) }

// Guards reports whether a pod is a guard of a component of the control plane.
func Guards(pod *corev1.Pod) bool { return pod.Labels["app"] == "guard" }

// Ended reports whether a pod has ended.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// count takes a pod with a node from those that are to have one. One that is being deleted keeps its name,
// unless its controller gives each pod another one. One of a DaemonSet is absent if it has none.
func count(pod *corev1.Pod, absent map[string]int) {
	by, placed := ControllerOf(pod), pod.Spec.NodeName != ""
	switch {
	case by.Kind == "DaemonSet":
		if !placed {
			absent[by.Name]++
		}
	case (by.Kind == "ReplicaSet" || by.Kind == "Job") && pod.DeletionTimestamp != nil, Ended(pod):
	case placed:
		absent[OwnerOf(pod)]--
	}
}

// String is where the pods are, and what their budgets allow.
func (c *Cluster) String() string {
	var text strings.Builder
	for i := range c.Nodes {
		node := &c.Nodes[i]
		fmt.Fprintf(&text, "node %s, zone %s, %s processors, cordoned %t\n", node.Name, node.Labels[corev1.LabelTopologyZone],
			node.Status.Allocatable.Cpu(), node.Spec.Unschedulable)
	}
	for i := range c.Pods {
		pod := &c.Pods[i]
		fmt.Fprintf(&text, "%s on %q, %s, ready %t, leaving %t, %s processors, %s, %s\n", pod.Name, pod.Spec.NodeName, pod.Status.Phase,
			Ready(pod),
			pod.DeletionTimestamp != nil, pod.Spec.Containers[0].Resources.Requests.Cpu(), pod.Spec.PriorityClassName,
			condition(pod, corev1.PodScheduled).Message)
	}
	for i := range c.Budgets {
		of := &c.Budgets[i]
		fmt.Fprintf(&text, "budget %s: at least %v, at most %v without; %d allowed, %d healthy, %d desired, %d expected, disrupted %v, %v\n",
			of.Name, of.Spec.MinAvailable, of.Spec.MaxUnavailable, of.Status.DisruptionsAllowed, of.Status.CurrentHealthy, of.Status.DesiredHealthy,
			of.Status.ExpectedPods, of.Status.DisruptedPods, of.Status.Conditions)
	}
	for i := range c.Quotas {
		fmt.Fprintf(&text, "quota %s: of %v, used %v\n", c.Quotas[i].Name, c.Quotas[i].Spec.Hard, c.Quotas[i].Status.Used)
	}
	return text.String()
}
