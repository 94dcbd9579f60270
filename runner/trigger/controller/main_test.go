package controller_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
)

// config is that of the API server that the tests of this package share, in turns;
// kubeconfig is its file.
var (
	config     *rest.Config
	kubeconfig string
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) {
		config, kubeconfig = rest.CopyConfig(c.Config), c.Kubeconfig
		config.QPS = -1
	}, cluster.ControlPlaneOnly(), cluster.Console(), cluster.CRDs("../guard/testdata/prometheusrules.crd.yaml"))
}
