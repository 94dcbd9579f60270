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

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// node has this kubelet and these roles.
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
	const name = "KubeletMinorVersionUpgradeable"
	type results = map[string]checktest.Result
	synced := checktest.Result{Outcome: preflight.Pass, Reason: "KubeletMinorVersionsSynced"}
	behind := checktest.Result{Outcome: preflight.Pass, Reason: "KubeletMinorVersionSupportedNextUpgrade"}
	limit := checktest.Result{Outcome: preflight.Warn, Reason: "KubeletMinorVersionSupportedNextUpgrade"}
	pausedPool := checktest.Result{Outcome: preflight.Warn, Reason: "PoolPaused"}
	next := checktest.Result{Outcome: preflight.Fail, Reason: "KubeletMinorVersionUnsupportedNextUpgrade"}
	already := checktest.Result{Outcome: preflight.Fail, Reason: "KubeletMinorVersionUnsupported"}
	both := []runtime.Object{pool("master"), pool("worker")}
	windows := node("w", "v1.30.0", "worker")
	windows.Labels[corev1.LabelOSStable] = "windows"
	twice := node("n", "v1.31.0", "worker", "infra", "ocs")
	twice.Annotations = map[string]string{"machineconfiguration.openshift.io/currentConfig": "rendered-ocs-0123"}
	broken := pool("broken")
	broken.Spec.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}
	everything := pool("everything")
	everything.Spec.NodeSelector = &metav1.LabelSelector{}
	for test, tc := range map[string]struct {
		reason   string
		from, to string
		desired  string
		objects  []runtime.Object
		message  string // a part of all messages
		want     results
	}{
		"Synced": {
			reason:  "kubelets that this update brings up to date pass, with a deadline",
			objects: append([]runtime.Object{node("m", "v1.31.4", "master"), node("w", "v1.31.4+abc", "worker")}, both...),
			message: "2 kubelets: the oldest is 1.31, and it supports kubelets from 1.31 on; they must be updated before the update to 4.21",
			want:    results{name: synced},
		},
		"SyncedToEven": {
			reason: "4.20 supports kubelets that are two minor versions older", from: "4.19.3", to: "4.20.0",
			objects: append([]runtime.Object{node("w", "v1.32.4", "worker")}, both...),
			message: "from 1.31 on; they must be updated before the update to 4.21",
			want:    results{name: synced},
		},
		"Beyond": {
			reason:  "4.19 supports one older minor version, by KASO's table for odd releases",
			objects: append([]runtime.Object{node("m", "v1.31.4", "master"), node("w", "v1.30.4", "worker")}, both...),
			message: `MachineConfigPool "worker": kubelet 1.30 (v1.30.4) on w, but the API server of 4.19 supports kubelets from 1.31 on; this does not block updates within 4.18`,
			want:    results{name + "-worker": next},
		},
		"BeyondAlready": {
			reason:  "4.18 does not support three older minor versions either",
			objects: append([]runtime.Object{node("w", "v1.28.4", "worker")}, both...),
			want:    results{name + "-worker": already},
		},
		"BeyondAndPaused": {
			reason:  "the pool is paused",
			objects: []runtime.Object{node("w", "v1.30.4", "worker"), paused("worker")},
			message: `MachineConfigPool "worker" (paused): kubelet 1.30`,
			want:    results{name + "-worker": next},
		},
		"AtTheLimit": {
			reason: "4.20 supports two older minor versions, 4.21 one", from: "4.19.3", to: "4.20.0",
			objects: append([]runtime.Object{node("w", "v1.31.4", "worker")}, both...),
			message: "which 4.20 supports; they must be updated before the update to 4.21, which supports kubelets from 1.33 on",
			want:    results{name + "-worker": limit},
		},
		"OfNoPool": {
			reason:  "no update includes nodes without a pool",
			objects: []runtime.Object{node("w", "v1.31.4"), pool("worker")},
			message: "nodes that no MachineConfigPool updates",
			want:    results{name: limit},
		},
		"Paused": {
			reason:  "4.19 and 4.20 support it, so two hops need one reboot; 4.21 does not",
			objects: []runtime.Object{node("m", "v1.31.4", "master"), node("w", "v1.31.4", "worker"), pool("master"), paused("worker")},
			message: "the pool must be unpaused, and its nodes updated, before the update to 4.21, which supports kubelets from 1.33 on",
			want:    results{name + "-worker": pausedPool},
		},
		"PausedTo5": {
			reason: "5.0 and 5.1 support 1.35, and 5.2 supports three older minor versions", from: "4.22.3", to: "5.0.0",
			objects: []runtime.Object{node("w", "v1.35.4", "worker"), paused("worker")},
			message: "the first release that does not support them is unknown",
			want:    results{name + "-worker": pausedPool},
		},
		"BeyondTo5": {
			reason: "5.0 supports one older minor version", from: "4.22.3", to: "5.0.0",
			objects: append([]runtime.Object{node("w", "v1.34.4", "worker")}, both...),
			want:    results{name + "-worker": next},
		},
		"Within5": {
			reason: "5.1 supports two older minor versions", from: "5.0.3", to: "5.1.0",
			objects: append([]runtime.Object{node("w", "v1.35.4", "worker")}, both...),
			want:    results{name + "-worker": limit},
		},
		"SameKubernetes": {
			reason: "5.0 has the Kubernetes of 4.23", from: "4.23.3", to: "5.0.0",
			objects: append([]runtime.Object{node("w", "v1.35.4", "worker")}, both...),
			want:    results{name + "-worker": limit},
		},
		"CustomPool": {
			reason:  "a custom pool has precedence over worker",
			objects: []runtime.Object{node("n", "v1.31.0", "worker", "infra"), pool("worker"), paused("infra")},
			want:    results{name + "-infra": pausedPool},
		},
		"ControlPlaneFirst": {
			reason:  "the master pool has precedence on a compact cluster",
			objects: []runtime.Object{node("n", "v1.31.0", "worker", "master"), paused("master"), pool("worker")},
			want:    results{name + "-master": pausedPool},
		},
		"TwoCustomPools": {
			reason:  "the pool whose configuration the node has",
			objects: []runtime.Object{twice, pool("worker"), pool("infra"), paused("ocs")},
			want:    results{name + "-ocs": pausedPool},
		},
		"Windows": {
			reason:  "no pool updates Windows",
			objects: []runtime.Object{windows, paused("worker")},
			want:    results{name: next},
		},
		"EmptySelector": {
			reason:  "the machine-config-operator treats an empty selector as one that selects nothing",
			objects: []runtime.Object{node("w", "v1.30.4", "worker"), everything},
			want:    results{name: next},
		},
		"BrokenPool": {
			reason:  "kubelets are judged where a pool cannot be read, and do not pass",
			objects: []runtime.Object{node("w", "v1.30.4", "worker"), broken},
			want:    results{name: {Outcome: preflight.Unknown, Reason: "Error"}},
		},
		"Ahead": {
			reason:  "no release supports a newer kubelet, and KASO reports Unknown",
			objects: append([]runtime.Object{node("m", "v1.31.0", "master"), node("w", "v1.32.0", "worker")}, both...),
			message: "kubelet 1.32 (v1.32.0) on w; CVO accepts the update",
			want:    results{"KubeletMinorVersionAhead": {Outcome: preflight.Unknown, Reason: "KubeletMinorVersionAhead"}},
		},
		"AheadInAnUpdate": {
			reason: "an update to 4.19 that is in progress has updated some kubelets", desired: "4.19.1", to: "4.19.2",
			objects: append([]runtime.Object{node("m", "v1.32.0", "master"), node("w", "v1.31.0", "worker")}, both...),
			want:    results{name: synced},
		},
		"Unreadable": {
			reason:  "a version that KASO cannot read is inconclusive",
			objects: []runtime.Object{node("a", ""), node("b", "v1.31"), node("c", "1.31.x"), node("d", "v2.31.0"), node("e", "v1.30.0")},
			message: `kubelet "" on a; kubelet "1.31.x" on c; kubelet "v1.31" on b; kubelet "v2.31.0" on d`,
			want: results{
				"KubeletVersionUnknown": {Outcome: preflight.Unknown, Reason: "KubeletVersionUnknown"}, name: next,
			},
		},
		"UnknownTarget": {
			reason: "the Kubernetes version of 5.3 is unknown", from: "5.2.0", to: "5.3.0",
			objects: []runtime.Object{node("w", "v1.38.4", "worker")},
			want:    results{name: {Outcome: preflight.Unknown, Reason: "UnknownKubernetesVersion"}},
		},
		"Behind": {
			reason: "5.2 supports one older minor version, and no later release is known", from: "5.1.0", to: "5.2.0",
			objects: append([]runtime.Object{node("w", "v1.36.4", "worker")}, both...),
			want:    results{name: behind},
		},
		"NoNodes": {
			reason: "a cluster without nodes has no kubelets",
			want:   results{name: {Outcome: preflight.Pass, Reason: "NoNodes"}},
		},
		"Patch": {
			reason: "patch updates keep the API server's minor version", to: "4.18.9",
			objects: []runtime.Object{node("w", "v1.20.4", "worker")},
			want:    results{name: {Outcome: preflight.Skipped, Reason: "NotConcerned"}},
		},
	} {
		t.Run(test, func(t *testing.T) {
			u := checktest.MinorUpdate(t, tc.from, tc.to)
			if tc.desired == "" {
				tc.desired = u.From.String()
			}
			server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode), desiring(tc.desired))
			server.Create(t, tc.objects...)
			findings := checktest.Run(t, gate.KubeletSkew(), server.Snapshot(t), u)
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			checktest.Contains(t, tc.reason, checktest.Messages(findings), []string{tc.message})
		})
	}
}

func TestKubeletSkewRemedy(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode), desiring("4.18.3"), node("w", "v1.30.4", "worker"))
	server.Of("oc").Create(t, paused("worker"))
	findings := checktest.Run(t, gate.KubeletSkew(), server.Snapshot(t), checktest.MinorUpdate(t, "", ""))
	checktest.Contains(t, "remedy", checktest.Remedies(findings), []string{
		`Run oc patch machineconfigpool worker --type merge --patch '{"spec":{"paused":false}}'`, "Run oc wait machineconfigpool worker --for",
	})
	got := findings[0]
	want := []preflight.Object{
		{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: "worker"},
		{APIVersion: "v1", Kind: "Node", Name: "w"},
	}
	if diff := cmp.Diff(want, got.Objects); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
	if !got.Blocks || len(got.BlockedTargets) != 1 {
		t.Errorf("blocks %v %v, want 4.19.0", got.Blocks, got.BlockedTargets)
	}
}

func TestClustersWithoutPools(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		want    checktest.Result
	}{
		"HyperShift": {
			reason: "NodePools have their own rules", objects: []runtime.Object{checktest.Infrastructure(configv1.ExternalTopologyMode)},
			want: checktest.Result{Outcome: preflight.Skipped, Reason: "HyperShift"},
		},
		"PlainKubernetes": {
			reason: "the cluster is not OpenShift", want: checktest.Result{Outcome: preflight.Skipped, Reason: "PlainKubernetes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			cluster := server.Snapshot(t)
			for _, check := range []checktest.Result{
				checktest.Results(checktest.Run(t, gate.KubeletSkew(), cluster, checktest.MinorUpdate(t, "", "")))["KubeletMinorVersionUpgradeable"],
				checktest.Results(checktest.Run(t, gate.MachineConfigPools(), cluster, checktest.MinorUpdate(t, "", "")))["MachineConfigPool"],
			} {
				if check != tc.want {
					t.Errorf("%s: %v, want %v", tc.reason, check, tc.want)
				}
			}
		})
	}
}

func TestKubeletSkewUnread(t *testing.T) {
	const check = "KubeletMinorVersionUpgradeable"
	forbidden := func(resource string) checktest.Response {
		return func(*http.Request) (int, []byte) {
			return http.StatusForbidden, []byte(fmt.Sprintf(
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no %s"}`, resource))
		}
	}
	for name, tc := range map[string]struct {
		reason string
		paths  map[string]checktest.Response
		first  string // a part of the first message
		last   string // a part of the last message
		want   []preflight.Outcome
	}{
		"Nodes": {
			reason: "without nodes the check is inconclusive", last: "could not list the nodes",
			paths: map[string]checktest.Response{"/api/v1/nodes": forbidden("nodes")},
			want:  []preflight.Outcome{preflight.Unknown},
		},
		"Pools": {
			reason: "without pools the kubelets are judged, and are not said to be of none", first: "nodes whose MachineConfigPool is unknown",
			last:  "could not list the MachineConfigPools",
			paths: map[string]checktest.Response{poolsPath: forbidden("pools")},
			want:  []preflight.Outcome{preflight.Fail, preflight.Unknown},
		},
		"NoPools": {
			reason: "the limit does not depend on the pool", last: "no MachineConfigPool updates",
			paths: map[string]checktest.Response{poolsPath: checktest.NotServed},
			want:  []preflight.Outcome{preflight.Fail},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode), desiring("4.18.3"), node("w", "v1.30.4", "worker"),
				pool("worker"))
			findings := checktest.Run(t, gate.KubeletSkew(), server.Responding(tc.paths).Snapshot(t), checktest.MinorUpdate(t, "", ""))
			var got []preflight.Outcome
			for _, f := range findings {
				got = append(got, f.Outcome)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.first) {
				t.Errorf("%s: %q, want %q in it", tc.reason, findings[0].Message, tc.first)
			}
			if last := findings[len(findings)-1]; last.Name != check || !strings.Contains(last.Message, tc.last) {
				t.Errorf("%s: %s: %q, want %q in it", tc.reason, last.Name, last.Message, tc.last)
			}
		})
	}
}

const poolsPath = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"

func TestKubeletSkewWithManyNodes(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode), desiring("4.18.3"), paused("worker"))
	var nodes []*corev1.Node
	for i := range 10_000 {
		nodes = append(nodes, node(fmt.Sprintf("node-%05d", i), fmt.Sprintf("v1.%d.%d", 30+i%2, i%10), "worker"))
	}
	many := server.Responding(map[string]checktest.Response{"/api/v1/nodes": checktest.Pages(t, "v1", "NodeList", nodes)})
	findings := checktest.Run(t, gate.KubeletSkew(), many.Snapshot(t), checktest.MinorUpdate(t, "", ""))
	want := map[string]checktest.Result{"KubeletMinorVersionUpgradeable-worker": {
		Outcome: preflight.Fail,
		Reason:  "KubeletMinorVersionUnsupportedNextUpgrade",
	}}
	if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
		t.Errorf("10 000 nodes: -want +got:\n%s", diff)
	}
	if got := findings[0]; len(got.Message) > 1000 || len(got.Objects) != finding.MaxObjects ||
		!strings.Contains(got.Message, "and 995 more") {
		t.Errorf("%d objects and the message %q, want a summary", len(got.Objects), got.Message)
	}
}

func TestKubeletSkewWithManyPools(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode), desiring("4.18.3"))
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
	many := server.Responding(map[string]checktest.Response{
		"/api/v1/nodes": checktest.Pages(t, "v1", "NodeList", nodes),
		poolsPath:       checktest.Pages(t, "machineconfiguration.openshift.io/v1", "MachineConfigPoolList", pools),
	})
	findings := checktest.Run(t, gate.KubeletSkew(), many.Snapshot(t), checktest.MinorUpdate(t, "", ""))
	last := findings[len(findings)-1]
	if len(findings) != 51 || last.Reason != "AndMore" || last.Outcome != preflight.Fail ||
		!strings.Contains(last.Message, "10 more findings besides the 50 listed: 5 Fail, 5 Warn") {
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
			t.Errorf("%q is parsed as 1.%d", version, minor)
		}
	})
}
