// Package conformance_test answers: does "oc-preflight conformance" find what is
// wrong with a check, and does it pass every check that is correct?
package conformance_test

import (
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/zoo"
)

// local is the cluster that the tests of this package share.
var (
	local *cluster.Cluster
	house *zoo.Zoo
)

// root is the root of the repository.
const root = "../../.."

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local, house = c, zoo.At(c) })
}
