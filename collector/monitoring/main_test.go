package monitoring_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
)

// config is the configuration of the API server that the tests of this package
// share.
var config *rest.Config

// shared is the Prometheus of one test at a time.
var shared prometheus.Shared

func TestMain(m *testing.M) {
	cluster.MainWith(m, cluster.Wanted{
		Use: func(c *cluster.Cluster) { config = c.Config }, Options: []cluster.Option{cluster.ControlPlaneOnly()}, Done: shared.Stop,
	})
}
