package drain_test

import (
	"testing"

	testcluster "github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/drain"
)

var oracle *drain.Oracle

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) { oracle = drain.On(c) }, testcluster.KWOK(1), testcluster.ControllerRate(150, 300))
}

// TestRandomClusters drains a few clusters; package release drains more of them.
func TestRandomClusters(t *testing.T) {
	const clusters = 20
	drain.Expect(t, oracle, 1, clusters)
}
