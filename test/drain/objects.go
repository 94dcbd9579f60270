package drain

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// create creates the objects of the cluster, its quotas last, and waits until it has settled.
func (t *trial) create(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.created.Namespace}}
	if _, err := t.Clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range t.created.Priorities {
		class := &t.created.Priorities[i]
		if _, err := t.Clients.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for i := range t.created.Nodes {
		if err := t.createNode(ctx, &t.created.Nodes[i]); err != nil {
			return err
		}
	}
	if err := t.createWorkloads(ctx); err != nil {
		return err
	}
	if err := t.await(ctx, t.settled); err != nil {
		return err
	}
	for i := range t.created.Quotas {
		if _, err := t.Clients.CoreV1().ResourceQuotas(t.created.Namespace).Create(ctx, &t.created.Quotas[i], metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return t.await(ctx, t.settled)
}

// createNode creates a node, and removes the taint of new nodes.
func (t *trial) createNode(ctx context.Context, node *corev1.Node) error {
	if _, err := t.Clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": node.Spec.Taints}})
	if err != nil {
		return err
	}
	_, err = t.Clients.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (t *trial) createWorkloads(ctx context.Context) error {
	namespace, options := t.created.Namespace, metav1.CreateOptions{}
	for i := range t.created.Deployments {
		if _, err := t.Clients.AppsV1().Deployments(namespace).Create(ctx, &t.created.Deployments[i], options); err != nil {
			return err
		}
	}
	for i := range t.created.StatefulSets {
		if _, err := t.Clients.AppsV1().StatefulSets(namespace).Create(ctx, &t.created.StatefulSets[i], options); err != nil {
			return err
		}
	}
	for i := range t.created.DaemonSets {
		if _, err := t.Clients.AppsV1().DaemonSets(namespace).Create(ctx, &t.created.DaemonSets[i], options); err != nil {
			return err
		}
	}
	for i := range t.created.Pods {
		if _, err := t.Clients.CoreV1().Pods(namespace).Create(ctx, &t.created.Pods[i], options); err != nil {
			return err
		}
	}
	for i := range t.created.Budgets {
		if _, err := t.Clients.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, &t.created.Budgets[i], options); err != nil {
			return err
		}
	}
	return nil
}

// read is the cluster as it is now.
func (t *trial) read(ctx context.Context) (lab.Cluster, error) {
	found := lab.Cluster{Namespace: t.created.Namespace, Pools: t.created.Pools}
	nodes, err := t.Clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: lab.ClusterLabel + "=" + found.Namespace})
	if err != nil {
		return found, err
	}
	pods, err := t.Clients.CoreV1().Pods(found.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return found, err
	}
	budgets, err := t.Clients.PolicyV1().PodDisruptionBudgets(found.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return found, err
	}
	quotas, err := t.Clients.CoreV1().ResourceQuotas(found.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return found, err
	}
	found.Nodes, found.Pods, found.Budgets, found.Quotas = nodes.Items, pods.Items, budgets.Items, quotas.Items
	return found, t.readWorkloads(ctx, &found)
}

func (t *trial) readWorkloads(ctx context.Context, found *lab.Cluster) error {
	replicas, err := t.Clients.AppsV1().ReplicaSets(found.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	stateful, err := t.Clients.AppsV1().StatefulSets(found.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	daemons, err := t.Clients.AppsV1().DaemonSets(found.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	found.ReplicaSets, found.StatefulSets, found.DaemonSets = replicas.Items, stateful.Items, daemons.Items
	return nil
}

// remove deletes the cluster.
func (t *trial) remove(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := t.Clients.CoreV1().Namespaces().Delete(ctx, t.created.Namespace, now); err != nil {
		return err
	}
	for i := range t.created.Nodes {
		if err := t.Clients.CoreV1().Nodes().Delete(ctx, t.created.Nodes[i].Name, now); err != nil {
			return err
		}
	}
	return nil
}
