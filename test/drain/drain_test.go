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

// TestClusters drains ten clusters, at the same time; package release drains others each day.
func TestClusters(t *testing.T) {
	drain.Expect(
		t, oracle,
		2,  // an OrderedReady StatefulSet, of which a pod is not ready any more
		8,  // an operator, and pods that start while the drains begin
		15, // guards, and an operator
		16, // a finalizer that nothing removes
		17, // a LimitRange, a deleted PriorityClass, and a node that was cordoned before
		25, // a StatefulSet whose new template selects no node
		39, // a quota below its use, and a volume in a zone
		42, // a Job
		54, // a ReplicaSet whose new template selects one node or none
		87, // volumes on nodes and in zones
	)
}

// TestAnnotations of package lab are those of the simulated nodes.
func TestAnnotations(t *testing.T) {
	want := []string{testcluster.AnnotationTakes, testcluster.AnnotationReady, testcluster.NeverReady, testcluster.AnnotationSick, testcluster.AnnotationEnds}
	if diff := cmp.Diff(want, []string{lab.AnnotationTakes, lab.AnnotationReady, lab.NeverReady, lab.AnnotationSick, lab.AnnotationEnds}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
