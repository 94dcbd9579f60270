// Package foresee_test answers: are the predictions of the preflight about
// CustomResourceDefinitions correct on a real API server?
package foresee_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/cluster"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

// server is a connection to the API server that the tests of this package share.
var server *cluster.Cluster

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) {
		connected, err := cluster.Connect(c.Config, "foresee")
		if err != nil {
			panic(err)
		}
		server = connected
	}, testcluster.ControlPlaneOnly())
}
