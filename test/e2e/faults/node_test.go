//go:build faults

package faults_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeFaults take the node from under a check.
func nodeFaults() []fault {
	return []fault{
		{name: "node drained", during: whenFirstRuns(drain), pods: map[string]int{"first": 2, "second": 1}},
		{name: "node deleted, and back", during: whenFirstRuns(deleteNode)},
	}
}

// drain evicts the check that is at work, and lets nothing new onto the node
// until another pod waits for it.
func drain(t *testing.T, s scene, _ work) {
	t.Helper()
	s.cordon(t, "true")
	// The run may have seen the pod run before the witness has.
	s.witness.until(t, func() bool { return len(s.witness.running(s.namespace, "first")) > 0 })
	for _, pod := range s.witness.running(s.namespace, "first") {
		err := s.client.PolicyV1().Evictions(s.namespace).Evict(t.Context(), &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.witness.until(t, func() bool { return s.witness.executions(s.namespace)["first"] == 2 })
	s.cordon(t, "false")
}

func (s scene) cordon(t *testing.T, unschedulable string) {
	t.Helper()
	patch := []byte(`{"spec":{"unschedulable":` + unschedulable + `}}`)
	_, err := s.client.CoreV1().Nodes().Patch(t.Context(), s.node(t), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (s scene) node(t *testing.T) string {
	t.Helper()
	nodes, err := s.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("want one node, got %d: %v", len(nodes.Items), err)
	}
	return nodes.Items[0].Name
}

// deleteNode has the cluster forget its node, which comes back with its kubelet.
func deleteNode(t *testing.T, s scene, _ work) {
	t.Helper()
	if err := local.Crash(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
	if err := s.client.CoreV1().Nodes().Delete(t.Context(), s.node(t), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := local.Revive(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
}
