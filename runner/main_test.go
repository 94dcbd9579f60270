package runner_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
)

// config is for the API server that the tests of this package share. Checks that run
// in pods are tested in test/e2e.
var config *rest.Config

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { config = c.Config }, cluster.ControlPlaneOnly(), cluster.FeatureSet("TechPreviewNoUpgrade"))
}
