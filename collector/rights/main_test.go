package rights_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
)

// config is the configuration of the API server that the tests of this package
// share.
var config *rest.Config

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) {
		config = rest.CopyConfig(c.Config)
		config.QPS = -1
	}, cluster.ControlPlaneOnly())
}
