package order_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain/order"
)

// node is a node that MCO manages, the younger the greater its age.
func node(name, role, zone string, age int, changes ...func(*corev1.Node)) corev1.Node {
	found := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, age, 0, time.UTC)),
			Labels: map[string]string{role: ""},
			Annotations: map[string]string{
				"machineconfiguration.openshift.io/currentConfig": "a",
				"machineconfiguration.openshift.io/desiredConfig": "a", "machineconfiguration.openshift.io/state": "Done",
			},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if zone != "" {
		found.Labels[corev1.LabelTopologyZone] = zone
	}
	for _, change := range changes {
		change(&found)
	}
	return found
}

func pool(name, unavailable string, changes ...func(*machineconfigurationv1.MachineConfigPool)) machineconfigurationv1.MachineConfigPool {
	found := machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	found.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{name: ""}}
	if unavailable != "" {
		found.Spec.MaxUnavailable = new(intstr.Parse(unavailable))
	}
	for _, change := range changes {
		change(&found)
	}
	return found
}

func cordoned(node *corev1.Node)  { node.Spec.Unschedulable = true }
func unmanaged(node *corev1.Node) { node.Annotations = nil }
func windows(node *corev1.Node)   { node.Labels[corev1.LabelOSStable] = "windows" }
func notReady(node *corev1.Node)  { node.Status.Conditions[0].Status = corev1.ConditionUnknown }
func configuring(node *corev1.Node) {
	node.Annotations["machineconfiguration.openshift.io/desiredConfig"] = "b"
}

func inState(state string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Annotations["machineconfiguration.openshift.io/state"] = state }
}

func also(role string) func(*corev1.Node) { return func(node *corev1.Node) { node.Labels[role] = "" } }

func paused(pool *machineconfigurationv1.MachineConfigPool) { pool.Spec.Paused = true }

func TestOf(t *testing.T) {
	t.Parallel()
	type nodes = []corev1.Node
	type pools = []machineconfigurationv1.MachineConfigPool
	skipped := func(name, pool string, why order.Skip, state order.Unavailability) order.Skipped {
		return order.Skipped{Node: name, Pool: pool, Why: why, State: state}
	}
	for name, tc := range map[string]struct {
		reason  string
		input   order.Input
		pools   []order.Pool
		skipped []order.Skipped
		blocked bool // the first pool
		waits   bool // the first pool
	}{
		"Zones": {
			reason: "by zone, nodes without one last, then the oldest",
			input: order.Input{Pools: pools{pool("worker", "")}, Nodes: nodes{
				node("n", "worker", "", 0), node("b-old", "worker", "b", 1), node("a-new", "worker", "a", 9), node("a-old", "worker", "a", 2),
			}},
			pools: []order.Pool{{Name: "worker", MaxUnavailable: 1, Nodes: []string{"a-old", "a-new", "b-old", "n"}}},
		},
		"Percentage": {
			reason: "a percentage is rounded down, and is at least one",
			input: order.Input{Pools: pools{pool("worker", "40%"), pool("infra", "10%")}, Nodes: nodes{
				node("a", "worker", "", 0), node("b", "worker", "", 1), node("c", "worker", "", 2), node("d", "worker", "", 3),
				node("i", "infra", "", 4),
			}},
			pools: []order.Pool{
				{Name: "infra", MaxUnavailable: 1, Nodes: []string{"i"}},
				{Name: "worker", MaxUnavailable: 1, Nodes: []string{"a", "b", "c", "d"}},
			},
		},
		"Custom": {
			reason: "a custom pool takes its nodes from worker",
			input: order.Input{
				Pools: pools{pool("worker", ""), pool("infra", "2")},
				Nodes: nodes{node("i", "infra", "", 0, also("worker")), node("w", "worker", "", 1)},
			},
			pools: []order.Pool{
				{Name: "infra", MaxUnavailable: 2, Nodes: []string{"i"}},
				{Name: "worker", MaxUnavailable: 1, Nodes: []string{"w"}},
			},
		},
		"TwoCustom": {
			reason:  "MCO refuses a node in two custom pools",
			input:   order.Input{Pools: pools{pool("gpu", ""), pool("infra", "")}, Nodes: nodes{node("i", "infra", "", 0, also("gpu"))}},
			skipped: []order.Skipped{skipped("i", "gpu", order.SeveralPools, "")},
		},
		"Paused": {
			reason:  "a paused pool keeps its nodes",
			input:   order.Input{Pools: pools{pool("worker", "", paused)}, Nodes: nodes{node("a", "worker", "", 0)}},
			skipped: []order.Skipped{skipped("a", "worker", order.Paused, "")},
		},
		"SingleReplica": {
			reason: "no node is drained, workers neither",
			input: order.Input{
				Topology: configv1.SingleReplicaTopologyMode, Pools: pools{pool("worker", "")},
				Nodes: nodes{node("a", "worker", "", 0)},
			}, skipped: []order.Skipped{skipped("a", "", order.SingleReplica, "")},
		},
		"Cordoned": {
			reason: "one cordoned node silently stops a pool with maxUnavailable 1", blocked: true,
			input:   order.Input{Pools: pools{pool("worker", "")}, Nodes: nodes{node("a", "worker", "", 0, cordoned), node("b", "worker", "", 1)}},
			pools:   []order.Pool{{Name: "worker", MaxUnavailable: 1, Nodes: []string{"b"}, Unavailable: []string{"a"}}},
			skipped: []order.Skipped{skipped("a", "worker", order.Unavailable, order.Cordoned)},
		},
		"Unavailable": {
			reason: "nodes that are not ready, or in the middle of a configuration, which is over some time", waits: true,
			input: order.Input{
				Pools: pools{pool("worker", "2")},
				Nodes: nodes{node("a", "worker", "", 0, notReady), node("b", "worker", "", 1, configuring), node("c", "worker", "", 2)},
			},
			pools: []order.Pool{{
				Name: "worker", MaxUnavailable: 2, Nodes: []string{"c"}, Unavailable: []string{"a", "b"}, Updating: []string{"b"},
				Later: []string{"b", "c"},
			}},
			skipped: []order.Skipped{
				skipped("a", "worker", order.Unavailable, order.NotReady), skipped("b", "worker", order.Unavailable, order.Configuring),
			},
		},
		"Rebooting": {
			reason: "a node that is being updated is cordoned, and not ready while it reboots", waits: true,
			input: order.Input{
				Pools: pools{pool("worker", "")},
				Nodes: nodes{node("a", "worker", "", 0, cordoned, notReady, inState("Rebooting")), node("b", "worker", "", 1)},
			},
			pools: []order.Pool{{
				Name: "worker", MaxUnavailable: 1, Nodes: []string{"b"}, Unavailable: []string{"a"}, Updating: []string{"a"},
				Later: []string{"a", "b"},
			}},
			skipped: []order.Skipped{skipped("a", "worker", order.Unavailable, order.Configuring)},
		},
		"Degraded": {
			reason: "a node whose daemon failed with the configuration that it has does not return by itself", blocked: true,
			input: order.Input{
				Pools: pools{pool("worker", "")},
				Nodes: nodes{node("a", "worker", "", 0, inState("Degraded")), node("b", "worker", "", 1)},
			},
			pools:   []order.Pool{{Name: "worker", MaxUnavailable: 1, Nodes: []string{"b"}, Unavailable: []string{"a"}}},
			skipped: []order.Skipped{skipped("a", "worker", order.Unavailable, order.Degraded)},
		},
		"Failed": {
			reason: "a node that failed to apply another configuration gets that of the update",
			input: order.Input{
				Pools: pools{pool("worker", "")},
				Nodes: nodes{node("a", "worker", "", 0, configuring, inState("Degraded")), node("b", "worker", "", 1)},
			},
			pools: []order.Pool{{Name: "worker", MaxUnavailable: 1, Nodes: []string{"a", "b"}}},
		},
		"Image": {
			reason: "a node that gets another image, with the same configuration", waits: true,
			input: order.Input{
				Pools: pools{pool("worker", "")},
				Nodes: nodes{node("b", "worker", "", 1), node("a", "worker", "", 0, func(node *corev1.Node) {
					node.Annotations["machineconfiguration.openshift.io/currentImage"],
						node.Annotations["machineconfiguration.openshift.io/desiredImage"] = "old", "new"
				})},
			},
			pools: []order.Pool{{
				Name: "worker", MaxUnavailable: 1, Nodes: []string{"b"}, Unavailable: []string{"a"}, Updating: []string{"a"},
				Later: []string{"a", "b"},
			}},
			skipped: []order.Skipped{skipped("a", "worker", order.Unavailable, order.Configuring)},
		},
		"Unreconcilable": {
			reason: "a node that is cordoned, and whose daemon cannot apply the configuration", blocked: true,
			input: order.Input{
				Pools: pools{pool("worker", "")},
				Nodes: nodes{node("a", "worker", "", 0, cordoned, configuring, inState("Unreconcilable")), node("b", "worker", "", 1)},
			},
			pools:   []order.Pool{{Name: "worker", MaxUnavailable: 1, Nodes: []string{"b"}, Unavailable: []string{"a"}}},
			skipped: []order.Skipped{skipped("a", "worker", order.Unavailable, order.Cordoned)},
		},
		"CordonedBesides": {
			reason: "another node would stop the pool all the same", blocked: true,
			input: order.Input{
				Pools: pools{pool("worker", "")},
				Nodes: nodes{node("a", "worker", "", 0, configuring), node("b", "worker", "", 1, cordoned), node("c", "worker", "", 2)},
			},
			pools: []order.Pool{{
				Name: "worker", MaxUnavailable: 1, Nodes: []string{"c"}, Unavailable: []string{"a", "b"}, Updating: []string{"a"},
				Later: []string{"a", "c"},
			}},
			skipped: []order.Skipped{
				skipped("a", "worker", order.Unavailable, order.Configuring),
				skipped("b", "worker", order.Unavailable, order.Cordoned),
			},
		},
		"Others": {
			reason: "nodes that MCO does not update",
			input: order.Input{
				Pools: pools{pool("worker", "")},
				Nodes: nodes{node("a", "worker", "", 0, unmanaged), node("b", "worker", "", 1, windows), node("c", "edge", "", 2)},
			},
			skipped: []order.Skipped{
				skipped("a", "worker", order.NoDaemon, ""), skipped("b", "", order.NoPool, ""),
				skipped("c", "", order.NoPool, ""),
			},
		},
		"AtTarget": {
			reason: "a node that has the target's configuration",
			input: order.Input{
				AtTarget: func(node *corev1.Node) bool { return node.Name == "a" }, Pools: pools{pool("worker", "")},
				Nodes: nodes{node("a", "worker", "", 0), node("b", "worker", "", 1)},
			},
			pools:   []order.Pool{{Name: "worker", MaxUnavailable: 1, Nodes: []string{"b"}}},
			skipped: []order.Skipped{skipped("a", "worker", order.AtTarget, "")},
		},
		"Hosted": {
			reason: "a hosted cluster has NodePools, whose order is not known",
			input: order.Input{Topology: configv1.ExternalTopologyMode, Nodes: nodes{
				node("a", "worker", "", 0, func(node *corev1.Node) { node.Labels["hypershift.openshift.io/nodePool"] = "blue" }),
			}},
			pools: []order.Pool{{Name: "blue", MaxUnavailable: 1, Nodes: []string{"a"}, Unordered: true}},
		},
		"NoneRequested": {
			reason: "the update of a control plane drains no node",
			input: order.Input{
				Topology: configv1.ExternalTopologyMode, NodePools: []order.NodePool{},
				Nodes: nodes{node("a", "worker", "", 0, inBlue)},
			},
			skipped: []order.Skipped{skipped("a", "blue", order.NotRequested, "")},
		},
		"PausedNodePool": {
			reason: "a NodePool that is paused drains no node",
			input: order.Input{
				Topology: configv1.ExternalTopologyMode, NodePools: []order.NodePool{{Name: "blue", Skip: order.Paused}},
				Nodes: nodes{node("a", "worker", "", 0, inBlue)},
			},
			skipped: []order.Skipped{skipped("a", "blue", order.Paused, "")},
		},
		"Replace": {
			reason: "one node more, then one is drained; a broken one does not stop the pool",
			input: order.Input{
				Topology: configv1.ExternalTopologyMode,
				Nodes:    nodes{node("a", "worker", "", 0, inBlue), node("b", "worker", "", 1, inBlue, notReady)}, NodePools: []order.NodePool{
					{Name: "blue", Timeout: time.Minute},
				},
			},
			pools:   []order.Pool{{Name: "blue", MaxUnavailable: 1, Nodes: []string{"a"}, Unordered: true, Surge: 1, Timeout: time.Minute}},
			skipped: []order.Skipped{skipped("b", "blue", order.Unavailable, order.NotReady)},
		},
		"ReplaceMany": {
			reason: "maxSurge is rounded up and maxUnavailable down, and both are drained together",
			input: order.Input{
				Topology: configv1.ExternalTopologyMode, Nodes: nodes{node("a", "worker", "", 0, inBlue)},
				NodePools: []order.NodePool{
					{Name: "blue", Replicas: new(int32(10)), MaxSurge: new(intstr.FromString("15%")), MaxUnavailable: new(intstr.FromString("15%"))},
				},
			},
			pools: []order.Pool{{Name: "blue", MaxUnavailable: 3, Nodes: []string{"a"}, Unordered: true, Surge: 2}},
		},
		"InPlace": {
			reason: "maxUnavailable is rounded down, nothing is added, and a drain has no limit of time",
			input: order.Input{
				Topology: configv1.ExternalTopologyMode, Nodes: nodes{node("a", "worker", "", 0, inBlue)},
				NodePools: []order.NodePool{
					{Name: "blue", InPlace: true, Replicas: new(int32(10)), MaxUnavailable: new(intstr.FromString("25%")), Timeout: time.Minute},
				},
			},
			pools: []order.Pool{{Name: "blue", MaxUnavailable: 2, Nodes: []string{"a"}, Unordered: true}},
		},
		"InPlaceScaled": {
			reason: "a percentage of a pool that is scaled automatically is one node",
			input: order.Input{
				Topology: configv1.ExternalTopologyMode, Nodes: nodes{node("a", "worker", "", 0, inBlue)},
				NodePools: []order.NodePool{
					{Name: "blue", InPlace: true, MaxUnavailable: new(intstr.FromString("50%"))},
				},
			},
			pools: []order.Pool{{Name: "blue", MaxUnavailable: 1, Nodes: []string{"a"}, Unordered: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := order.Of(tc.input)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(order.Order{Pools: tc.pools, Skipped: tc.skipped}, got, cmp.AllowUnexported(order.Pool{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if len(got.Pools) > 0 && got.Pools[0].Blocked() != tc.blocked {
				t.Errorf("%s: blocked is %t", tc.reason, got.Pools[0].Blocked())
			}
			if len(got.Pools) > 0 && got.Pools[0].Waits() != tc.waits {
				t.Errorf("%s: waits is %t", tc.reason, got.Pools[0].Waits())
			}
		})
	}
}

// inBlue is a node of the NodePool blue.
func inBlue(node *corev1.Node) { node.Labels["hypershift.openshift.io/nodePool"] = "blue" }

func TestNext(t *testing.T) {
	t.Parallel()
	all := order.Input{Last: "a", Pools: []machineconfigurationv1.MachineConfigPool{pool("worker", "2")}, Nodes: []corev1.Node{
		node("a", "worker", "", 0), node("b", "worker", "", 1), node("c", "worker", "", 2), node("d", "worker", "", 3),
	}}
	found, err := order.Of(all)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason  string
		started []string
		busy    int
		want    []string
	}{
		"First": {reason: "as many as may be unavailable, without the operator's own node", want: []string{"b", "c"}},
		"Busy":  {reason: "one is being drained", started: []string{"b"}, busy: 1, want: []string{"c"}},
		"Full":  {reason: "as many as may be unavailable are being drained", started: []string{"b", "c"}, busy: 2},
		"Last":  {reason: "the operator's own node is the last one", started: []string{"b", "c", "d"}, want: []string{"a"}},
	} {
		started := map[string]bool{}
		for _, node := range tc.started {
			started[node] = true
		}
		got := found.Pools[0].Next(func(node string) bool { return started[node] }, tc.busy)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s", name, tc.reason, diff)
		}
	}
}

func TestInvalidPools(t *testing.T) {
	t.Parallel()
	invalid := pool("worker", "")
	invalid.Spec.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
	for name, invalid := range map[string]machineconfigurationv1.MachineConfigPool{"Selector": invalid, "Limit": pool("worker", "many")} {
		input := order.Input{Pools: []machineconfigurationv1.MachineConfigPool{invalid}, Nodes: []corev1.Node{node("a", "worker", "", 0)}}
		if _, err := order.Of(input); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
