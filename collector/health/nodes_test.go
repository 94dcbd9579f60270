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

	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const nodesPath = "/api/v1/nodes"

// node is a healthy node of OpenShift, but for what change does to it.
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
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool { return condition.Type == kind })
	}
}

func state(state, reason string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Annotations = map[string]string{"machineconfiguration.openshift.io/state": state, "machineconfiguration.openshift.io/reason": reason}
	}
}

func unmanaged(node *corev1.Node) { node.Annotations = nil }

func windows(node *corev1.Node) {
	node.Annotations, node.Labels = nil, map[string]string{corev1.LabelOSStable: "windows"}
}

func cordoned(node *corev1.Node) { node.Spec.Unschedulable = true }

func cordonedSince(at time.Time) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: at}}}
	}
}

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	}
}

func TestNodes(t *testing.T) {
	const memory = "kubelet has insufficient memory"
	fine := said(preflight.Pass, "AsExpected")
	for name, tc := range map[string]struct {
		reason   string
		topology configv1.TopologyMode
		nodes    []*corev1.Node
		says     string
		want     results
	}{
		"Fine": {
			reason: "nothing is wrong", nodes: []*corev1.Node{node("a"), node("b")}, says: "2 of them",
			want: results{"NodeHealth": fine},
		},
		"NotReady": {
			reason: "the kubelet says why", nodes: []*corev1.Node{node("a", set(corev1.NodeReady, corev1.ConditionFalse, "CNI is down")), node("b")},
			says: "of 2 nodes, 1 not ready: a (Ready=False CNI is down)", want: results{"NodesNotReady": said(preflight.Fail, "NotReady")},
		},
		"Silent": {
			reason: "Kubernetes says Unknown of a node that it does not hear of, and moves its pods away",
			nodes: []*corev1.Node{node("a", set(corev1.NodeReady, corev1.ConditionUnknown, "Kubelet stopped posting node status"),
				set(corev1.NodeMemoryPressure, corev1.ConditionUnknown, ""))},
			want: results{"NodesNotReady": said(preflight.Fail, "NotReady")},
		},
		"NotReported": {
			reason: "a node without the condition has not said anything", nodes: []*corev1.Node{node("a", unset(corev1.NodeReady))},
			want: results{"NodesNotReported": said(preflight.Unknown, "NoReadyCondition")},
		},
		"Cordoned": {
			reason: "somebody did that on purpose",
			nodes:  []*corev1.Node{node("a", cordonedSince(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))), node("b", cordoned)},
			says:   "2 cordoned, and not by the machine-config-operator, so what is drained from others cannot go there: a (since 2026-11-21T09:00:00Z), b",
			want:   results{"NodesCordoned": said(preflight.Fail, "Cordoned")},
		},
		"CordonedByTheOperator": {
			reason: "the pool is updating, and the node comes back by itself", nodes: []*corev1.Node{node("a", cordoned, state("Working", "")), node("b")},
			says: "their pool is updating: a (Working)", want: results{"NodesUpdating": said(preflight.Warn, "PoolUpdating")},
		},
		"Rebooting": {
			reason: "a node that does not come back from a reboot is not ready all the same",
			nodes:  []*corev1.Node{node("a", cordoned, state("Rebooting", ""), set(corev1.NodeReady, corev1.ConditionUnknown, "no status"))},
			says:   "a (Ready=Unknown no status; it is being updated)",
			want:   results{"NodesNotReady": said(preflight.Fail, "NotReady"), "NodesUpdating": said(preflight.Warn, "PoolUpdating")},
		},
		"MemoryPressure": {
			reason: "by condition", nodes: []*corev1.Node{node("a", set(corev1.NodeMemoryPressure, corev1.ConditionTrue, memory))},
			says: memory, want: results{"NodesMemoryPressure": said(preflight.Fail, "MemoryPressure")},
		},
		"DiskPressureTaint": {
			reason: "by taint, as MUO looks at it", nodes: []*corev1.Node{node("a", tainted("node.kubernetes.io/disk-pressure", corev1.TaintEffectNoSchedule))},
			says: "it has the taint node.kubernetes.io/disk-pressure", want: results{"NodesDiskPressure": said(preflight.Fail, "DiskPressure")},
		},
		"PIDPressure": {
			reason: "both say the same once",
			nodes: []*corev1.Node{node("a", set(corev1.NodePIDPressure, corev1.ConditionTrue, ""),
				tainted("node.kubernetes.io/pid-pressure", corev1.TaintEffectNoSchedule))},
			want: results{"NodesPIDPressure": said(preflight.Fail, "PIDPressure")},
		},
		"OtherTaints": {
			reason: "what people taint nodes with is their business",
			nodes: []*corev1.Node{node("a", tainted("node-role.kubernetes.io/master", corev1.TaintEffectNoSchedule),
				tainted("node.kubernetes.io/memory-pressure", corev1.TaintEffectPreferNoSchedule))},
			want: results{"NodeHealth": fine},
		},
		"PressureUnknown": {
			reason: "a ready node says how it is", nodes: []*corev1.Node{
				node("a", unset(corev1.NodeDiskPressure)), node("b", set(corev1.NodePIDPressure, corev1.ConditionUnknown, "")),
			},
			says: "a (DiskPressure), b (PIDPressure)", want: results{"NodesPressureUnknown": said(preflight.Unknown, "PressureNotReported")},
		},
		"Degraded": {
			reason: "the daemon says why", nodes: []*corev1.Node{node("a", state("Degraded", "unexpected on-disk state")), node("b", state("Unreconcilable", ""))},
			says: "a (Degraded: unexpected on-disk state), b (Unreconcilable: it does not say why)",
			want: results{"NodesDegraded": said(preflight.Fail, "MachineConfigDegraded")},
		},
		"NewState": {
			reason: "a state that nobody knows is not a good one", nodes: []*corev1.Node{node("a", state("Wondering", ""))},
			want: results{"NodesDegraded": said(preflight.Fail, "MachineConfigDegraded")},
		},
		"Unmanaged": {
			reason: "a node that the daemon has not looked at yet", nodes: []*corev1.Node{node("a", unmanaged), node("b")},
			says: "of 2 nodes, 1 without a word", want: results{"NodesNotManaged": said(preflight.Unknown, "NoMachineConfigState")},
		},
		"Windows": {
			reason: "the daemon does not look after it", nodes: []*corev1.Node{node("a", windows), node("b")},
			want: results{"NodeHealth": fine},
		},
		"HyperShift": {
			reason: "there need be no daemon", topology: configv1.ExternalTopologyMode, nodes: []*corev1.Node{node("a", unmanaged)},
			want: results{"NodeHealth": fine},
		},
		"HyperShiftWithoutNodes": {
			reason: "a hosted cluster may be scaled to none", topology: configv1.ExternalTopologyMode,
			want: results{"NodeHealth": said(preflight.Skipped, "NoNodes")},
		},
		"PlainKubernetes": {
			reason: "there is no daemon", topology: "none", nodes: []*corev1.Node{node("a", unmanaged, cordoned)},
			want: results{"NodesCordoned": said(preflight.Fail, "Cordoned")},
		},
		"NoNodes": {
			reason: "a cluster that runs its own control plane has nodes",
			want:   results{"NodeHealth": said(preflight.Unknown, "NoNodes")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.topology == "" {
				tc.topology = configv1.HighlyAvailableTopologyMode
			}
			if tc.topology != "none" {
				server.Create(t, infrastructure(tc.topology))
			}
			// Not held by the server: its controllers taint what is not ready.
			with := server.Responding(map[string]checktest.Response{nodesPath: checktest.Pages(t, "v1", "NodeList", tc.nodes)})
			findings := checktest.Run(t, health.Nodes(), with.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("%s: %q does not say %q", tc.reason, findings[0].Message, tc.says)
			}
		})
	}
}

func TestNodesOfAServer(t *testing.T) {
	server.Create(t, infrastructure(configv1.HighlyAvailableTopologyMode),
		node("a"), node("b", cordoned), node("c", set(corev1.NodeMemoryPressure, corev1.ConditionTrue, "none left")))
	want := results{"NodesCordoned": said(preflight.Fail, "Cordoned"), "NodesMemoryPressure": said(preflight.Fail, "MemoryPressure")}
	got := checktest.Results(checktest.Run(t, health.Nodes(), server.Snapshot(t), patch(t)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes as a real API server has them (-want +got):\n%s", diff)
	}
}

func TestNodesUnreadable(t *testing.T) {
	held := checktest.Pages(t, "v1", "NodeList", []*corev1.Node{node("a", cordoned)})
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   results
	}{
		"Forbidden": {
			"who may not look cannot tell", server.Unprivileged(), results{"NodeHealth": said(preflight.Unknown, "Forbidden")},
		},
		"TopologyForbidden": {
			"what can be told is told", server.Unprivileged().Responding(map[string]checktest.Response{nodesPath: held}),
			results{"NodeHealth": said(preflight.Unknown, "Forbidden"), "NodesCordoned": said(preflight.Fail, "Cordoned")},
		},
		"Malformed": {
			"what cannot be read cannot be judged", server.Responding(map[string]checktest.Response{nodesPath: checktest.Body(`{"items":`)}),
			results{"NodeHealth": said(preflight.Unknown, "Error")},
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

func TestNodesInMasses(t *testing.T) {
	server.Create(t, infrastructure(configv1.HighlyAvailableTopologyMode))
	var nodes []*corev1.Node
	for i := range 10_000 {
		why := "short"
		if i < 10 {
			why = strings.Repeat("long ", 10_000)
		}
		nodes = append(nodes, node(fmt.Sprintf("n%05d", i), cordoned, state("Degraded", why),
			set(corev1.NodeReady, corev1.ConditionFalse, why), set(corev1.NodeDiskPressure, corev1.ConditionTrue, "full")))
	}
	many := server.Responding(map[string]checktest.Response{nodesPath: checktest.Pages(t, "v1", "NodeList", nodes)})
	findings := checktest.Run(t, health.Nodes(), many.Snapshot(t), patch(t))
	if len(findings) != 4 {
		t.Fatalf("got %d findings, want one for each of 4 defects", len(findings))
	}
	for _, f := range findings {
		if !strings.HasPrefix(f.Message, "of 10000 nodes, 10000 ") || !strings.HasSuffix(f.Message, " and 9995 more") ||
			len(f.Message) > 6000 || len(f.Objects) != 5 {
			t.Errorf("%s is not grouped: %d objects, %.200q", f.Name, len(f.Objects), f.Message)
		}
	}
}
