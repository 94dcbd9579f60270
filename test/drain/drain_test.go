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
		2,  // an OrderedReady StatefulSet, of which a pod is not ready any more, and a paused pool
		5,  // an operator, a LimitRange, and a StatefulSet with another template than its pods
		11, // a Job, and controllers whose new templates have a priority
		19, // an operator, a Job, a quota, and pods that start while the drains begin
		23, // guards, and an operator
		35, // a quota below its use, and a deleted PriorityClass
		48, // a Job, and a finalizer
		52, // volumes on nodes and in zones, a LimitRange, and a node that was cordoned before
		64, // a finalizer, and a node that is being updated
		86, // a LimitRange with a default, and a ReplicaSet whose new template selects one node or none
	)
}

// TestAnnotations of package lab are those of the simulated nodes.
func TestAnnotations(t *testing.T) {
	want := []string{
		testcluster.AnnotationTakes, testcluster.AnnotationReady, testcluster.NeverReady, testcluster.AnnotationSick,
		testcluster.AnnotationEnds,
	}
	if diff := cmp.Diff(want, []string{
		lab.AnnotationTakes, lab.AnnotationReady, lab.NeverReady, lab.AnnotationSick,
		lab.AnnotationEnds,
	}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
