package registry_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
)

// config is for the API server that the tests of this package share.
var config *rest.Config

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { config = c.Config }, cluster.ControlPlaneOnly())
}
