// Package lab answers: which clusters are drained by the tests of drains?
//
// [Random] makes one from a seed, as values: test/drain creates the objects on an API server, and
// package reference executes them without one.
package lab

import (
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Annotations of the simulated nodes of test/cluster, which starts clusters: a test that imports it is
// one with a cluster.
const (
	// AnnotationReady is how long after its start a pod gets ready, or NeverReady.
	AnnotationReady = "simulation-ready"
	// NeverReady is a value of AnnotationReady.
	NeverReady = "never"
)

// Cluster is the objects of a cluster: those that a user creates, and once it has settled, also those
// of its controllers.
type Cluster struct {
	// Namespace is that of all objects with one.
	Namespace    string
	Nodes        []corev1.Node
	Pools        []machineconfigurationv1.MachineConfigPool
	Priorities   []schedulingv1.PriorityClass
	Deployments  []appsv1.Deployment
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet
	DaemonSets   []appsv1.DaemonSet
	Pods         []corev1.Pod
	Budgets      []policyv1.PodDisruptionBudget
	// Quotas are created after all pods.
	Quotas []corev1.ResourceQuota
}

// Outcome is how the drains of a cluster ended.
type Outcome struct {
	// Stuck are the nodes whose drain did not end, by pool, sorted.
	Stuck map[string][]string
	// Absent counts the pods without a node, or that do not exist, by the names of their controllers,
	// those without one by their own.
	Absent map[string]int
}
