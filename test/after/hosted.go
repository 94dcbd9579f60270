package after

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
)

// HostedCluster is the hosted cluster in its management cluster.
func HostedCluster() Ref { return Ref{Kind: "HostedCluster", Namespace: "clusters", Name: "example"} }

// Workers is the NodePool that requests the release of the control plane, and replaces its machines.
func Workers() Ref { return Ref{Kind: "NodePool", Namespace: "clusters", Name: "workers"} }

// Stable is the NodePool that stays at the release from before.
func Stable() Ref { return Ref{Kind: "NodePool", Namespace: "clusters", Name: "stable"} }

// NewHosted is New of the guest of a hosted cluster: its nodes belong to NodePools. The server of the World has the
// objects of its management cluster as well.
func NewHosted(noon time.Time) *World {
	w := New(noon)
	w.Put(Ref{Kind: "Infrastructure", Name: "cluster"}, "status.controlPlaneTopology", "External")
	for ref := range w.objects {
		machines := ref.Kind == "MachineConfigPool" || ref.Kind == "MachineSet"
		master := strings.HasPrefix(ref.Name, "master-") || strings.HasPrefix(ref.Name, "infra-")
		operator := ref.Kind == "ClusterOperator" && (ref.Name == "etcd" || ref.Name == "machine-api" || ref.Name == "machine-config")
		if machines || master || operator {
			w.Delete(ref)
		}
	}
	for _, ref := range w.All("Node") {
		w.Put(ref, "metadata.annotations", map[string]any{"cluster.x-k8s.io/machine": ref.Name})
	}
	w.Set(HostedCluster(), fmt.Sprintf(
		`{"spec":{"clusterID":"6ba7b810-9dad-41d1-80b4-00c04fd430c8","infraID":"example-7x2kq","release":{"image":%q}},"status":{"kubeconfig":{"name":"guest"}}}`, image(From)))
	for kind, status := range map[string]string{
		"Available": "True", "Progressing": "False", "Degraded": "False", "EtcdAvailable": "True", "KubeAPIServerAvailable": "True",
		"InfrastructureReady":       "True",
		"IgnitionEndpointAvailable": "True", "ReconciliationSucceeded": "True", "ReconciliationActive": "True", "ValidReleaseImage": "True",
		"DataPlaneConnectionAvailable": "True",
	} {
		w.Condition(HostedCluster(), kind, status, "AsExpected", 30*24*time.Hour)
	}
	for _, ref := range []Ref{Workers(), Stable()} {
		w.Set(ref, fmt.Sprintf(
			`{"spec":{"clusterName":"example","replicas":3,"release":{"image":%q},"management":{"upgradeType":"Replace","replace":{"strategy":"RollingUpdate"}},"platform":{"type":"AWS"}},"status":{"replicas":3,"version":%q}}`, image(From), From))
		for kind, status := range map[string]string{
			"AllMachinesReady": "True", "AllNodesHealthy": "True", "ValidReleaseImage": "True", "UpdatingVersion": "False",
			"UpdatingConfig": "False", "SupportedVersionSkew": "True",
		} {
			w.Condition(ref, kind, status, "AsExpected", 30*24*time.Hour)
		}
	}
	return w
}

// UpdateHosted brings the control plane and the NodePool that requests its release to the next release, without harm. It has
// settled half an hour before noon.
func (w *World) UpdateHosted() {
	nodes := w.All("Node")
	w.Update()
	w.Put(HostedCluster(), "spec.release.image", image(To))
	w.Put(Workers(), "spec.release.image", image(To))
	w.Put(Workers(), "status.version", To)
	w.Condition(Workers(), "UpdatingVersion", "False", "AsExpected", 80*time.Minute)
	for i, old := range nodes { // the machines of a pool are replaced
		w.Delete(old)
		w.Delete(Ref{Kind: "CSINode", Name: old.Name})
		name := fmt.Sprintf("next-%d", i)
		w.AddNode(name)
		w.Put(Ref{Kind: "Node", Name: name}, "metadata.creationTimestamp", w.At(90*time.Minute))
		w.Condition(Ref{Kind: "Node", Name: name}, "Ready", "True", "KubeletReady", 88*time.Minute)
	}
}

// estateOf is the estate of the guest that the objects of a World are; that of no hosted cluster for others.
func (w *World) estateOf(tb testing.TB, connected *cluster.Cluster) hosted.Estate {
	tb.Helper()
	if _, isHosted := w.objects[HostedCluster()]; !isHosted || w.guest {
		return hosted.Estate{}
	}
	opened, err := hosted.Open(tb.Context(), connected, HostedCluster().Namespace, HostedCluster().Name)
	if err != nil {
		tb.Fatal(err)
	}
	return opened.Estate()
}

// Alone has the guest be read without its management cluster, or with it.
func (w *World) Alone(alone bool) { w.guest = alone }

// Dump writes the cluster as "hypershift dump cluster" did at a time: the objects of the management cluster, and below them
// those of the guest.
func (w *World) Dump(tb testing.TB, dir string, now time.Time) {
	tb.Helper()
	for _, side := range []string{dir, filepath.Join(dir, "hostedcluster-"+HostedCluster().Name)} {
		write(tb, filepath.Join(side, "timestamp"), []byte(strings.Repeat(now.UTC().String()+"\n", 2)))
		for _, object := range w.Objects(tb) {
			scope := "cluster-scoped-resources"
			if object.GetNamespace() != "" {
				scope = filepath.Join("namespaces", object.GetNamespace())
			}
			text, err := json.Marshal(object.Object)
			if err != nil {
				tb.Fatal(err)
			}
			kind := object.GroupVersionKind()
			write(tb, filepath.Join(side, scope, cmp.Or(kind.Group, "core"), w.plural(kind), object.GetName()+".yaml"), text)
		}
	}
}

func write(tb testing.TB, file string, text []byte) {
	tb.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}
