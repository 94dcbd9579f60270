package health_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const nodesPath = "/api/v1/nodes"

// node is a healthy node of OpenShift with these changes.
func node(name string, changes ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{"machineconfiguration.openshift.io/state": "Done"},
	}}
	set(corev1.NodeReady, corev1.ConditionTrue, "")(node)
	for _, pressure := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		set(pressure, corev1.ConditionFalse, "")(node)
	}
	for _, change := range changes {
		change(node)
	}
	return node
}

func set(kind corev1.NodeConditionType, status corev1.ConditionStatus, message string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		unset(kind)(node)
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, Message: message})
	}
}

func unset(kind corev1.NodeConditionType) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions,
			func(condition corev1.NodeCondition) bool { return condition.Type == kind })
	}
}

func state(state, reason string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Annotations = map[string]string{"machineconfiguration.openshift.io/state": state, "machineconfiguration.openshift.io/reason": reason}
	}
}

// drain sets the requested and the last completed change by the
// machine-config-operator.
func drain(desired, applied string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Annotations["machineconfiguration.openshift.io/desiredDrain"] = desired
		node.Annotations["machineconfiguration.openshift.io/lastAppliedDrain"] = applied
	}
}

func unmanaged(node *corev1.Node) { node.Annotations = nil }

func annotated(name, value string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Annotations[name] = value }
}

func windows(node *corev1.Node) {
	node.Annotations, node.Labels = nil, map[string]string{corev1.LabelOSStable: "windows"}
}

func cordoned(node *corev1.Node) { node.Spec.Unschedulable = true }

func cordonedSince(at time.Time) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = []corev1.Taint{{
			Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule,
			TimeAdded: &metav1.Time{Time: at},
		}}
	}
}

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	}
}

func TestNodes(t *testing.T) {
	const memory = "kubelet has insufficient memory"
	fine := result(preflight.Pass, "AsExpected")
	for name, tc := range map[string]struct {
		reason   string
		topology configv1.TopologyMode
		nodes    []*corev1.Node
		message  string // a part of it
		remedy   string // a part of it
		want     results
	}{
		"Fine": {
			reason: "all nodes are healthy", nodes: []*corev1.Node{node("a"), node("b")}, message: "process IDs: 2 nodes",
			want: results{"NodeHealth": fine},
		},
		"NotReady": {
			reason:  "the message of the kubelet is reported",
			nodes:   []*corev1.Node{node("a", set(corev1.NodeReady, corev1.ConditionFalse, "CNI is down")), node("b")},
			message: "1 of 2 nodes not ready: a (Ready=False CNI is down)", want: results{"NodesNotReady": result(preflight.Fail, "NotReady")},
		},
		"StoppedReporting": {
			reason: "Kubernetes sets Unknown for a node that stopped reporting, and evicts its pods",
			nodes: []*corev1.Node{node("a", set(corev1.NodeReady, corev1.ConditionUnknown, "Kubelet stopped posting node status"),
				set(corev1.NodeMemoryPressure, corev1.ConditionUnknown, ""))},
			want: results{"NodesNotReady": result(preflight.Fail, "NotReady")},
		},
		"NotReported": {
			reason: "the state of a node without the condition is unknown", nodes: []*corev1.Node{node("a", unset(corev1.NodeReady))},
			want: results{"NodesNotReported": result(preflight.Unknown, "NoReadyCondition")},
		},
		"Cordoned": {
			reason: "the nodes were cordoned by hand",
			nodes:  []*corev1.Node{node("a", cordonedSince(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))), node("b", cordoned)},
			message: "2 of 2 nodes cordoned, and not by the machine-config-operator, so pods drained from other nodes cannot be scheduled " +
				"there: a (since 2026-11-21T09:00:00Z), b",
			want: results{"NodesCordoned": result(preflight.Fail, "Cordoned")},
		},
		"CordonedByTheOperator": {
			reason:  "the pool is updating, and the daemon uncordons the node",
			nodes:   []*corev1.Node{node("a", cordoned, state("Working", "")), node("b")},
			message: "since their pool is updating: a (Working)", want: results{"NodesUpdating": result(preflight.Warn, "PoolUpdating")},
		},
		"DegradedDrain": {
			reason: "the daemon requested a drain that does not complete, and uncordoning the node undoes it",
			nodes: []*corev1.Node{
				node("a", cordoned, state("Degraded", "failed to drain node"), drain("drain-worker-2", "uncordon-worker-1")),
				node("b"),
			},
			message: "1 of 2 nodes cordoned by the machine-config-operator, which has not completed the last request to drain or uncordon them: " +
				"a (requested drain-worker-2, completed uncordon-worker-1)",
			remedy: "Do not uncordon",
			want: results{
				"NodesDraining": result(preflight.Fail, "DrainIncomplete"),
				"NodesDegraded": result(preflight.Fail, "MachineConfigDegraded"),
			},
		},
		"DegradedAfterDrain": {
			reason:  "the drain is complete, the update of the node failed, and the operator has not uncordoned it",
			nodes:   []*corev1.Node{node("a", cordoned, state("Degraded", "unexpected on-disk state"), drain("drain-worker-2", "drain-worker-2"))},
			message: "a (drain-worker-2 is complete, the daemon is Degraded)", remedy: "Do not uncordon",
			want: results{
				"NodesDrained":  result(preflight.Fail, "NodeUpdateIncomplete"),
				"NodesDegraded": result(preflight.Fail, "MachineConfigDegraded"),
			},
		},
		"DoneAfterDrain": {
			reason:  "the drain is complete, and the daemon has nothing to do, but has not requested the uncordon",
			nodes:   []*corev1.Node{node("a", cordoned, drain("drain-worker-2", "drain-worker-2"))},
			message: "1 of 1 node drained by the machine-config-operator, and neither updated nor uncordoned since: a (drain-worker-2 is complete",
			want:    results{"NodesDrained": result(preflight.Fail, "NodeUpdateIncomplete")},
		},
		"UncordonPending": {
			reason:  "the operator has not completed the uncordon",
			nodes:   []*corev1.Node{node("a", cordoned, drain("uncordon-worker-2", "drain-worker-2"))},
			message: "a (requested uncordon-worker-2, completed drain-worker-2)",
			want:    results{"NodesDraining": result(preflight.Fail, "DrainIncomplete")},
		},
		"FirstDrain": {
			reason:  "the operator has never completed a drain of the node",
			nodes:   []*corev1.Node{node("a", cordoned, state("Degraded", ""), drain("drain-worker-2", ""))},
			message: "completed none", want: results{
				"NodesDraining": result(preflight.Fail, "DrainIncomplete"),
				"NodesDegraded": result(preflight.Fail, "MachineConfigDegraded"),
			},
		},
		"CordonedAfterUncordon": {
			reason: "the operator completed the uncordon, so the node was cordoned by hand",
			nodes:  []*corev1.Node{node("a", cordoned, drain("uncordon-worker-2", "uncordon-worker-2"))},
			remedy: "Run oc adm uncordon a", want: results{"NodesCordoned": result(preflight.Fail, "Cordoned")},
		},
		"DegradedAndCordoned": {
			reason: "a degraded node of which the operator requested no drain was cordoned by hand",
			nodes:  []*corev1.Node{node("a", cordoned, state("Degraded", "x"), drain("uncordon-worker-2", "uncordon-worker-2"))},
			want:   results{"NodesCordoned": result(preflight.Fail, "Cordoned"), "NodesDegraded": result(preflight.Fail, "MachineConfigDegraded")},
		},
		"UnknownDrain": {
			reason: "a request that is neither a drain nor an uncordon does not explain the cordon",
			nodes:  []*corev1.Node{node("a", cordoned, drain("pause-worker-2", ""))},
			want:   results{"NodesCordoned": result(preflight.Fail, "Cordoned")},
		},
		"DrainedByTheOperator": {
			reason: "a drain of an update in progress is part of it",
			nodes:  []*corev1.Node{node("a", cordoned, state("Working", ""), drain("drain-worker-2", ""))},
			want:   results{"NodesUpdating": result(preflight.Warn, "PoolUpdating")},
		},
		"NotCordoned": {
			reason: "a node that is not cordoned is schedulable", nodes: []*corev1.Node{node("a", drain("drain-worker-2", "drain-worker-2"))},
			want: results{"NodeHealth": fine},
		},
		"Rebooting": {
			reason:  "a node that has not returned from a reboot is not ready",
			nodes:   []*corev1.Node{node("a", cordoned, state("Rebooting", ""), set(corev1.NodeReady, corev1.ConditionUnknown, "no status"))},
			message: "a (Ready=Unknown no status; it is being updated)",
			want:    results{"NodesNotReady": result(preflight.Fail, "NotReady"), "NodesUpdating": result(preflight.Warn, "PoolUpdating")},
		},
		"MemoryPressure": {
			reason: "the condition is True", nodes: []*corev1.Node{node("a", set(corev1.NodeMemoryPressure, corev1.ConditionTrue, memory))},
			message: memory, want: results{"NodesMemoryPressure": result(preflight.Fail, "MemoryPressure")},
		},
		"DiskPressureTaint": {
			reason:  "the node has the taint, which MUO checks",
			nodes:   []*corev1.Node{node("a", tainted("node.kubernetes.io/disk-pressure", corev1.TaintEffectNoSchedule))},
			message: "it has the taint node.kubernetes.io/disk-pressure", want: results{"NodesDiskPressure": result(preflight.Fail, "DiskPressure")},
		},
		"PIDPressure": {
			reason: "condition and taint are one finding",
			nodes: []*corev1.Node{node("a", set(corev1.NodePIDPressure, corev1.ConditionTrue, ""),
				tainted("node.kubernetes.io/pid-pressure", corev1.TaintEffectNoSchedule))},
			want: results{"NodesPIDPressure": result(preflight.Fail, "PIDPressure")},
		},
		"OtherTaints": {
			reason: "other taints are ignored",
			nodes: []*corev1.Node{node("a", tainted("node-role.kubernetes.io/master", corev1.TaintEffectNoSchedule),
				tainted("node.kubernetes.io/memory-pressure", corev1.TaintEffectPreferNoSchedule))},
			want: results{"NodeHealth": fine},
		},
		"PressureUnknown": {
			reason: "a ready node reports all pressures", nodes: []*corev1.Node{
				node("a", unset(corev1.NodeDiskPressure)), node("b", set(corev1.NodePIDPressure, corev1.ConditionUnknown, "")),
			},
			message: "a (DiskPressure), b (PIDPressure)", want: results{"NodesPressureUnknown": result(preflight.Unknown, "PressureNotReported")},
		},
		"Degraded": {
			reason:  "the reason of the daemon is reported",
			nodes:   []*corev1.Node{node("a", state("Degraded", "unexpected on-disk state")), node("b", state("Unreconcilable", ""))},
			message: "a (Degraded: unexpected on-disk state), b (Unreconcilable: no reason given)",
			want:    results{"NodesDegraded": result(preflight.Fail, "MachineConfigDegraded")},
		},
		"NewState": {
			reason: "an unknown state is not a healthy one", nodes: []*corev1.Node{node("a", state("Deferred", ""))},
			want: results{"NodesDegraded": result(preflight.Fail, "MachineConfigDegraded")},
		},
		"Unmanaged": {
			reason: "the daemon has never run on the node", nodes: []*corev1.Node{node("a", unmanaged), node("b")},
			message: "1 of 2 nodes without a state", want: results{"NodesNotManaged": result(preflight.Unknown, "NoMachineConfigState")},
		},
		"Windows": {
			reason: "the daemon does not run on Windows", nodes: []*corev1.Node{node("a", windows), node("b")},
			want: results{"NodeHealth": fine},
		},
		"HeldByAnother": {
			reason: "report 110: the SR-IOV operator has paused the pool", message: "a (sriovnetwork.openshift.io says Draining_MCP_Paused)",
			remedy: "Wait until that program",
			nodes:  []*corev1.Node{node("a", annotated("sriovnetwork.openshift.io/state", "Draining_MCP_Paused")), node("b")},
			want:   results{"NodesHeld": result(preflight.Warn, "NodesHeldByProgram")},
		},
		"Kured": {
			reason: "a reboot manager that no list has", message: "a (acme.example says 2026-11-29)",
			nodes: []*corev1.Node{node("a", annotated("acme.example/reboot-in-progress", "2026-11-29"))},
			want:  results{"NodesHeld": result(preflight.Warn, "NodesHeldByProgram")},
		},
		"NotHeld": {
			reason: "idle states, a reboot that is over, annotations of other meaning", nodes: []*corev1.Node{
				node("a", annotated("sriovnetwork.openshift.io/state", "Idle"), annotated("sriovnetwork.openshift.io/current-state", "DrainComplete")),
				node("b", annotated("weave.works/kured-reboot-in-progress", "false"), annotated("acme.example/note", "paused for Draining")),
			},
			want: results{"NodeHealth": fine},
		},
		"HyperShift": {
			reason: "a hosted cluster need not have the daemon", topology: configv1.ExternalTopologyMode,
			nodes: []*corev1.Node{node("a", unmanaged)},
			want:  results{"NodeHealth": fine},
		},
		"HyperShiftWithoutNodes": {
			reason: "a hosted cluster can be scaled to zero", topology: configv1.ExternalTopologyMode,
			want: results{"NodeHealth": result(preflight.Skipped, "NoNodes")},
		},
		"PlainKubernetes": {
			reason: "plain Kubernetes has no daemon", topology: "none", nodes: []*corev1.Node{node("a", unmanaged, cordoned)},
			want: results{"NodesCordoned": result(preflight.Fail, "Cordoned")},
		},
		"NoNodes": {
			reason: "a cluster with its own control plane has nodes",
			want:   results{"NodeHealth": result(preflight.Unknown, "NoNodes")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.topology == "" {
				tc.topology = configv1.HighlyAvailableTopologyMode
			}
			if tc.topology != "none" {
				server.Create(t, checktest.Infrastructure(tc.topology))
			}
			// The controllers of a real server would taint nodes that are not ready.
			with := server.Responding(map[string]checktest.Response{nodesPath: checktest.Pages(t, "v1", "NodeList", tc.nodes)})
			findings := checktest.Run(t, health.Nodes(), with.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.message)
			}
			if remedies := checktest.Remedies(findings); !strings.Contains(remedies, tc.remedy) {
				t.Errorf("%s: remedies %q, want %q in them", tc.reason, remedies, tc.remedy)
			}
		})
	}
}

func TestNodesOnAServer(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode),
		node("a"), node("b", cordoned), node("c", set(corev1.NodeMemoryPressure, corev1.ConditionTrue, "none left")))
	want := results{"NodesCordoned": result(preflight.Fail, "Cordoned"), "NodesMemoryPressure": result(preflight.Fail, "MemoryPressure")}
	got := checktest.Results(checktest.Run(t, health.Nodes(), server.Snapshot(t), patch(t)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes of a real API server (-want +got):\n%s", diff)
	}
}

func TestNodesUnread(t *testing.T) {
	stored := checktest.Pages(t, "v1", "NodeList", []*corev1.Node{node("a", cordoned)})
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   results
	}{
		"Forbidden": {
			"without permission the check is inconclusive", server.Unprivileged(), results{"NodeHealth": result(preflight.Unknown, "Forbidden")},
		},
		"TopologyForbidden": {
			"the other findings are reported", server.Unprivileged().Responding(map[string]checktest.Response{nodesPath: stored}),
			results{"NodeHealth": result(preflight.Unknown, "Forbidden"), "NodesCordoned": result(preflight.Fail, "Cordoned")},
		},
		"Malformed": {
			"an object that cannot be decoded is inconclusive",
			server.Responding(map[string]checktest.Response{nodesPath: checktest.Body(`{"items":`)}),
			results{"NodeHealth": result(preflight.Unknown, "Error")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := checktest.Results(checktest.Run(t, health.Nodes(), tc.server.Snapshot(t), patch(t)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNodesWithMany(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode))
	var nodes []*corev1.Node
	for i := range 10_000 {
		cause := "short"
		if i < 10 {
			cause = strings.Repeat("long ", 10_000)
		}
		nodes = append(nodes, node(fmt.Sprintf("n%05d", i), cordoned, state("Degraded", cause),
			set(corev1.NodeReady, corev1.ConditionFalse, cause), set(corev1.NodeDiskPressure, corev1.ConditionTrue, "full")))
	}
	many := server.Responding(map[string]checktest.Response{nodesPath: checktest.Pages(t, "v1", "NodeList", nodes)})
	findings := checktest.Run(t, health.Nodes(), many.Snapshot(t), patch(t))
	if len(findings) != 4 {
		t.Fatalf("got %d findings, want one for each of 4 rules", len(findings))
	}
	for _, f := range findings {
		if !strings.HasPrefix(f.Message, "10000 of 10000 nodes ") || !strings.HasSuffix(f.Message, " and 9995 more") ||
			len(f.Message) > 6000 || len(f.Objects) != finding.MaxObjects {
			t.Errorf("%s is not grouped: %d objects, %.200q", f.Name, len(f.Objects), f.Message)
		}
	}
}
