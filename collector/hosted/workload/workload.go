// Package workload answers: do the pods of a hosted control plane run, and is there room to update them?
//
// [Read] reads its namespace and the nodes of the management cluster, and [State.Judge] judges them. A
// drain is judged by package eviction and a node by package placement, as in every cluster.
package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
)

const (
	etcd, apiServer = "etcd", "kube-apiserver"
	// maxObjects bounds the objects of a kind in the namespace, and the nodes and namespaces.
	maxObjects = 1000
	// maxPods bounds the pods of the management cluster.
	maxPods = 10000
)

// State is the control plane of a hosted cluster in its management cluster, and where its pods can run.
type State struct {
	namespace string
	// etcd is nil where etcd has no StatefulSet of that name.
	etcd        *appsv1.StatefulSet
	deployments []appsv1.Deployment
	budgets     []policyv1.PodDisruptionBudget
	pods        []corev1.Pod
	// unread is why something of the namespace could not be read; nil if all was.
	unread error

	nodes      []corev1.Node
	namespaces []metav1.PartialObjectMetadata
	// all are the pods of the management cluster.
	all []corev1.Pod
	// unknownRoom is why it is unknown where pods can run; nil if it is known.
	unknownRoom error
}

// Reads are the requests of Read for a namespace. None of them is required.
func Reads(namespace string) []access.Request {
	within := func(verb, group, resource, name string) access.Request {
		return access.Request{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name}
	}
	return []access.Request{
		within("get", appsv1.GroupName, "statefulsets", etcd), within("list", appsv1.GroupName, "deployments", ""),
		within("list", policyv1.GroupName, "poddisruptionbudgets", ""), within("list", "", "pods", ""),
		check.List("", "nodes"), check.List("", "namespaces"), check.List("", "pods"),
	}
}

// Read reads the namespace of a control plane, and the nodes with their pods. What cannot be read is a
// finding of Judge.
func Read(ctx context.Context, management *cluster.Cluster, namespace string) *State {
	s := &State{namespace: namespace}
	if s.unread = s.readNamespace(ctx, management); s.unread == nil {
		s.unknownRoom = s.readRoom(ctx, management)
	}
	return s
}

func (s *State) readNamespace(ctx context.Context, management *cluster.Cluster) error {
	ctx, log := gap.Track(ctx)
	limit := metav1.ListOptions{Limit: maxObjects}
	set, err := management.Kubernetes.AppsV1().StatefulSets(s.namespace).Get(ctx, etcd, metav1.GetOptions{})
	if err == nil {
		s.etcd = set
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("could not read StatefulSet %s/%s: %w", s.namespace, etcd, err)
	}
	deployments, err := management.Kubernetes.AppsV1().Deployments(s.namespace).List(ctx, limit)
	if err = complete("Deployments of namespace "+s.namespace, maxObjects, deployments, err); err != nil {
		return err
	}
	budgets, err := management.Kubernetes.PolicyV1().PodDisruptionBudgets(s.namespace).List(ctx, limit)
	if err = complete("PodDisruptionBudgets of namespace "+s.namespace, maxObjects, budgets, err); err != nil {
		return err
	}
	pods, err := management.Kubernetes.CoreV1().Pods(s.namespace).List(ctx, limit)
	if err = complete("pods of namespace "+s.namespace, maxObjects, pods, err); err != nil {
		return err
	}
	s.deployments, s.budgets, s.pods = deployments.Items, budgets.Items, pods.Items
	return gathered(log)
}

func (s *State) readRoom(ctx context.Context, management *cluster.Cluster) error {
	ctx, log := gap.Track(ctx)
	nodes, err := management.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err = complete("nodes", maxObjects, nodes, err); err != nil {
		return err
	}
	namespaces, err := management.Kubernetes.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err = complete("namespaces", maxObjects, namespaces, err); err != nil {
		return err
	}
	pods, err := management.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: maxPods})
	if err = complete("pods of the management cluster", maxPods, pods, err); err != nil {
		return err
	}
	s.nodes, s.all = nodes.Items, pods.Items
	for i := range namespaces.Items {
		s.namespaces = append(s.namespaces, metav1.PartialObjectMetadata{ObjectMeta: namespaces.Items[i].ObjectMeta})
	}
	return gathered(log)
}

// complete is the error about a list that could not be read, or has more objects than may be read.
func complete(name string, most int, list metav1.ListInterface, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("could not list the %s: %w", name, err)
	case list.GetContinue() != "":
		return fmt.Errorf("there are more than %d %s", most, name)
	}
	return nil
}

// gathered is the error about what an archive of the management cluster lacks.
func gathered(log *gap.Log) error {
	if gaps := log.All(); len(gaps) > 0 {
		return fmt.Errorf("the archive has %s", gaps[0])
	}
	return nil
}
