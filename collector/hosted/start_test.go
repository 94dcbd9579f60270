package hosted_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
)

// HyperShift starts the update of a control plane by spec.release of its HostedCluster.
func TestStart(t *testing.T) {
	const running, target = "r@sha256:1", "r@sha256:2"
	for name, tc := range map[string]struct {
		reason string
		image  string
		change func(*hypershift.HostedCluster)
		want   string
	}{
		"Update": {
			reason: "spec.release decides", image: target,
			want: `oc -n clusters patch hostedcluster example --type=merge -p '{"spec":{"release":{"image":"r@sha256:2"}}}'`,
		},
		"Running": {reason: "the control plane runs it already", image: running},
		"NoImage": {reason: "the image of the release is not known"},
		"Hostile": {
			reason: "the image is quoted for a shell", image: "r@sha256:2';id;'",
			want: `oc -n clusters patch hostedcluster example --type=merge -p '{"spec":{"release":{"image":"r@sha256:2'\'';id;'\''"}}}'`,
		},
		"Overridden": {
			reason: "spec.controlPlaneRelease decides", image: target,
			change: func(h *hypershift.HostedCluster) { h.Spec.ControlPlaneRelease = &hypershift.Release{Image: running} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &hypershift.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "example"}}
			cluster.Status.Version = &hypershift.VersionStatus{Desired: configv1.Release{Image: running}}
			if tc.change != nil {
				tc.change(cluster)
			}
			if got := hosted.Start(cluster, tc.image).Command; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
