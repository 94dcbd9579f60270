package drain_test

import (
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

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) { local, oracle = c, drain.On(c) }, drain.Options()...)
}

// TestClusters drains ten clusters, at the same time; package release drains more of them.
func TestClusters(t *testing.T) { drain.Expect(t, oracle, drain.Seeds(1, 10)...) }

// TestAnnotations of package lab are those of the simulated nodes.
func TestAnnotations(t *testing.T) {
	want := []string{testcluster.AnnotationTakes, testcluster.AnnotationReady, testcluster.NeverReady, testcluster.AnnotationSick, testcluster.AnnotationEnds}
	if diff := cmp.Diff(want, []string{lab.AnnotationTakes, lab.AnnotationReady, lab.NeverReady, lab.AnnotationSick, lab.AnnotationEnds}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
