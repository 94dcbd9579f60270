package adminack_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/test/cluster"
)

// server is the API server that the tests of this package share, and config its
// configuration.
var (
	server checktest.Server
	config *rest.Config
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { config, server = c.Config, checktest.Connect(c.Config) }, cluster.ControlPlaneOnly())
}
