// Package narrative_test answers: does the product report what the enhancements
// require? The tests run the program on real API servers with the CRDs of two feature
// sets, with real releases in a real registry, real signatures and a real Prometheus.
// There are no nodes: test/e2e runs the checks of releases.
//
//   - accepted-risks: acceptedrisks_test.go, targets_test.go, monitoring_test.go
//   - upgrades-blocking-on-ack: adminack_test.go
//   - eus-upgrades-mvp: retarget_test.go, skew_test.go, removal_test.go
//   - managed-upgrade-operator-design: managed_test.go
//   - preflight-checks-for-operators: TestDemo in test/e2e
package narrative_test

import (
	"context"
	"sync"
	"testing"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
)

// root is the root of the repository.
const root = "../.."

// The clusters that the tests share: byDefault has the CRDs of the default feature set,
// techPreview those of the feature set in which ClusterVersion has accepted risks.
var byDefault, techPreview sharedCluster

func TestMain(m *testing.M) {
	optional := cluster.CRDs(
		root+"/collector/gate/testdata/clusterserviceversions.crd.yaml", root+"/collector/health/testdata/upgradeconfigs.crd.yaml",
	)
	cluster.MainWith(m,
		cluster.Wanted{Use: byDefault.set, Options: []cluster.Option{cluster.ControlPlaneOnly(), optional}},
		cluster.Wanted{Use: techPreview.set, Options: []cluster.Option{cluster.ControlPlaneOnly(), optional, cluster.FeatureSet("TechPreviewNoUpgrade")}},
	)
}

// sharedCluster is a cluster that one test at a time uses.
type sharedCluster struct {
	cluster *cluster.Cluster
	mutex   sync.Mutex
}

func (s *sharedCluster) set(c *cluster.Cluster) { s.cluster = c }

// program is the path of oc-preflight, compiled at the first call.
var program = sync.OnceValues(func() (string, error) { return build.Compile(context.Background(), "cmd/oc-preflight") })
