package builtin_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/test/cluster"
)

var (
	// server is the API server that the tests of this package share, which config reaches.
	server checktest.Server
	config *rest.Config
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { config, server = c.Config, checktest.Connect(c.Config) }, cluster.ControlPlaneOnly())
}
