// Package owner answers: which operators move their pods themselves when a node is drained?
//
// [Owners.Of] is what the operator of a pod does, according to a table of operators
// ([Table]) and the objects that they own.
package owner

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Behavior is what an operator does with its pod when its node is drained.
type Behavior string

// The behaviors.
const (
	// None is a pod that no operator of the table owns.
	None Behavior = ""
	// Moves is a pod that the operator makes evictable and creates again: a refusal by its budget is progress.
	Moves Behavior = "Moves"
	// Migrates is a pod that stays until the operator runs it on another node.
	Migrates Behavior = "Migrates"
	// Stops is a pod that is evicted with an interruption of what it serves.
	Stops Behavior = "Stops"
	// Stays is a pod whose eviction the operator denies until its settings change.
	Stays Behavior = "Stays"
	// Holds is a pod whose budget the operator keeps until its settings change: a refusal by
	// its budget does not end.
	Holds Behavior = "Holds"
	// Adjusts is a pod whose operator changes the budget by the health of what it runs,
	// which the API does not show.
	Adjusts Behavior = "Adjusts"
	// Returns is a pod that its budget lets go, and that the operator creates again on the same
	// node once that is schedulable.
	Returns Behavior = "Returns"
)

// Answer is what the operator of a pod does.
type Answer struct {
	Behavior Behavior
	// Operator is its name in the table; empty for a pod of which the table says nothing.
	Operator string
	// Why is a clause with its subject, such as "the machine is migrated to another node"; empty only
	// where Operator is.
	Why string
	// Remedy is an imperative sentence about the operator's settings; empty for Moves and Returns.
	Remedy string
}

type key struct {
	schema.GroupKind

	namespace, name string
}

// Owners finds the operators of pods.
type Owners struct {
	objects map[key]*unstructured.Unstructured
	webhook map[string]bool
	table   []Operator
}

// New indexes the objects of operators: VirtualMachineInstances, Clusters of CloudNativePG and
// others of the kinds in the table. Webhooks are the names of the webhooks that the API
// server calls for pods/eviction and that can respond.
func New(objects []unstructured.Unstructured, webhooks []string) *Owners {
	o := &Owners{objects: map[key]*unstructured.Unstructured{}, webhook: map[string]bool{}, table: table()}
	for i := range objects {
		o.objects[key{objects[i].GroupVersionKind().GroupKind(), objects[i].GetNamespace(), objects[i].GetName()}] = &objects[i]
	}
	for _, name := range webhooks {
		o.webhook[name] = true
	}
	return o
}

// The webhooks of operators of the table. They let pass what is not a pod of their operator.
const (
	kubevirtWebhook = "virt-launcher-eviction-interceptor.kubevirt.io"
	strimziWebhook  = "strimzi-drain-cleaner.strimzi.io"
)

// Answers reports whether the table has the answers of a webhook on pods/eviction.
func Answers(webhook string) bool { return webhook == kubevirtWebhook || webhook == strimziWebhook }

// Operator is a row of the table.
type Operator struct {
	Name string
	// Group is the API group of its objects, which own its pods, or the end of it after a dot; empty
	// for an operator whose pods are recognized by their labels.
	Group string

	recognizes func(*corev1.Pod) bool
	judge      func(*Owners, *corev1.Pod, *metav1.OwnerReference) Answer
}

// Of is what the operator of a pod does.
func (o *Owners) Of(pod *corev1.Pod) Answer {
	if o == nil {
		return Answer{}
	}
	for i := range pod.OwnerReferences {
		reference := &pod.OwnerReferences[i]
		group := "." + KindOf(reference).Group
		for j := range o.table {
			if row := &o.table[j]; row.Group != "" && strings.HasSuffix(group, "."+row.Group) {
				return row.answer(o, pod, reference)
			}
		}
	}
	for i := range o.table {
		if row := &o.table[i]; row.recognizes != nil && row.recognizes(pod) {
			return row.answer(o, pod, nil)
		}
	}
	return Answer{}
}

func (row *Operator) answer(o *Owners, pod *corev1.Pod, reference *metav1.OwnerReference) Answer {
	answer := row.judge(o, pod, reference)
	if answer.Why != "" {
		answer.Operator = row.Name
	}
	return answer
}

// KindOf is the kind of an owner with its API group: there are a StatefulSet and a DaemonSet in other
// groups than that of Kubernetes.
func KindOf(reference *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
}

// object is the object that owns a pod; nil where it was not read.
func (o *Owners) object(pod *corev1.Pod, reference *metav1.OwnerReference) *unstructured.Unstructured {
	return o.objects[key{KindOf(reference), pod.Namespace, reference.Name}]
}
