package hosted_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

const (
	present = "quay.io/release@sha256:aa"
	next    = "quay.io/release@sha256:bb"
)

var (
	server     checktest.Server
	management *cluster.Cluster
)

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) {
		server = checktest.Connect(c.Config)
		config := rest.CopyConfig(c.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return readyControlPlane{next} })
		reached, err := cluster.Connect(config, "hosted_test")
		if err != nil {
			panic(err)
		}
		management = reached
	}, testcluster.ControlPlaneOnly())
}

// define makes the server serve the API of HyperShift.
func define(t *testing.T) {
	t.Helper()
	for _, name := range []string{"hostedclusters", "nodepools", "hcpetcdbackups"} {
		server.Define(t, filepath.Join("testdata", name+".crd.yaml"))
	}
}

// hostedCluster runs 4.18.5, is healthy and Upgradeable, and lists 4.18.6 and 4.19.0.
func hostedCluster() *hypershift.HostedCluster {
	h := &hypershift.HostedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: hypershift.GroupVersion().String(), Kind: "HostedCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "example"},
	}
	h.Spec.Release.Image, h.Spec.ClusterID = present, "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	h.Spec.InfraID, h.Status.PayloadArch = "example-7x2kq", "AMD64"
	h.Status.KubeConfig = &struct {
		Name string `json:"name"`
	}{Name: "guest"}
	h.Status.Version = &hypershift.VersionStatus{
		Desired:          configv1.Release{Version: "4.18.5", Image: present},
		History:          []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.18.5", Image: present}},
		AvailableUpdates: []configv1.Release{{Version: "4.18.6", Image: "quay.io/release@sha256:cc"}, {Version: "4.19.0", Image: next}},
	}
	for _, name := range []string{"Available", "EtcdAvailable", "KubeAPIServerAvailable", "InfrastructureReady", "ClusterVersionUpgradeable"} {
		set(h, name, metav1.ConditionTrue)
	}
	return h
}

func set(h *hypershift.HostedCluster, name string, status metav1.ConditionStatus) {
	for i := range h.Status.Conditions {
		if h.Status.Conditions[i].Type == name {
			h.Status.Conditions[i].Status = status
			return
		}
	}
	h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{Type: name, Status: status, Reason: "Test"})
}

// nodePool is a pool of the cluster of that version.
func nodePool(version string) *hypershift.NodePool {
	p := &hypershift.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: hypershift.GroupVersion().String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"},
	}
	p.Spec.ClusterName, p.Status.Version = "example", version
	p.Spec.Management.UpgradeType = "Replace"
	return p
}

func untyped(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// judge reads the hosted cluster, and has what evaluate has of an update to a version.
func judge(t *testing.T, to string, pools ...string) map[string]string {
	t.Helper()
	side, err := hosted.Open(t.Context(), management, "clusters", "example", pools...)
	if err != nil {
		t.Fatal(err)
	}
	return evaluate(t, side, to)
}

// evaluate has the findings of an update to a version as "name: reason outcome", without those that pass.
func evaluate(t *testing.T, side *hosted.ControlPlane, to string) map[string]string {
	t.Helper()
	requested, err := update.Parse("4.18.5", to)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	found := collector.Collect(t.Context(), collector.Bind(check.Subject{Update: requested, Now: now, Hosted: true}, side.Checks()),
		func(collector.Source, []finding.Finding) {})
	got := map[string]string{}
	for _, f := range found.Findings {
		if f.Outcome != preflight.Pass {
			got[f.Name] = strings.TrimSpace(got[f.Name] + " " + f.Reason + " " + string(f.Outcome))
		}
	}
	return got
}

// readyControlPlane answers the requests for the workloads of a control plane, of which the controllers of the
// server would report that none is ready.
type readyControlPlane struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readyControlPlane) RoundTrip(request *http.Request) (*http.Response, error) {
	const ready = `{"metadata":{"namespace":"clusters-example","name":"%s"},"spec":{"replicas":1,"strategy":{"type":"Recreate"}},"status":{"readyReplicas":1}}`
	var body string
	switch request.URL.Path {
	case "/apis/apps/v1/namespaces/clusters-example/statefulsets/etcd":
		body = strings.Replace(fmt.Sprintf(ready, "etcd"), "{", `{"kind":"StatefulSet","apiVersion":"apps/v1",`, 1)
	case "/apis/apps/v1/namespaces/clusters-example/deployments":
		body = `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[` + fmt.Sprintf(ready, "kube-apiserver") + `]}`
	default:
		return r.next.RoundTrip(request)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

const noBackup = "BackupOld Warn"

func TestChecks(t *testing.T) {
	define(t)
	for name, tc := range map[string]struct {
		reason string
		to     string
		pools  []string // named for the update
		change func(h *hypershift.HostedCluster, p *hypershift.NodePool)
		want   map[string]string // besides the missing backup
	}{
		"Healthy": {reason: "nothing is wrong", to: "4.19.0"},
		"StaleForce": {
			reason: "a stale annotation refuses a patch as soon as the cluster is not Upgradeable", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Annotations = map[string]string{hypershift.AnnotationForce: present}
				set(h, "ClusterVersionUpgradeable", metav1.ConditionFalse)
			},
			want: map[string]string{"HostedClusterRequest": "OtherReleaseForced Fail"},
		},
		"StaleForceUpgradeable": {
			reason: "a stale annotation is harmless while the cluster is Upgradeable", to: "4.19.0",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Annotations = map[string]string{hypershift.AnnotationForce: present}
			},
			want: map[string]string{"HostedClusterRequest": "StaleForceAnnotation Warn"},
		},
		"ForcedUnlisted": {
			reason: "whether the annotation names a release that is not listed is unknown", to: "4.18.9",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Annotations = map[string]string{hypershift.AnnotationForce: "quay.io/release@sha256:dd"}
				set(h, "ClusterVersionUpgradeable", metav1.ConditionFalse)
			},
			want: map[string]string{"HostedClusterRequest": "RequestUnknown Unknown"},
		},
		"Forced": {
			reason: "what is accepted only by force is not safe", to: "4.19.0",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Annotations = map[string]string{hypershift.AnnotationForce: next}
				set(h, "ClusterVersionUpgradeable", metav1.ConditionFalse)
			},
			want: map[string]string{"HostedClusterRequest": "UpdateForced Fail"},
		},
		"NotUpgradeable": {
			reason: "HyperShift refuses a minor update", to: "4.19.0",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				set(h, "ClusterVersionUpgradeable", metav1.ConditionUnknown)
			},
			want: map[string]string{"HostedClusterRequest": "HostedClusterNotUpgradeable Fail"},
		},
		"Refused": {
			reason: "a refused request stops all reconciliation, until that for a patch replaces it", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Spec.Release.Image = next
				set(h, "ClusterVersionUpgradeable", metav1.ConditionFalse)
			},
			want: map[string]string{"HostedClusterRequest": "RequestRefused Warn"},
		},
		"RefusedUnlisted": {
			reason: "HyperShift reports the refusal of a release that is not listed", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Spec.Release.Image = "quay.io/release@sha256:ee"
				set(h, "ClusterVersionUpgradeable", metav1.ConditionFalse)
				h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{
					Type: "Progressing", Status: metav1.ConditionFalse,
					Reason: "Blocked", Message: "cluster version is not upgradeable",
				})
			},
			want: map[string]string{"HostedClusterRequest": "RequestRefused Warn"},
		},
		"Skip": {
			reason: "HyperShift lets a skipped minor version pass, and this does not", to: "4.20.0",
			want: map[string]string{"HostedClusterVersion": "MinorVersionSkipped Fail"},
		},
		"Unsupported": {
			reason: "the operator must support the target", to: "4.21.0",
			want: map[string]string{"HostedClusterVersion": "VersionRefused Fail", "NodePoolSkew": "NodePoolAtLimit Warn"},
		},
		"Paused": {
			reason: "a paused cluster is not updated", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "2026-11-26T00:00:00Z" },
			want:   map[string]string{"HostedClusterReconciliation": "HostedClusterPaused Fail"},
		},
		"PauseOver": {
			reason: "a pause ends", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "2026-11-24T00:00:00Z" },
		},
		"Invalid": {
			reason: "an invalid configuration is not reconciled", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				set(h, "ValidConfiguration", metav1.ConditionFalse)
			},
			want: map[string]string{"HostedClusterReconciliation": "NotReconciled Fail"},
		},
		"Etcd": {
			reason: "etcd must be available", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				set(h, "EtcdAvailable", metav1.ConditionFalse)
			},
			want: map[string]string{"HostedControlPlane": "ControlPlaneUnhealthy Fail"},
		},
		"NoConditions": {
			reason: "a control plane that reports nothing is not healthy", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Status.Conditions = nil },
			want:   map[string]string{"HostedControlPlane": "ConditionMissing Unknown"},
		},
		"Stale": {
			reason: "conditions of a guest that cannot be reached may be out of date", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				set(h, "DataPlaneConnectionAvailable", metav1.ConditionFalse)
			},
			want: map[string]string{"HostedControlPlane": "ConditionsStale Unknown"},
		},
		"ControlPlaneUpgradeable": {
			reason: "the condition of a later HyperShift counts where it is", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				set(h, "ControlPlaneUpgradeable", metav1.ConditionFalse)
			},
			want: map[string]string{"HostedControlPlane": "ControlPlaneNotUpgradeable Fail"},
		},
		"OldPool": {
			reason: "the target would not support the pool", to: "4.19.0",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Status.Version = "4.15.3" },
			want:   map[string]string{"NodePoolSkew": "NodePoolTooOld Fail"},
		},
		"PoolAtLimit": {
			reason: "the update after this one would not support the pool", to: "4.18.6",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Status.Version = "4.15.3" },
			want:   map[string]string{"NodePoolSkew": "NodePoolAtLimit Warn"},
		},
		"NewerPool": {
			reason: "a pool with a later patch is not supported", to: "4.18.6",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Status.Version = "4.18.7" },
			want:   map[string]string{"NodePoolSkew": "NodePoolNewer Warn"},
		},
		"Deadlock": {
			reason: "a pool that may neither add nor remove a machine", to: "4.19.0",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				replace(p, "RollingUpdate", new(intstr.FromString("0%")))
			},
			want: map[string]string{"NodePools": "NodePoolDeadlock Warn"},
		},
		"DeadlockNamed": {
			reason: "a pool that is to be updated blocks", to: "4.19.0", pools: []string{"workers"},
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				replace(p, "RollingUpdate", new(intstr.FromInt32(0)))
			},
			want: map[string]string{"NodePools": "NodePoolDeadlock Fail", "NodePoolTargets": "NodePoolWaits Warn"},
		},
		"PoolNow": {
			reason: "a pool that is behind may go to the version of the control plane; whether there is room is not known", to: "4.18.6",
			pools:  []string{"workers"},
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Status.Version = "4.17.9" },
			want:   map[string]string{"NodePools": "NodePoolSurge Warn"},
		},
		"PoolWaits": {
			reason: "a pool goes to no minor version that the control plane has not completed", to: "4.19.0", pools: []string{"workers"},
			want: map[string]string{"NodePools": "NodePoolSurge Warn", "NodePoolTargets": "NodePoolWaits Warn"},
		},
		"PoolNodesDiffer": {
			reason: "status.version of a pool that is not automated is not that of its nodes", to: "4.19.0",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				if err := json.Unmarshal([]byte(`{"nodesInfo":{"nodeVersions":[{"ocpVersion":"4.17.2","readyNodeCount":1}]}}`), &p.Status); err != nil {
					panic(err)
				}
			},
			want: map[string]string{"NodePools": "NodePoolNodesDiffer Warn"},
		},
		"OnDelete": {
			reason: "a pool whose machines are deleted by hand", to: "4.19.0",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { replace(p, "OnDelete", nil) },
			want:   map[string]string{"NodePools": "NodePoolOnDelete Warn"},
		},
		"NoPool": {
			reason: "without nodes an update of the guest does not complete", to: "4.19.0",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Spec.ClusterName = "another" },
			want:   map[string]string{"NodePoolSkew": "NoNodePools Unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, p := hostedCluster(), nodePool("4.18.5")
			if tc.change != nil {
				tc.change(h, p)
			}
			server.Create(t, untyped(t, h), untyped(t, p), untyped(t, supported()))
			want := map[string]string{"HostedEtcdBackup": noBackup}
			maps.Copy(want, tc.want)
			if diff := cmp.Diff(want, judge(t, tc.to, tc.pools...)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func replace(p *hypershift.NodePool, strategy string, surge *intstr.IntOrString) {
	text := `{"upgradeType":"Replace","replace":{"strategy":"` + strategy + `"}}`
	if err := json.Unmarshal([]byte(text), &p.Spec.Management); err != nil {
		panic(err)
	}
	p.Spec.Management.Replace.RollingUpdate = &hypershift.RollingUpdate{MaxSurge: surge}
}

// supported is the ConfigMap of the hypershift-operator.
func supported() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "hypershift", "name": "supported-versions"},
		"data": map[string]any{"supported-versions": `{"versions":["4.20","4.19","4.18"]}`, "server-version": "abc"},
	}
}

func TestBackup(t *testing.T) {
	define(t)
	completed := func(at string) map[string]any {
		return map[string]any{
			"apiVersion": hypershift.GroupVersion().String(), "kind": "HCPEtcdBackup",
			"metadata": map[string]any{"namespace": "clusters-example", "name": "backup"},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "BackupCompleted", "status": "True", "reason": "BackupSucceeded",
				"message": "", "lastTransitionTime": at,
			}}},
		}
	}
	for name, tc := range map[string]struct{ reason, at, want string }{
		"Recent": {reason: "a backup of the same day", at: "2026-11-25T03:00:00Z"},
		"Old":    {reason: "a backup of last week", at: "2026-11-18T03:00:00Z", want: noBackup},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, untyped(t, hostedCluster()), untyped(t, nodePool("4.18.5")), untyped(t, supported()), untyped(t, completed(tc.at)))
			if got := judge(t, "4.19.0")["HostedEtcdBackup"]; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestOpenNamesWhatThereIs(t *testing.T) {
	define(t)
	server.Create(t, untyped(t, hostedCluster()), untyped(t, nodePool("4.18.5")))
	for name, tc := range map[string]struct {
		reason, namespace, cluster string
		pools                      []string
		want                       string
	}{
		"Cluster": {reason: "the clusters that exist are listed", namespace: "clusters", cluster: "missing", want: "there are clusters/example"},
		"Pool": {
			reason: "the pools that exist are listed", namespace: "clusters", cluster: "example", pools: []string{"missing"},
			want: "it has workers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hosted.Open(t.Context(), management, tc.namespace, tc.cluster, tc.pools...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// A kubeconfig of the guest is content of the management cluster: it must not make this program run
// another one, or send a file of this machine.
func TestGuestRunsNothing(t *testing.T) {
	define(t)
	const kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: " +
		"a}}]\nclusters: [{name: a, cluster: {server: https://guest.invalid%s}}]\nusers: [{name: a, user: {%s}}]\n"
	for name, tc := range map[string]struct{ reason, cluster, user, want string }{
		"Token": {reason: "a token is part of it", user: "token: abc"},
		"Exec": {
			reason: "a program is not run",
			user:   "exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, interactiveMode: Never}", want: "which is not run",
		},
		"TokenFile": {reason: "a file is not sent", user: "tokenFile: /etc/passwd", want: "in a file"},
		"Authority": {reason: "a file is not read", cluster: ", certificate-authority: /etc/passwd", user: "token: abc", want: "in a file"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hostedCluster()
			text := strings.Replace(strings.Replace(kubeconfig, "%s", tc.cluster, 1), "%s", tc.user, 1)
			secret := map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "clusters", "name": "guest"},
				"stringData": map[string]any{"kubeconfig": text},
			}
			server.Create(t, untyped(t, h), untyped(t, secret))
			used := false
			_, estate, err := hosted.Reach(t.Context(), management, hosted.Selection{Namespace: "clusters", Name: "example"},
				func(config *rest.Config) (*cluster.Cluster, error) {
					used = used || config.BearerToken == "abc"
					return connect(&rest.Config{Host: "https://guest.invalid", Transport: &stub{}})
				})
			if err != nil || used != (tc.want == "") || !strings.Contains(estate.GuestError().Error(), tc.want) {
				t.Errorf("%s: %v, %v, want %q", tc.reason, err, estate.GuestError(), tc.want)
			}
		})
	}
}

// A guest that cannot be reached is one inconclusive finding, and its version is known from the
// HostedCluster.
func TestWithoutGuest(t *testing.T) {
	define(t)
	server.Create(t, untyped(t, hostedCluster()), untyped(t, nodePool("4.18.5")), untyped(t, supported()))
	none := func() (*cluster.Cluster, error) { return nil, errors.New("no route to host") }
	guest, estate, err := hosted.Reach(t.Context(), management, hosted.Selection{Namespace: "clusters", Name: "example", Guest: none}, connect)
	if err != nil {
		t.Fatal(err)
	}
	version, err := guest.OpenShift.ConfigV1().ClusterVersions().Get(t.Context(), "version", metav1.GetOptions{})
	if err != nil || version.Status.Desired.Version != "4.18.5" {
		t.Errorf("the version of the guest is %+v, %v", version, err)
	}
	var names []string
	for _, c := range estate.Checks() {
		if c.Side == check.Guest {
			names = append(names, c.Name)
		}
	}
	if diff := cmp.Diff([]string{"Guest"}, names); diff != "" {
		t.Errorf("checks of the guest: -want, +got:\n%s", diff)
	}
}

func TestDrains(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason string
		change func(*hypershift.NodePool)
		want   order.NodePool
	}{
		"Replace": {
			reason: "the limits of a pool are kept", change: func(p *hypershift.NodePool) { replace(p, "RollingUpdate", new(intstr.FromInt32(2))) },
			want: order.NodePool{Name: "workers", MaxSurge: new(intstr.FromInt32(2))},
		},
		"OnDelete": {
			reason: "no machine is replaced", change: func(p *hypershift.NodePool) { replace(p, "OnDelete", nil) },
			want: order.NodePool{Name: "workers", Skip: order.OnDelete},
		},
		"Paused": {
			reason: "a paused pool is not updated", change: func(p *hypershift.NodePool) { p.Spec.PausedUntil = "true" },
			want: order.NodePool{Name: "workers", Skip: order.Paused},
		},
		"PauseEnded": {
			reason: "a pause until a past time has ended",
			change: func(p *hypershift.NodePool) { p.Spec.PausedUntil = "2026-11-25T11:00:00Z" }, want: order.NodePool{Name: "workers"},
		},
		"PauseNotATime": {
			reason: "HyperShift does not heed it", change: func(p *hypershift.NodePool) { p.Spec.PausedUntil = "tomorrow" },
			want: order.NodePool{Name: "workers"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := nodePool("4.18.5")
			tc.change(pool)
			if diff := cmp.Diff([]order.NodePool{tc.want}, hosted.Drains([]hypershift.NodePool{*pool}, now)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
