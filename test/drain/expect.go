package drain

import (
	"cmp"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
)

// Flags that drain other clusters: -seed N -clusters 1 reproduces one.
var (
	seed   = flag.Uint64("seed", 0, "the seed of the first cluster; 0 for that of the test")         //nolint:gochecknoglobals // a flag of the tests
	number = flag.Int("clusters", 0, "how many clusters are drained; 0 for as many as the test has") //nolint:gochecknoglobals // a flag of the tests
)

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

// Expect drains the clusters of that many seeds, from first on, and logs the table. It fails if a
// pool that was predicted to be clear gets stuck, or if more than one in a hundred clusters is wrong
// otherwise, or cannot be drained, or does not settle. Such a cluster is made and drained once more, and
// the second result counts: where a pod goes, and when, is also a matter of the machine's load, and a
// wrong rehearsal is wrong each time.
func Expect(t *testing.T, oracle *Oracle, first uint64, clusters int) {
	t.Helper()
	first, clusters = cmp.Or(*seed, first), cmp.Or(*number, clusters)
	var table table
	var group errgroup.Group
	group.SetLimit(together)
	for i := range clusters {
		group.Go(func() error {
			verdict, err := tried(t, oracle, first+uint64(i)) //nolint:gosec // not negative
			if err != nil {
				t.Errorf("not compared: %v", err)
				return nil
			}
			t.Log(verdict)
			if len(verdict.Wrong) > 0 {
				t.Log(verdict.State)
			}
			if verdict.Unsafe {
				t.Errorf("a pool that was predicted to be clear got stuck: %s", verdict)
			}
			table.add(verdict)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Log(table.String())
	const oneIn = 100
	if table.wrong*oneIn > clusters {
		t.Errorf("%d of %d clusters are wrong, want at most one in %d", table.wrong, clusters, oneIn)
	}
}

// tried is the verdict on the cluster of a seed, of a second trial where the first one is wrong.
func tried(t *testing.T, oracle *Oracle, of uint64) (Verdict, error) {
	t.Helper()
	verdict, err := oracle.Trial(t.Context(), of, "first")
	if verdict.Unsafe || err == nil && len(verdict.Wrong) == 0 {
		return verdict, err
	}
	t.Logf("once more: %s %v", verdict, err)
	return oracle.Trial(t.Context(), of, "second")
}

// table counts the clusters that were compared, and their pools.
type table struct {
	mutex                                          sync.Mutex
	clusters, wrong, pools, clear, sticks, unknown int
}

func (t *table) add(verdict Verdict) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.clusters++
	if len(verdict.Wrong) > 0 {
		t.wrong++
	}
	t.pools, t.clear, t.sticks, t.unknown = t.pools+verdict.Pools, t.clear+verdict.Clear, t.sticks+verdict.Sticks, t.unknown+verdict.Unknown
}

func (t *table) String() string {
	return fmt.Sprintf("%d clusters were compared, %d of them wrong; of %d pools, %d were predicted to be clear, %d to stick, and %d were unknown",
		t.clusters, t.wrong, t.pools, t.clear, t.sticks, t.unknown)
}
