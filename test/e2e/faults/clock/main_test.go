// Package clock_test answers: does a run depend on the clock of its machine?
//
// The program is oc-preflight with another package time, on which each of its packages depends:
// "make release-tools" builds it. The control plane is real, and the test ends the pods.
package clock_test

import (
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/zoo"
)

// local is the control plane of the tests; testCluster makes the releases for it.
var (
	local       *cluster.Cluster
	testCluster *zoo.Zoo
)

func TestMain(m *testing.M) {
	use := func(c *cluster.Cluster) { local, testCluster = c, zoo.WithoutContainers(c) }
	cluster.Main(m, use, cluster.ControlPlaneOnly())
}
