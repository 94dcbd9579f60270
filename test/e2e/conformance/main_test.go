// Package conformance_test answers: does "oc-preflight conformance" report every violation of
// a check, and pass every check without one?
package conformance_test

import (
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/zoo"
)

// local is the cluster that the tests of this package share; testCluster builds images and runs
// programs on it.
var (
	local       *cluster.Cluster
	testCluster *zoo.Zoo
)

// root is the root of the repository.
const root = "../../.."

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local, testCluster = c, zoo.At(c) })
}
