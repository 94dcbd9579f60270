package acceptance_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/test/cluster"
)

// server is the API server that the tests of this package share, whose ClusterVersion
// has all fields, and config its configuration. The ClusterVersion of plain has those of the
// default feature set.
var (
	server        checktest.Server
	config, plain *rest.Config
)

func TestMain(m *testing.M) {
	cluster.MainWith(m,
		cluster.Wanted{
			Use:     func(c *cluster.Cluster) { config, server = c.Config, checktest.Connect(c.Config) },
			Options: []cluster.Option{cluster.ControlPlaneOnly(), cluster.FeatureSet("DevPreviewNoUpgrade")},
		},
		cluster.Wanted{Use: func(c *cluster.Cluster) { plain = c.Config }, Options: []cluster.Option{cluster.ControlPlaneOnly()}},
	)
}
