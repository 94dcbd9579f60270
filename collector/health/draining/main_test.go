package draining_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/test/cluster"
)

// server is the API server that the tests of this package share.
var server checktest.Server

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { server = checktest.Connect(c.Config) }, cluster.ControlPlaneOnly())
}
