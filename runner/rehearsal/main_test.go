package rehearsal_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/cluster"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

// server is a connection to the API server that the tests of this package share, and store the cluster, whose etcd a test reads.
var (
	server *cluster.Cluster
	store  *testcluster.Cluster
)

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) {
		connected, err := cluster.Connect(c.Config, "rehearsal")
		if err != nil {
			panic(err)
		}
		server, store = connected, c
	}, testcluster.ControlPlaneOnly())
}
