// Package kills_test answers: does the next process complete a run that was killed at any of its
// writes?
//
// Runs are those of the library, on a real control plane without nodes. A run is killed by its
// client: at one of its writes its context ends, and no later request is sent. What a process
// adds to that, its end by a signal, is tested in test/e2e/faults at some of these writes, whose
// list a test there compares with that of this package (testdata/writes.txt).
package kills_test

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
