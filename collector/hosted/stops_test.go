package hosted_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
)

// change is how an example differs from a healthy one.
type change func(h *hypershift.HostedCluster, p *hypershift.NodePool)

// opened is the side of the management cluster with this change, of a hosted cluster whose control plane and
// pods are not read.
func opened(t *testing.T, apply change, pools ...string) *hosted.ControlPlane {
	t.Helper()
	h, p := hostedCluster(), nodePool("4.18.5")
	apply(h, p)
	server := many()
	server.objects[base+"hostedclusters/example"] = h
	server.objects[base+"nodepools"] = map[string]any{
		"apiVersion": hypershift.GroupVersion().String(), "kind": "NodePoolList", "metadata": map[string]any{}, "items": []any{p},
	}
	server.objects["/api/v1/namespaces/hypershift/configmaps/supported-versions"] = supported()
	side, err := hosted.Open(t.Context(), server.connect(t), "clusters", "example", pools...)
	if err != nil {
		t.Fatal(err)
	}
	return side
}

// stopped has the findings of an update, besides those about what the server of opened does not have.
func stopped(t *testing.T, side *hosted.ControlPlane, to string) map[string]string {
	t.Helper()
	found := evaluate(t, side, to)
	maps.DeleteFunc(found, func(name, _ string) bool { return name == "HostedControlPlanePods" || name == "HostedEtcdBackup" })
	return found
}

// What HyperShift does not reconcile is never clear, whatever else there is to say about it, and no
// request of it is predicted to be accepted.
func TestNotReconciled(t *testing.T) {
	const paused, wants = "HostedClusterPaused Fail", "HostedClusterReconciliation"
	for name, tc := range map[string]struct {
		reason  string
		change  change
		to      string
		want    map[string]string
		refuses bool
	}{
		"Healthy": {reason: "HyperShift carries out the request", to: "4.18.6", change: func(*hypershift.HostedCluster, *hypershift.NodePool) {}},
		"True": {
			reason: "HyperShift reads the field as Go reads a boolean", to: "4.18.6", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "True" },
			want:   map[string]string{wants: paused},
		},
		"One": {
			reason: "1 is true", to: "4.18.6", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "1" },
			want:   map[string]string{wants: paused},
		},
		"False": {
			reason: "F is false", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "F" },
		},
		"Invalid": {
			reason: "another text pauses nothing", to: "4.18.6",
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) { h.Spec.PausedUntil = "yes" },
			want:   map[string]string{wants: "PauseInvalid Warn"},
		},
		"Inactive": {
			reason: "the report of HyperShift counts beside a field that pauses nothing", to: "4.18.6", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Spec.PausedUntil = "yes"
				set(h, "ReconciliationActive", metav1.ConditionFalse)
			},
			want: map[string]string{wants: "PauseInvalid Warn NotReconciled Fail"},
		},
		"PausedAndRefused": {
			reason: "a request that is refused does not hide the pause", to: "4.19.0", refuses: true,
			change: func(h *hypershift.HostedCluster, _ *hypershift.NodePool) {
				h.Spec.PausedUntil = "T"
				set(h, "ClusterVersionUpgradeable", metav1.ConditionFalse)
				set(h, "ValidConfiguration", metav1.ConditionFalse)
			},
			want: map[string]string{wants: paused + " NotReconciled Fail", "HostedClusterRequest": "HostedClusterNotUpgradeable Fail"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			side := opened(t, tc.change)
			if diff := cmp.Diff(tc.want, stopped(t, side, tc.to), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if predicted := side.Predict(tc.to); predicted.Accepts == nil || *predicted.Accepts == tc.refuses {
				t.Errorf("%s: the prediction is %+v, want refused %t", tc.reason, predicted, tc.refuses)
			}
		})
	}
}

// A pool that is named and that HyperShift does not reconcile blocks; one that is not named warns.
func TestPoolNotReconciled(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change change
		want   string
		named  string
	}{
		"True": {
			reason: "HyperShift reads the field as Go reads a boolean", want: "HostedClusterPaused Warn", named: "HostedClusterPaused Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) { p.Spec.PausedUntil = "True" },
		},
		"Updating": {
			reason: "an update in progress does not hide the pause", want: "HostedClusterPaused Warn NodePoolUpdating Warn", named: "HostedClusterPaused Fail NodePoolUpdating Warn",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Spec.PausedUntil = "t"
				setPool(p, "UpdatingVersion", metav1.ConditionTrue)
			},
		},
		"Inactive": {
			reason: "the report of HyperShift counts", want: "NodePoolCondition Warn", named: "NodePoolCondition Fail",
			change: func(_ *hypershift.HostedCluster, p *hypershift.NodePool) {
				setPool(p, "ReconciliationActive", metav1.ConditionFalse)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := func(h *hypershift.HostedCluster, p *hypershift.NodePool) {
				p.Spec.Management.UpgradeType = "InPlace"
				tc.change(h, p)
			}
			if got := stopped(t, opened(t, changed), "4.18.6")["NodePools"]; got != tc.want {
				t.Errorf("%s: a pool that is not named: %q, want %q", tc.reason, got, tc.want)
			}
			if got := stopped(t, opened(t, changed, "workers"), "4.18.6")["NodePools"]; got != tc.named {
				t.Errorf("%s: a pool that is named: %q, want %q", tc.reason, got, tc.named)
			}
		})
	}
}

func setPool(p *hypershift.NodePool, name string, status metav1.ConditionStatus) {
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: name, Status: status, Reason: "Test"})
}
