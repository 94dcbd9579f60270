// Package lab answers: which clusters are drained by the tests of drains?
//
// [Random] makes one from a seed, as values: test/drain creates the objects on an API server.
// [Plain] makes one with Deployments, Parallel StatefulSets, DaemonSets and pods alone, which package
// reference executes without a server.
package lab

import (
	"slices"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Annotations of the simulated nodes of test/cluster, which starts clusters: a test that imports it is
// one with a cluster.
const (
	// AnnotationTakes is how long a pod of a Job runs.
	AnnotationTakes = "simulation-takes"
	// AnnotationReady is how long after its start a pod gets ready, or NeverReady.
	AnnotationReady = "simulation-ready"
	// NeverReady is a value of AnnotationReady.
	NeverReady = "never"
	// AnnotationSick is the ordinal of a StatefulSet whose pod never gets ready.
	AnnotationSick = "simulation-sick"
	// AnnotationEnds is how long a deleted pod takes to end.
	AnnotationEnds = "simulation-ends"
)

// Finalizers of pods, that an operator removes once the pod is deleted, and that none removes.
const (
	Removed = "example.com/backup"
	Foreign = "example.com/detach"
)

// Cluster is the objects of a cluster: those that a user creates, and once it has settled, also those
// of its controllers.
type Cluster struct {
	// Namespace is that of all objects with one, but for those of guards.
	Namespace string
	// Objects are of kinds of which a cluster has few: they are created before all others.
	Objects      []runtime.Object
	Nodes        []corev1.Node
	Pools        []machineconfigurationv1.MachineConfigPool
	Priorities   []schedulingv1.PriorityClass
	Volumes      []corev1.PersistentVolume
	Claims       []corev1.PersistentVolumeClaim
	Deployments  []appsv1.Deployment
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet
	DaemonSets   []appsv1.DaemonSet
	Jobs         []batchv1.Job
	Pods         []corev1.Pod
	Budgets      []policyv1.PodDisruptionBudget
	// Owners are objects of operators, and Operated the pods that the operators create, and create again
	// once they are gone; those with a node are guards, which exist while their node is schedulable.
	Owners   []unstructured.Unstructured
	Operated []corev1.Pod
	// LateBudgets, Quotas, Limits and Reviewers, which are webhooks and policies, are created after all pods. Then the
	// Changes are made.
	LateBudgets []policyv1.PodDisruptionBudget
	Quotas      []corev1.ResourceQuota
	Limits      []corev1.LimitRange
	Reviewers   []runtime.Object
	Changes     []Change
	// Starting are created at last: the drains begin while their pods start.
	Starting []appsv1.Deployment
}

// Change is a change of an object by a strategic merge patch, or its deletion.
type Change struct {
	schema.GroupVersionKind

	// Namespace is that of the object; empty for one without.
	Namespace, Name string
	// Patch is empty for a deletion.
	Patch string
	// Status is true for a patch of the status, and Settles for a change after which the cluster settles before the next.
	Status, Settles bool
}

// First are the objects that are created first, in order.
func (c *Cluster) First() []runtime.Object {
	all := slices.Clone(c.Objects)
	all = appendAll(all, c.Priorities)
	all = appendAll(all, c.Nodes)
	all = appendAll(all, c.Pools)
	all = appendAll(all, c.Volumes)
	all = appendAll(all, c.Claims)
	all = appendAll(all, c.Deployments)
	all = appendAll(all, c.ReplicaSets)
	all = appendAll(all, c.StatefulSets)
	all = appendAll(all, c.DaemonSets)
	all = appendAll(all, c.Jobs)
	all = appendAll(all, c.Pods)
	return appendAll(all, c.Budgets)
}

// Late are the objects that are created after the pods.
func (c *Cluster) Late() []runtime.Object {
	return slices.Concat(appendAll(appendAll(appendAll(nil, c.LateBudgets), c.Quotas), c.Limits), c.Reviewers)
}

// Last are the objects whose pods start when the drains begin.
func (c *Cluster) Last() []runtime.Object { return appendAll(nil, c.Starting) }

func appendAll[T any, P interface {
	*T
	runtime.Object
}](to []runtime.Object, all []T) []runtime.Object {
	for i := range all {
		to = append(to, P(&all[i]))
	}
	return to
}

// Confine keeps the pods of the cluster on its nodes: several clusters are on one control plane.
func (c *Cluster) Confine() {
	for _, spec := range c.specs() {
		if spec.NodeName == "" && spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{ClusterLabel: c.Namespace}
		}
	}
}

// specs are those of all pods.
func (c *Cluster) specs() []*corev1.PodSpec {
	var all []*corev1.PodSpec
	for i := range c.Deployments {
		all = append(all, &c.Deployments[i].Spec.Template.Spec)
	}
	for i := range c.ReplicaSets {
		all = append(all, &c.ReplicaSets[i].Spec.Template.Spec)
	}
	for i := range c.StatefulSets {
		all = append(all, &c.StatefulSets[i].Spec.Template.Spec)
	}
	for i := range c.Jobs {
		all = append(all, &c.Jobs[i].Spec.Template.Spec)
	}
	for i := range c.Operated {
		all = append(all, &c.Operated[i].Spec)
	}
	return all
}

// Outcome is how the drains of a cluster ended.
type Outcome struct {
	// Stuck are the nodes whose drain did not end, by pool, sorted.
	Stuck map[string][]string
	// Waiting counts the nodes that are to be drained and whose drains did not begin, by pool.
	Waiting map[string]int
	// Drained counts those that were drained, by pool.
	Drained map[string]int
	// Absent counts the pods without a node, or that do not exist, by the names of their controllers,
	// those without one by their own.
	Absent map[string]int
}
