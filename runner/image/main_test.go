package image_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
)

// config is for the API server with the registry configuration.
var config *rest.Config

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { config = c.Config }, cluster.ControlPlaneOnly())
}
