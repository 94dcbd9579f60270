package draining_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/internal/checktest"
)

// hosted is a guest with the nodes of two NodePools, a and b, and a budget on the node of a that never
// allows an eviction.
func hosted() *world {
	w := workers()
	w.pools = nil
	for i, pool := range []string{"a", "b"} {
		w.nodes[i].Annotations = nil
		w.nodes[i].Labels["hypershift.openshift.io/nodePool"] = pool
	}
	w.guarded("shop", "cart")
	return w
}

func TestHosted(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.ExternalTopologyMode))
	for name, tc := range map[string]struct {
		reason string
		pools  []order.NodePool
		want   string
		text   string
	}{
		"ControlPlane": {reason: "the update of a control plane drains no node", want: "Pass AsExpected", text: "drains no node"},
		"Replace":      {reason: "without a limit Cluster API waits for ever", pools: []order.NodePool{{Name: "a"}}, want: "Fail NeverSatisfied"},
		"InPlace": {
			reason: "in place nothing limits a drain", pools: []order.NodePool{{Name: "a", InPlace: true, Timeout: time.Minute}},
			want: "Fail NeverSatisfied",
		},
		"Timeout": {
			reason: "after the limit the machine is deleted: the budget is ignored, and nothing is blocked",
			pools:  []order.NodePool{{Name: "a", Timeout: 10 * time.Minute}},
			want:   "Warn NeverSatisfied", text: "after 10m0s the NodePool deletes the node",
		},
		"Other": {
			reason: "the nodes of other pools are not drained", pools: []order.NodePool{{Name: "b"}}, want: "Pass AsExpected",
			text: "all nodes of 1 NodePool can be drained",
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := server.Responding(hosted().paths(t)).Snapshot(t)
			found, err := draining.Check().Examine(t.Context(),
				check.Subject{Cluster: view.Cluster, Update: checktest.Update(t, "4.18.3", "4.19.0"), Hosted: true, NodePools: tc.pools})
			if err != nil {
				t.Fatal(err)
			}
			got := string(found[0].Outcome) + " " + found[0].Reason
			if diff := cmp.Diff(tc.want, got); diff != "" || !strings.Contains(found[0].Message, tc.text) {
				t.Errorf("%s: %s\n-want +got:\n%s", tc.reason, found[0].Message, diff)
			}
		})
	}
}

// crowded is a guest whose NodePool a has two pods of a budget on one node, and no other node has room.
func crowded(t *testing.T) map[string]checktest.Response {
	t.Helper()
	w := hosted()
	for _, node := range w.nodes {
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
	}
	w.guarded("shop", "full")
	w.pods[1].Spec.NodeName = "w1"
	second, third := w.pods[0].DeepCopy(), w.pods[1].DeepCopy()
	second.Name, third.Name = "cart-1", "full-1"
	w.pods = append(w.pods, second, third)
	w.budgets = w.budgets[:1]
	w.budgets[0].Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: 1, ExpectedPods: 2, DesiredHealthy: 1, CurrentHealthy: 2,
		DisruptionsAllowed: 1,
	}
	paths := w.paths(t)
	sets := []*appsv1.ReplicaSet{}
	for _, name := range []string{"cart", "full"} {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "1"}}
		set.Spec.Replicas = new(int32(2))
		set.Spec.Template.Labels = map[string]string{"app": name}
		sets = append(sets, set)
	}
	paths["/apis/apps/v1/replicasets"] = checktest.Pages(t, "apps/v1", "ReplicaSetList", sets)
	return paths
}

// The pods of a full cluster find room on the node that a NodePool adds.
func TestSurge(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.ExternalTopologyMode))
	for name, tc := range map[string]struct {
		reason string
		pool   order.NodePool
		want   string
	}{
		"Replace": {reason: "the pod moves to the node that is added", pool: order.NodePool{Name: "a"}, want: "Pass"},
		"InPlace": {reason: "no node is added, and the drain waits for ever", pool: order.NodePool{Name: "a", InPlace: true}, want: "Fail"},
	} {
		t.Run(name, func(t *testing.T) {
			view := server.Responding(crowded(t)).Snapshot(t)
			found, err := draining.Check().Examine(t.Context(), check.Subject{
				Cluster: view.Cluster, Update: checktest.Update(t, "4.18.3", "4.19.0"),
				Hosted: true, NodePools: []order.NodePool{tc.pool},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(found[0].Outcome); got != tc.want {
				t.Errorf("%s: %s %s: %s", tc.reason, got, found[0].Reason, found[0].Message)
			}
		})
	}
}
