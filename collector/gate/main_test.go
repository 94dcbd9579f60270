package gate_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/test/cluster"
)

// server is the API server that the tests of this package share.
var server checktest.Server

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { server = checktest.Connect(c.Config) }, cluster.ControlPlaneOnly())
}

// desiring is the ClusterVersion of a cluster that runs a version, or is being
// updated to it.
func desiring(version string) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
		Status: configv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: version, Image: "quay.io/x"}, VersionHash: "0", AvailableUpdates: []configv1.Release{},
		},
	}
}
