package gate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func network(name, networkType string) *configv1.Network {
	return &configv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: configv1.NetworkStatus{NetworkType: networkType}}
}

func TestNetworkType(t *testing.T) {
	openshift := checktest.Infrastructure(configv1.HighlyAvailableTopologyMode)
	pass := checktest.Result{Outcome: preflight.Pass, Reason: "NetworkTypeSupported"}
	skipped := checktest.Result{Outcome: preflight.Skipped, Reason: "NotConcerned"}
	fail := checktest.Result{Outcome: preflight.Fail, Reason: "OpenShiftSDNRemoved"}
	for name, tc := range map[string]struct {
		reason, from, to string
		objects          []runtime.Object
		want             checktest.Result
	}{
		"OVN": {
			reason: "the network type of new clusters", from: "4.16.9", to: "4.17.1",
			objects: []runtime.Object{openshift, network("cluster", "OVNKubernetes")}, want: pass,
		},
		"SDN": {
			reason: "4.17 removed OpenShift SDN", from: "4.16.9", to: "4.17.1",
			objects: []runtime.Object{openshift, network("cluster", "OpenShiftSDN")}, want: fail,
		},
		"Prerelease": {
			reason: "4.17.0-rc.1 comes before 4.17.0 and has no OpenShift SDN", from: "4.16.9", to: "4.17.0-rc.1",
			objects: []runtime.Object{openshift, network("cluster", "OpenShiftSDN")}, want: fail,
		},
		"Later": {
			reason: "no later release has it", from: "4.16.9", to: "4.18.1",
			objects: []runtime.Object{openshift, network("cluster", "OpenShiftSDN")}, want: fail,
		},
		"Patch": {
			reason: "4.16 supports it", from: "4.16.9", to: "4.16.12",
			objects: []runtime.Object{openshift, network("cluster", "OpenShiftSDN")}, want: skipped,
		},
		"Early": {
			reason: "so does the update to 4.16", from: "4.15.9", to: "4.16.12",
			objects: []runtime.Object{openshift, network("cluster", "OpenShiftSDN")}, want: skipped,
		},
		"Without": {
			reason: "a cluster of 4.17 cannot use it", from: "4.17.9", to: "4.18.1",
			objects: []runtime.Object{openshift, network("cluster", "OVNKubernetes")}, want: skipped,
		},
		"Empty": {reason: "an unknown type is no pass", from: "4.16.9", to: "4.17.1", objects: []runtime.Object{
			openshift,
			network("cluster", ""),
		}, want: checktest.Result{Outcome: preflight.Unknown, Reason: "NetworkTypeNotReported"}},
		"Other": {reason: "only the Network \"cluster\" counts", from: "4.16.9", to: "4.17.1", objects: []runtime.Object{
			openshift,
			network("other", "OVNKubernetes"),
		}, want: checktest.Result{Outcome: preflight.Unknown, Reason: "NetworkTypeNotReported"}},
		"Kubernetes": {
			reason: "a cluster without OpenShift has no such type", from: "4.16.9", to: "4.17.1",
			want: checktest.Result{Outcome: preflight.Skipped, Reason: "PlainKubernetes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			findings := checktest.Run(t, gate.NetworkType(), server.Snapshot(t), checktest.MinorUpdate(t, tc.from, tc.to))
			if diff := cmp.Diff(map[string]checktest.Result{"NetworkType": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
