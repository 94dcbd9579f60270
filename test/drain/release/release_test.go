// Package release_test answers: is the rehearsal of drains right for many clusters, and the reference?
//
// -seed 100 -clusters 200 drains others.
package release_test

import (
	"testing"

	testcluster "github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/drain"
)

var oracle *drain.Oracle

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) { oracle = drain.On(c) }, testcluster.KWOK(1), testcluster.ControllerRate(150, 300), testcluster.QuickScheduler())
}

// TestManyClusters drains more clusters than package drain, and others. One is large.
func TestManyClusters(t *testing.T) {
	const first, clusters = 16, 20
	drain.Expect(t, oracle, drain.Seeds(first, clusters)...)
}
