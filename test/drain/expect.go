package drain

import (
	"flag"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
)

// seed reproduces one cluster: -seed N.
var seed = flag.Uint64("seed", 0, "drain only the cluster of this seed")

// together is how many clusters are drained at a time. Most of their time is waiting.
const together = 10

// On makes an oracle that drains on this control plane.
func On(c *cluster.Cluster) *Oracle {
	root, err := build.Root()
	if err != nil {
		panic(err)
	}
	config := rest.CopyConfig(c.Config)
	config.QPS = -1 // no limit
	return &Oracle{Clients: kubernetes.NewForConfigOrDie(config), Kubectl: filepath.Join(root, "bin", "kubectl"), Kubeconfig: c.Kubeconfig}
}

// Expect drains the clusters of that many seeds, from first on. It fails if a pool that was
// predicted to be clear gets stuck, or if more than one in a hundred clusters is wrong
// otherwise, and logs the table.
func Expect(t *testing.T, oracle *Oracle, first uint64, clusters int) {
	t.Helper()
	if *seed != 0 {
		first, clusters = *seed, 1
	}
	var mutex sync.Mutex
	var wrong, pools, unknown int
	var group errgroup.Group
	group.SetLimit(together)
	for i := range clusters {
		group.Go(func() error {
			verdict, err := oracle.Trial(t.Context(), first+uint64(i)) //nolint:gosec // not negative
			if err != nil {
				return err
			}
			mutex.Lock()
			defer mutex.Unlock()
			t.Log(verdict)
			if len(verdict.Wrong) > 0 {
				t.Log(verdict.State)
			}
			pools, unknown = pools+verdict.Pools, unknown+verdict.Unknown
			if len(verdict.Wrong) > 0 {
				wrong++
			}
			if verdict.Unsafe {
				t.Errorf("a pool that was predicted to be clear got stuck: %s", verdict)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clusters, %d pools, %d of them unknown, %d clusters wrong", clusters, pools, unknown, wrong)
	const oneIn = 100
	if wrong*oneIn > clusters {
		t.Errorf("%d of %d clusters are wrong, want at most one in %d", wrong, clusters, oneIn)
	}
}
