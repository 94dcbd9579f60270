// Package release_test answers: is the rehearsal of drains right for many clusters?
//
// TestManyClusters is the one of package drain with other clusters, as many as CI has time for;
// -clusters 200 drains more.
package release_test

import (
	"testing"

	testcluster "github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/drain"
)

var oracle *drain.Oracle

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) { oracle = drain.On(c) }, testcluster.KWOK(1), testcluster.ControllerRate(150, 300))
}

func TestManyClusters(t *testing.T) {
	const first, clusters = 21, 20
	drain.Expect(t, oracle, first, clusters)
}
