// Package recreation answers: is a pod that a drain evicts created again?
//
// [New] indexes what creates pods and what may refuse them, and [Workloads.Of] is the answer
// for one pod. Quotas, limits and priorities are compared with the template of its controller,
// since they may be newer than the pod. Webhooks are not read.
package recreation

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Input is what the answer depends on. With Unread, a list may be incomplete, and a controller
// that is not in it is not taken for missing.
type Input struct {
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet
	Controllers  []corev1.ReplicationController
	Jobs         []batchv1.Job
	Quotas       []corev1.ResourceQuota
	Limits       []corev1.LimitRange
	Priorities   []schedulingv1.PriorityClass
	Unread       bool
}

// Outcome is what becomes of a pod after its eviction.
type Outcome string

// The outcomes.
const (
	// Recreated is a pod that its controller creates again.
	Recreated Outcome = "Recreated"
	// Lost is a pod that nothing creates again.
	Lost Outcome = "Lost"
	// Refused is a pod that its controller tries to create, and that the API server refuses.
	Refused Outcome = "Refused"
	// Unknown is a pod of a controller that is not one of Kubernetes.
	Unknown Outcome = "Unknown"
)

// Answer is what becomes of a pod, and why.
type Answer struct {
	Outcome Outcome
	// Why is a clause without a subject, such as "has no controller"; empty for Recreated.
	Why string
	// By is the object that refuses the pod, such as ResourceQuota "compute".
	By string
}

// Workloads creates pods.
type Workloads struct {
	controllers map[key]controller
	quotas      map[string][]*corev1.ResourceQuota
	limits      map[string][]*corev1.LimitRange
	priorities  map[string]bool
	unread      bool
}

type key struct{ kind, namespace, name string }

type controller struct {
	template *corev1.PodTemplateSpec
	replicas int
	lost     string
}

// New indexes what creates pods.
func New(input Input) *Workloads {
	w := &Workloads{
		controllers: map[key]controller{}, quotas: map[string][]*corev1.ResourceQuota{}, limits: map[string][]*corev1.LimitRange{},
		priorities: map[string]bool{}, unread: input.Unread,
	}
	for i := range input.ReplicaSets {
		set := &input.ReplicaSets[i]
		w.controllers[key{"ReplicaSet", set.Namespace, set.Name}] = controller{template: &set.Spec.Template, replicas: number(set.Spec.Replicas)}
	}
	for i := range input.StatefulSets {
		set := &input.StatefulSets[i]
		w.controllers[key{"StatefulSet", set.Namespace, set.Name}] = controller{template: &set.Spec.Template, replicas: number(set.Spec.Replicas)}
	}
	for i := range input.Controllers {
		set := &input.Controllers[i]
		w.controllers[key{"ReplicationController", set.Namespace, set.Name}] = controller{template: set.Spec.Template, replicas: number(set.Spec.Replicas)}
	}
	for i := range input.Jobs {
		job := &input.Jobs[i]
		w.controllers[key{"Job", job.Namespace, job.Name}] = controller{template: &job.Spec.Template, replicas: number(job.Spec.Parallelism), lost: exhausted(job)}
	}
	for i := range input.Quotas {
		w.quotas[input.Quotas[i].Namespace] = append(w.quotas[input.Quotas[i].Namespace], &input.Quotas[i])
	}
	for i := range input.Limits {
		w.limits[input.Limits[i].Namespace] = append(w.limits[input.Limits[i].Namespace], &input.Limits[i])
	}
	for i := range input.Priorities {
		w.priorities[input.Priorities[i].Name] = true
	}
	return w
}

// number is a number of replicas, one by default.
func number(replicas *int32) int {
	if replicas == nil {
		return 1
	}
	return int(*replicas)
}

// exhausted is why a Job creates no pod in place of one that is evicted: an evicted pod counts
// as failed, unless a rule of its podFailurePolicy ignores disruptions.
func exhausted(job *batchv1.Job) string {
	const byDefault = 6
	limit := int32(byDefault)
	if job.Spec.BackoffLimit != nil {
		limit = *job.Spec.BackoffLimit
	}
	if job.Status.Failed < limit || ignoresDisruptions(job) {
		return ""
	}
	return fmt.Sprintf("is of Job %q, whose backoffLimit %d its eviction exceeds", job.Name, limit)
}

func ignoresDisruptions(job *batchv1.Job) bool {
	if job.Spec.PodFailurePolicy == nil {
		return false
	}
	for _, rule := range job.Spec.PodFailurePolicy.Rules {
		for _, condition := range rule.OnPodConditions {
			if rule.Action == batchv1.PodFailurePolicyActionIgnore && condition.Type == corev1.DisruptionTarget {
				return true
			}
		}
	}
	return false
}

// Replicas is how many pods the controller of a pod keeps; false where that is unknown.
func (w *Workloads) Replicas(pod *corev1.Pod) (int, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return 0, false
	}
	found, ok := w.controllers[key{owner.Kind, pod.Namespace, owner.Name}]
	return found.replicas, ok
}

// Of is what becomes of a pod after its eviction.
func (w *Workloads) Of(pod *corev1.Pod) Answer {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil && len(pod.OwnerReferences) > 0 {
		owner = &pod.OwnerReferences[0] // such as a CatalogSource, whose operator creates its pods
	}
	if owner == nil {
		return Answer{Outcome: Lost, Why: "has no controller"}
	}
	found, ok := w.controllers[key{owner.Kind, pod.Namespace, owner.Name}]
	if !ok {
		return w.unlisted(owner)
	}
	if found.lost != "" {
		return Answer{Outcome: Lost, Why: found.lost}
	}
	if found.template == nil {
		return Answer{Outcome: Recreated}
	}
	return w.admit(pod, found.template)
}

func (w *Workloads) unlisted(owner *metav1.OwnerReference) Answer {
	switch owner.Kind {
	case "DaemonSet":
		return Answer{Outcome: Recreated}
	case "ReplicaSet", "StatefulSet", "ReplicationController", "Job":
		if w.unread {
			return Answer{Outcome: Recreated}
		}
		return Answer{Outcome: Lost, Why: fmt.Sprintf("is of %s %q, which does not exist", owner.Kind, owner.Name)}
	}
	return Answer{Outcome: Unknown, Why: fmt.Sprintf("is of %s %q, whose controller is not one of Kubernetes", owner.Kind, owner.Name)}
}
