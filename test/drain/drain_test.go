package drain_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	testcluster "github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/drain"
	"github.com/openshift/update-preflight/test/drain/lab"
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
	testcluster.Main(m, func(c *testcluster.Cluster) { local, oracle = c, drain.On(c) },
		testcluster.KWOK(1), testcluster.ControllerRate(150, 300), testcluster.QuickScheduler(), operators())
}

// TestClusters drains three clusters, at the same time; package release drains more of them.
func TestClusters(t *testing.T) {
	drain.Expect(
		t, oracle,
		// A StatefulSet with more pods than zones, in which they must be apart, a DaemonSet, topology
		// spread and budgets that allow one: all nodes are drained.
		8,
		// A quota refuses the new pods of a Deployment, and important pods preempt those of DaemonSets
		// for a port of the host: all nodes are drained, and ten pods are without a node.
		15,
		// Two pools at the same time. One is drained; the other one sticks at its first node, behind a
		// budget whose pods are never ready and one that a port of the host keeps from being ready.
		94,
	)
}

// TestAnnotations of package lab are those of the simulated nodes.
func TestAnnotations(t *testing.T) {
	want := []string{testcluster.AnnotationReady, testcluster.NeverReady}
	if diff := cmp.Diff(want, []string{lab.AnnotationReady, lab.NeverReady}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
