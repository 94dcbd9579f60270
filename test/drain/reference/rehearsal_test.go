package reference_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/openshift/update-preflight/test/drain/comparison"
	"github.com/openshift/update-preflight/test/drain/lab"
	"github.com/openshift/update-preflight/test/drain/reference"
)

// Flags that drain other clusters: -seed N -clusters 1 reproduces one.
var (
	first  = flag.Uint64("seed", 1, "the seed of the first cluster")
	number = flag.Int("clusters", 2000, "how many clusters are drained")
)

// TestRehearsals compares the rehearsals of random clusters with their drains in several orders. What
// only few orders lead to may be missing from a rehearsal (comparison.Sample), but only for few
// clusters. Of still fewer the numbers of pods without a node may be others: pods that are preempted keep
// their room until they have ended, which a rehearsal leaves out.
func TestRehearsals(t *testing.T) {
	var rare, unsafe, other int
	var pools comparison.Count
	for i := range *number {
		seed := *first + uint64(i)
		sample, count := compare(t, seed)
		pools = pools.Plus(count)
		switch {
		case !sample.Rare() && sample.Unsafe == 0:
			t.Logf("seed %d: %s", seed, sample)
			other++
		case !sample.Rare():
			t.Errorf("seed %d: %s", seed, sample)
		case sample.Unsafe > 0:
			unsafe++
			rare++
		case sample.Wrong > 0:
			rare++
		}
	}
	t.Logf("of the pools, %d were predicted to be clear, %d to stick, and %d were unknown; of %d clusters, %d end differently in few "+
		"orders, %d of them with a pool that sticks although it was predicted to be clear",
		pools.Clear, pools.Sticks, pools.Unknown, *number, rare, unsafe)
	const oneIn, unsafeOneIn, otherOneIn = 40, 500, 1000
	if rare > *number/oneIn+1 || unsafe > *number/unsafeOneIn+1 || other > *number/otherOneIn+1 {
		t.Errorf("want at most one cluster in %d that ends differently in few orders, one in %d that sticks so, and one in %d that ends "+
			"differently in most", oneIn, unsafeOneIn, otherOneIn)
	}
}

// compare rehearses and drains the cluster of a seed, in more orders if one of the first disagrees.
func compare(t *testing.T, seed uint64) (comparison.Sample, comparison.Count) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	settled, err := reference.Settle(lab.Plain(seed), random)
	if err != nil {
		t.Fatal(err)
	}
	objects := settled.Objects()
	predicted, err := comparison.Of(objects)
	if err != nil {
		t.Fatal(err)
	}
	const few, many = 8, 200
	var sample comparison.Sample
	var wrong []string
	for orders := few; sample.Orders < orders; {
		ended, err := settled.Drain(random)
		if err != nil {
			t.Fatal(err)
		}
		sample.Add(&predicted, ended)
		if found := predicted.Wrong(ended); len(found) > 0 {
			orders, wrong = many, found
		}
	}
	if !sample.Rare() {
		t.Logf("seed %d: in one order: %v; before:\n%s", seed, wrong, objects.String())
	}
	return sample, predicted.Count()
}
