package definition_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/cluster"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

// server is the API server that the tests of this package share.
var server *cluster.Cluster

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) {
		connected, err := cluster.Connect(c.Config, "definition")
		if err != nil {
			panic(err)
		}
		server = connected
	}, testcluster.ControlPlaneOnly())
}
