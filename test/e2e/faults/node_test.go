package faults_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeFaults remove the node of a running check.
func nodeFaults() []fault {
	return []fault{
		{name: "node drained", onPods: true, during: whenFirstRuns(drain), pods: map[string]int{"first": 2, "second": 1}},
		{name: "node deleted and created again", onPods: true, during: whenFirstRuns(deleteNode)},
	}
}

// drain evicts the running check, and keeps the node unschedulable until the check has
// another pod.
func drain(t *testing.T, e environment, run proxiedRun) {
	t.Helper()
	e.cordon(t, "true")
	// The run may observe that the pod is running before the observer does.
	e.observer.await(t, run, "its check is running", func() bool { return len(e.observer.running(e.namespace, "first")) > 0 })
	for _, pod := range e.observer.running(e.namespace, "first") {
		err := e.client.PolicyV1().Evictions(e.namespace).Evict(t.Context(), &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	e.observer.await(t, run, "its check has another pod", func() bool { return e.observer.executions(e.namespace)["first"] == 2 })
	e.cordon(t, "false")
}

func (e environment) cordon(t *testing.T, unschedulable string) {
	t.Helper()
	patch := []byte(`{"spec":{"unschedulable":` + unschedulable + `}}`)
	_, err := e.client.CoreV1().Nodes().Patch(t.Context(), e.node(t), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (e environment) node(t *testing.T) string {
	t.Helper()
	nodes, err := e.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("want one node, got %d: %v", len(nodes.Items), err)
	}
	return nodes.Items[0].Name
}

// deleteNode deletes the Node object, which the restarted kubelet creates again.
func deleteNode(t *testing.T, e environment, _ proxiedRun) {
	t.Helper()
	if err := local.Crash(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
	if err := e.client.CoreV1().Nodes().Delete(t.Context(), e.node(t), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := local.Revive(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
}
