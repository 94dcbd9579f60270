// Package trigger_test answers: does the controller run the preflights of selected and
// offered updates? The controller is a process, on a real control plane with signed
// releases; the node is simulated, since the checks are not what is tested.
// TestControllerInPod of test/installation has real pods.
package trigger_test

import (
	"context"
	"sync"
	"testing"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/zoo"
)

// local is the control plane of the tests; testCluster makes the releases for it.
var (
	local       *cluster.Cluster
	testCluster *zoo.Zoo
)

// program is the path of the controller, compiled at the first call.
var program = sync.OnceValues(func() (string, error) { return build.Compile(context.Background(), "cmd/preflight-controller") })

func TestMain(m *testing.M) {
	use := func(c *cluster.Cluster) { local, testCluster = c, zoo.WithoutContainers(c) }
	cluster.Main(m, use, cluster.ControlPlaneOnly(), cluster.Exclusive())
}
