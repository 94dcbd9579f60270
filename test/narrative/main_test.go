// Package narrative_test answers: does the product report what the enhancements
// require? Their stories are run with the program on real API servers with the CRDs
// of two feature sets, with real releases in a real registry, real signatures
// and a real Prometheus. No node is needed: what a release's own checks find is
// the matter of test/e2e.
//
//   - accepted-risks: acceptedrisks_test.go, targets_test.go, monitoring_test.go
//   - upgrades-blocking-on-ack: adminack_test.go
//   - eus-upgrades-mvp: retarget_test.go, skew_test.go, removal_test.go
//   - managed-upgrade-operator-design: managed_test.go
//   - preflight-checks-for-operators: TestStory in test/e2e
package narrative_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
)

// root is the root of the repository.
const root = "../.."

// The clusters that the tests take in turns: one has the CRDs that most have,
// the other those of the feature set in which ClusterVersion keeps accepted
// risks.
var byDefault, techPreview stage

func TestMain(m *testing.M) {
	optional := cluster.CRDs(
		root+"/collector/gate/testdata/clusterserviceversions.crd.yaml", root+"/collector/health/testdata/upgradeconfigs.crd.yaml",
	)
	cluster.MainWith(m,
		cluster.Wanted{Use: byDefault.set, Options: []cluster.Option{cluster.ControlPlaneOnly(), optional}},
		cluster.Wanted{Use: techPreview.set, Options: []cluster.Option{cluster.ControlPlaneOnly(), optional, cluster.FeatureSet("TechPreviewNoUpgrade")}},
	)
}

// stage is a cluster on which one story is run at a time.
type stage struct {
	cluster *cluster.Cluster
	turn    sync.Mutex
}

func (s *stage) set(c *cluster.Cluster) { s.cluster = c }

// program is oc-preflight, built once, as a user would build it.
var program = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs(filepath.Join(byDefault.cluster.Dir, "bin", "oc-preflight"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", path, "./cmd/oc-preflight")
	build.Dir, build.Stderr = root, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return path, build.Run()
})
