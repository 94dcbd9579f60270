package gate_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// node has a kubelet and roles.
func node(name, kubelet string, roles ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, role := range roles {
		node.Labels["node-role.kubernetes.io/"+role] = ""
	}
	node.Status.NodeInfo.KubeletVersion = kubelet
	return node
}

// pool selects the nodes of its role.
func pool(name string) *machineconfigurationv1.MachineConfigPool {
	return &machineconfigurationv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: machineconfigurationv1.MachineConfigPoolSpec{
			NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}},
		},
	}
}

func paused(name string) *machineconfigurationv1.MachineConfigPool {
	pool := pool(name)
	pool.Spec.Paused = true
	return pool
}

func TestKubeletSkew(t *testing.T) {
	const title = "KubeletMinorVersionUpgradeable"
	type results = map[string]checktest.Said
	synced := checktest.Said{Outcome: preflight.Pass, Reason: "KubeletMinorVersionsSynced"}
	behind := checktest.Said{Outcome: preflight.Pass, Reason: "KubeletMinorVersionSupportedNextUpgrade"}
	limit := checktest.Said{Outcome: preflight.Warn, Reason: "KubeletMinorVersionSupportedNextUpgrade"}
	pausedPool := checktest.Said{Outcome: preflight.Warn, Reason: "PoolPaused"}
	next := checktest.Said{Outcome: preflight.Fail, Reason: "KubeletMinorVersionUnsupportedNextUpgrade"}
	already := checktest.Said{Outcome: preflight.Fail, Reason: "KubeletMinorVersionUnsupported"}
	both := []runtime.Object{pool("master"), pool("worker")}
	windows := node("w", "v1.30.0", "worker")
	windows.Labels[corev1.LabelOSStable] = "windows"
	twice := node("n", "v1.31.0", "worker", "infra", "ocs")
	twice.Annotations = map[string]string{"machineconfiguration.openshift.io/currentConfig": "rendered-ocs-0123"}
	broken := pool("broken")
	broken.Spec.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}
	everything := pool("everything")
	everything.Spec.NodeSelector = &metav1.LabelSelector{}
	for name, tc := range map[string]struct {
		reason   string
		from, to string
		desired  string
		objects  []runtime.Object
		says     string
		want     results
	}{
		"Synced": {
			reason:  "what this update brings along is no news, but there is a deadline for it",
			objects: append([]runtime.Object{node("m", "v1.31.4", "master"), node("w", "v1.31.4+abc", "worker")}, both...),
			says:    "all 2 kubelets, the oldest of which is 1.31: it supports them from 1.31 on; they have to follow before the update to 4.21",
			want:    results{title: synced},
		},
		"SyncedToEven": {
			reason: "4.20 supports two behind", from: "4.19.3", to: "4.20.0",
			objects: append([]runtime.Object{node("w", "v1.32.4", "worker")}, both...),
			says:    "from 1.31 on; they have to follow before the update to 4.21",
			want:    results{title: synced},
		},
		"Beyond": {
			reason:  "4.19 supports one behind, as KASO's table for odd releases says",
			objects: append([]runtime.Object{node("m", "v1.31.4", "master"), node("w", "v1.30.4", "worker")}, both...),
			says:    `MachineConfigPool "worker": kubelet 1.30 (v1.30.4) on w, but the API server of 4.19 supports kubelets from 1.31 on; this does not block updates within 4.18`,
			want:    results{title + "-worker": next},
		},
		"BeyondAlready": {
			reason:  "three behind is not supported by 4.18 either",
			objects: append([]runtime.Object{node("w", "v1.28.4", "worker")}, both...),
			want:    results{title + "-worker": already},
		},
		"BeyondAndPaused": {
			reason:  "a paused pool is why, and the remedy",
			objects: []runtime.Object{node("w", "v1.30.4", "worker"), paused("worker")},
			says:    `MachineConfigPool "worker" (paused): kubelet 1.30`,
			want:    results{title + "-worker": next},
		},
		"AtTheLimit": {
			reason: "4.20 supports two behind, 4.21 one", from: "4.19.3", to: "4.20.0",
			objects: append([]runtime.Object{node("w", "v1.31.4", "worker")}, both...),
			says:    "which 4.20 supports; they have to be updated before the update to 4.21, which supports kubelets from 1.33 on",
			want:    results{title + "-worker": limit},
		},
		"OfNoPool": {
			reason:  "no update brings along what no pool has",
			objects: []runtime.Object{node("w", "v1.31.4"), pool("worker")},
			says:    "nodes that no MachineConfigPool updates",
			want:    results{title: limit},
		},
		"Paused": {
			reason:  "4.19 and 4.20 support it, so two hops take one reboot; 4.21 does not",
			objects: []runtime.Object{node("m", "v1.31.4", "master"), node("w", "v1.31.4", "worker"), pool("master"), paused("worker")},
			says:    "the pool has to be unpaused, and its nodes updated, before the update to 4.21, which supports kubelets from 1.33 on",
			want:    results{title + "-worker": pausedPool},
		},
		"PausedTo5": {
			reason: "5.0 and 5.1 support 1.35, and 5.2 three behind", from: "4.22.3", to: "5.0.0",
			objects: []runtime.Object{node("w", "v1.35.4", "worker"), paused("worker")},
			says:    "which later release does not support them is not known yet",
			want:    results{title + "-worker": pausedPool},
		},
		"BeyondTo5": {
			reason: "5.0 supports one behind", from: "4.22.3", to: "5.0.0",
			objects: append([]runtime.Object{node("w", "v1.34.4", "worker")}, both...),
			want:    results{title + "-worker": next},
		},
		"Within5": {
			reason: "5.1 supports two behind", from: "5.0.3", to: "5.1.0",
			objects: append([]runtime.Object{node("w", "v1.35.4", "worker")}, both...),
			want:    results{title + "-worker": limit},
		},
		"SameKubernetes": {
			reason: "5.0 has the Kubernetes of 4.23", from: "4.23.3", to: "5.0.0",
			objects: append([]runtime.Object{node("w", "v1.35.4", "worker")}, both...),
			want:    results{title + "-worker": limit},
		},
		"CustomPool": {
			reason:  "a custom pool takes its nodes from worker",
			objects: []runtime.Object{node("n", "v1.31.0", "worker", "infra"), pool("worker"), paused("infra")},
			want:    results{title + "-infra": pausedPool},
		},
		"ControlPlaneFirst": {
			reason:  "a compact cluster's nodes are the master pool's",
			objects: []runtime.Object{node("n", "v1.31.0", "worker", "master"), paused("master"), pool("worker")},
			want:    results{title + "-master": pausedPool},
		},
		"TwoCustomPools": {
			reason:  "the one whose configuration the node has",
			objects: []runtime.Object{twice, pool("worker"), pool("infra"), paused("ocs")},
			want:    results{title + "-ocs": pausedPool},
		},
		"Windows": {
			reason:  "no pool updates Windows",
			objects: []runtime.Object{windows, paused("worker")},
			want:    results{title: next},
		},
		"EmptySelector": {
			reason:  "the machine-config-operator takes a pool that selects everything for one that selects nothing",
			objects: []runtime.Object{node("w", "v1.30.4", "worker"), everything},
			want:    results{title: next},
		},
		"BrokenPool": {
			reason:  "kubelets are judged where a pool cannot be, and nothing passes",
			objects: []runtime.Object{node("w", "v1.30.4", "worker"), broken},
			want:    results{title: {Outcome: preflight.Unknown, Reason: "Error"}},
		},
		"Ahead": {
			reason:  "a kubelet newer than the API server is supported nowhere, and KASO cannot tell",
			objects: append([]runtime.Object{node("m", "v1.31.0", "master"), node("w", "v1.32.0", "worker")}, both...),
			says:    "kubelet 1.32 (v1.32.0) on w; CVO lets the update pass",
			want:    results{"KubeletMinorVersionAhead": {Outcome: preflight.Unknown, Reason: "KubeletMinorVersionAhead"}},
		},
		"AheadInAnUpdate": {
			reason: "an update to 4.19 that is in progress has updated some kubelets", desired: "4.19.1", to: "4.19.2",
			objects: append([]runtime.Object{node("m", "v1.32.0", "master"), node("w", "v1.31.0", "worker")}, both...),
			want:    results{title: synced},
		},
		"Unreadable": {
			reason:  "CVO lets pass what KASO cannot read; we do not",
			objects: []runtime.Object{node("a", ""), node("b", "v1.31"), node("c", "1.31.x"), node("d", "v2.31.0"), node("e", "v1.30.0")},
			says:    `kubelet "" on a; kubelet "1.31.x" on c; kubelet "v1.31" on b; kubelet "v2.31.0" on d`,
			want: results{
				"KubeletVersionUnknown": {Outcome: preflight.Unknown, Reason: "KubeletVersionUnknown"}, title: next,
			},
		},
		"UnknownTarget": {
			reason: "nobody guesses the Kubernetes of 5.3", from: "5.2.0", to: "5.3.0",
			objects: []runtime.Object{node("w", "v1.38.4", "worker")},
			want:    results{title: {Outcome: preflight.Unknown, Reason: "UnknownKubernetesVersion"}},
		},
		"Behind": {
			reason: "one behind is supported by 5.2, and nothing later is known", from: "5.1.0", to: "5.2.0",
			objects: append([]runtime.Object{node("w", "v1.36.4", "worker")}, both...),
			want:    results{title: behind},
		},
		"NoNodes": {
			reason: "nothing is left behind",
			want:   results{title: {Outcome: preflight.Pass, Reason: "NoNodes"}},
		},
		"Patch": {
			reason: "patch updates keep the API server's minor version", to: "4.18.9",
			objects: []runtime.Object{node("w", "v1.20.4", "worker")},
			want:    results{title: {Outcome: preflight.Skipped, Reason: "NotConcerned"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Hold(t, infrastructure(configv1.HighlyAvailableTopologyMode), desiring(either(tc.desired, either(tc.from, "4.18.3"))))
			server.Hold(t, tc.objects...)
			findings := checktest.Run(t, gate.KubeletSkew(), server.Snapshot(t), parse(t, tc.from, tc.to))
			if diff := cmp.Diff(tc.want, checktest.Summary(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.says)
			}
		})
	}
}

func TestKubeletSkewNamesWhatToDo(t *testing.T) {
	server.Hold(t, infrastructure(configv1.HighlyAvailableTopologyMode), desiring("4.18.3"), node("w", "v1.30.4", "worker"), paused("worker"))
	got := checktest.Run(t, gate.KubeletSkew(), server.Snapshot(t), parse(t, "", ""))[0]
	if want := `oc patch machineconfigpool worker --type merge --patch '{"spec":{"paused":false}}'`; !strings.Contains(got.Remediation, want) {
		t.Errorf("remediation %q does not have the command %q", got.Remediation, want)
	}
	want := []preflight.Object{
		{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: "worker"}, {APIVersion: "v1", Kind: "Node", Name: "w"},
	}
	if diff := cmp.Diff(want, got.Objects); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
	if !got.Blocks || len(got.BlockedTargets) != 1 {
		t.Errorf("blocks %v %v, want 4.19.0", got.Blocks, got.BlockedTargets)
	}
}

func TestPoolsElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		want    checktest.Said
	}{
		"HyperShift": {
			reason: "NodePools have rules of their own", objects: []runtime.Object{infrastructure(configv1.ExternalTopologyMode)},
			want: checktest.Said{Outcome: preflight.Skipped, Reason: "HyperShift"},
		},
		"PlainKubernetes": {
			reason: "there is no OpenShift", want: checktest.Said{Outcome: preflight.Skipped, Reason: "PlainKubernetes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Hold(t, tc.objects...)
			cluster := server.Snapshot(t)
			for _, check := range []checktest.Said{
				checktest.Summary(checktest.Run(t, gate.KubeletSkew(), cluster, parse(t, "", "")))["KubeletMinorVersionUpgradeable"],
				checktest.Summary(checktest.Run(t, gate.MachineConfigPools(), cluster, parse(t, "", "")))["MachineConfigPool"],
			} {
				if check != tc.want {
					t.Errorf("%s: %v, want %v", tc.reason, check, tc.want)
				}
			}
		})
	}
}

func TestKubeletSkewUnreadable(t *testing.T) {
	const title = "KubeletMinorVersionUpgradeable"
	forbidden := func(what string) checktest.Answer {
		return func(*http.Request) (int, []byte) {
			return http.StatusForbidden, []byte(fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no %s"}`, what))
		}
	}
	for name, tc := range map[string]struct {
		reason string
		paths  map[string]checktest.Answer
		says   string
		want   []preflight.Outcome
	}{
		"Nodes": {
			reason: "without nodes there is nothing to judge", says: "could not list the nodes",
			paths: map[string]checktest.Answer{"/api/v1/nodes": forbidden("nodes")},
			want:  []preflight.Outcome{preflight.Unknown},
		},
		"Pools": {
			reason: "without pools the kubelets can be judged", says: "could not list the MachineConfigPools",
			paths: map[string]checktest.Answer{poolsPath: forbidden("pools")},
			want:  []preflight.Outcome{preflight.Fail, preflight.Unknown},
		},
		"NoPools": {
			reason: "the skew is beyond the limit whoever updates the node", says: "no MachineConfigPool updates",
			paths: map[string]checktest.Answer{poolsPath: checktest.NotServed},
			want:  []preflight.Outcome{preflight.Fail},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Hold(t, infrastructure(configv1.HighlyAvailableTopologyMode), desiring("4.18.3"), node("w", "v1.30.4", "worker"), pool("worker"))
			findings := checktest.Run(t, gate.KubeletSkew(), server.Answering(tc.paths).Snapshot(t), parse(t, "", ""))
			var got []preflight.Outcome
			for _, f := range findings {
				got = append(got, f.Outcome)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if last := findings[len(findings)-1]; last.Name != title || !strings.Contains(last.Message, tc.says) {
				t.Errorf("%s: %s: %q, want %q in it", tc.reason, last.Name, last.Message, tc.says)
			}
		})
	}
}

const poolsPath = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"

func TestKubeletSkewOfManyNodes(t *testing.T) {
	server.Hold(t, infrastructure(configv1.HighlyAvailableTopologyMode), desiring("4.18.3"), paused("worker"))
	var nodes []*corev1.Node
	for i := range 10_000 {
		nodes = append(nodes, node(fmt.Sprintf("node-%05d", i), fmt.Sprintf("v1.%d.%d", 30+i%2, i%10), "worker"))
	}
	many := server.Answering(map[string]checktest.Answer{"/api/v1/nodes": checktest.Pages(t, "v1", "NodeList", nodes)})
	findings := checktest.Run(t, gate.KubeletSkew(), many.Snapshot(t), parse(t, "", ""))
	want := map[string]checktest.Said{"KubeletMinorVersionUpgradeable-worker": {Outcome: preflight.Fail, Reason: "KubeletMinorVersionUnsupportedNextUpgrade"}}
	if diff := cmp.Diff(want, checktest.Summary(findings)); diff != "" {
		t.Errorf("10 000 nodes: -want +got:\n%s", diff)
	}
	if got := findings[0]; len(got.Message) > 1000 || len(got.Objects) > 20 || !strings.Contains(got.Message, "and 995 more") {
		t.Errorf("%d objects and the message %q, want a summary", len(got.Objects), got.Message)
	}
}

func TestKubeletSkewOfManyPools(t *testing.T) {
	server.Hold(t, infrastructure(configv1.HighlyAvailableTopologyMode), desiring("4.18.3"))
	var nodes []*corev1.Node
	var pools []*machineconfigurationv1.MachineConfigPool
	for i := range 60 {
		name := fmt.Sprintf("pool-%02d", i)
		kubelet := "v1.30.0"
		if i < 5 {
			kubelet = "v1.31.0"
		}
		nodes, pools = append(nodes, node("node-"+name, kubelet, name)), append(pools, paused(name))
		pools[i].TypeMeta = metav1.TypeMeta{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool"}
	}
	many := server.Answering(map[string]checktest.Answer{
		"/api/v1/nodes": checktest.Pages(t, "v1", "NodeList", nodes),
		poolsPath:       checktest.Pages(t, "machineconfiguration.openshift.io/v1", "MachineConfigPoolList", pools),
	})
	findings := checktest.Run(t, gate.KubeletSkew(), many.Snapshot(t), parse(t, "", ""))
	last := findings[len(findings)-1]
	if len(findings) != 51 || last.Reason != "AndMore" || last.Outcome != preflight.Fail || !strings.Contains(last.Message, "10 more findings like the 50 listed: 5 Fail, 5 Warn") {
		t.Errorf("%d findings, the last is %s: %q", len(findings), last.Outcome, last.Message)
	}
}

func FuzzKubeletMinor(f *testing.F) {
	for _, seed := range []string{"v1.31.4", "1.31.4", "v1.31.4+abc", "v1.31.0-rc.1", "", "v1", "v2.0.0", "v1.99999999999999999999.0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, version string) {
		minor, ok := gate.KubeletMinor(version)
		if ok && !strings.HasPrefix(strings.TrimPrefix(version, "v"), fmt.Sprintf("1.%d.", minor)) {
			t.Errorf("%q is taken for 1.%d", version, minor)
		}
	})
}
