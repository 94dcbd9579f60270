package health_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// controlPlane has the role of the control plane, by one of its labels.
func controlPlane(label string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Labels = map[string]string{"node-role.kubernetes.io/" + label: ""} }
}

func TestEtcdQuorum(t *testing.T) {
	master, newer := controlPlane("master"), controlPlane("control-plane")
	fine, fails := result(preflight.Pass, "AsExpected"), result(preflight.Fail, "TwoControlPlaneNodes")
	for name, tc := range map[string]struct {
		reason   string
		topology configv1.TopologyMode
		nodes    []*corev1.Node
		to       string
		want     checktest.Result
	}{
		"Two":       {reason: "report 107: each reboot ends the quorum", nodes: []*corev1.Node{node("a", master), node("b", master), node("c")}, want: fails},
		"TwoNewer":  {reason: "installers of 4.25 may leave the label master out", nodes: []*corev1.Node{node("a", newer), node("b", newer)}, want: fails},
		"Patch":     {reason: "a patch update reboots nodes, too", to: "4.18.9", nodes: []*corev1.Node{node("a", master), node("b", newer)}, want: fails},
		"Three":     {reason: "one of three members may be down", nodes: []*corev1.Node{node("a", master), node("b", master), node("c", master)}, want: fine},
		"Five":      {reason: "two of five may be", nodes: []*corev1.Node{node("a", master), node("b", master), node("c", master), node("d", newer), node("e", newer)}, want: fine},
		"One":       {reason: "a single node returns with its member", topology: configv1.SingleReplicaTopologyMode, nodes: []*corev1.Node{node("a", master)}, want: fine},
		"Arbiter":   {reason: "the arbiter is the third member", topology: configv1.HighlyAvailableArbiterMode, nodes: []*corev1.Node{node("a", master), node("b", master), node("c", controlPlane("arbiter"))}, want: fine},
		"Fencing":   {reason: "Pacemaker keeps two nodes with fencing", topology: configv1.DualReplicaTopologyMode, nodes: []*corev1.Node{node("a", master), node("b", master)}, want: fine},
		"TwoOfBoth": {reason: "two workers are none", nodes: []*corev1.Node{node("a", master), node("b", master), node("c", master), node("d", controlPlane("worker")), node("e", controlPlane("worker"))}, want: fine},
		"Hosted":    {reason: "its etcd runs elsewhere", topology: configv1.ExternalTopologyMode, nodes: []*corev1.Node{node("a", master), node("b", master)}, want: fine},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.topology == "" {
				tc.topology = configv1.HighlyAvailableTopologyMode
			}
			with := server.Responding(map[string]checktest.Response{
				nodesPath: checktest.Pages(t, "v1", "NodeList", tc.nodes),
				"/apis/config.openshift.io/v1/infrastructures/cluster": checktest.Body(text(t, checktest.Infrastructure(tc.topology))),
			})
			findings := checktest.Run(t, health.EtcdQuorum(), with.Snapshot(t), checktest.MinorUpdate(t, "", tc.to))
			if diff := cmp.Diff(results{"EtcdQuorum": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// An archive that lacks a node of a pool does not show that the control plane has two.
func TestEtcdQuorumNotInArchive(t *testing.T) {
	dir := t.TempDir()
	write := func(path string, object any) {
		path = filepath.Join(dir, "cluster-scoped-resources", path+".yaml")
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text(t, object)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	of := func(apiVersion, kind string, object any) map[string]any {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(text(t, object)), &fields); err != nil {
			t.Fatal(err)
		}
		fields["apiVersion"], fields["kind"] = apiVersion, kind
		return fields
	}
	list := func(kind string, object any) map[string]any {
		return map[string]any{"apiVersion": "config.openshift.io/v1", "kind": kind + "List", "metadata": map[string]any{}, "items": []any{of("config.openshift.io/v1", kind, object)}}
	}
	write("config.openshift.io/infrastructures", list("Infrastructure", checktest.Infrastructure(configv1.HighlyAvailableTopologyMode)))
	write("config.openshift.io/clusterversions", list("ClusterVersion", checktest.At("4.18.3")))
	for _, name := range []string{"a", "b"} {
		write("core/nodes/"+name, of("v1", "Node", node(name, controlPlane("master"))))
	}
	pool := map[string]any{"metadata": map[string]any{"name": "master"}, "spec": map[string]any{"nodeSelector": map[string]any{"matchLabels": map[string]any{"node-role.kubernetes.io/master": ""}}}, "status": map[string]any{"machineCount": 3}}
	write("machineconfiguration.openshift.io/machineconfigpools/master", of("machineconfiguration.openshift.io/v1", "MachineConfigPool", pool))
	opened, err := archive.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	api, err := cluster.Connect(opened.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	subject := check.Subject{Cluster: snapshot.Of(api), Update: patch(t)}
	findings := collector.Collect(t.Context(), collector.Bind(subject, []check.Check{health.EtcdQuorum()}), func(collector.Source, []finding.Finding) {}).Findings
	if diff := cmp.Diff(results{"EtcdQuorum": result(preflight.Unknown, "NotInArchive")}, checktest.Results(findings)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
