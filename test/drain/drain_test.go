package drain_test

import (
	"path/filepath"
	"testing"

	testcluster "github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/drain"
)

var (
	local  *testcluster.Cluster
	oracle *drain.Oracle
)

// operators are the resources of operators that are not run.
func operators() testcluster.Option {
	var files []string
	for _, plural := range []string{"virtualmachineinstances", "kubevirts", "clusters"} {
		files = append(files, filepath.Join("testdata", plural+".crd.yaml"))
	}
	return testcluster.CRDs(files...)
}

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) { local, oracle = c, drain.On(c) }, testcluster.KWOK(1), testcluster.ControllerRate(150, 300), operators())
}

// TestRandomClusters drains a few clusters; package release drains more of them.
func TestRandomClusters(t *testing.T) {
	const clusters = 20
	drain.Expect(t, oracle, 1, clusters)
}
