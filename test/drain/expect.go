package drain

import (
	"flag"
	"testing"

	"golang.org/x/sync/errgroup"
)

// Flags that drain other clusters: -seed N -clusters 1 reproduces one.
var (
	seed   = flag.Uint64("seed", 0, "the seed of the first cluster; 0 for those of the test")        //nolint:gochecknoglobals // a flag of the tests
	number = flag.Uint64("clusters", 1, "how many clusters are drained, where the seed is not zero") //nolint:gochecknoglobals // a flag of the tests
)

// together is how many clusters are drained at a time.
const together = 3

// Expect drains the clusters of these seeds, and fails for each whose rehearsal is wrong, other than in
// what few orders lead to, or whose end the reference does not foresee. No cluster is drained again.
func Expect(t *testing.T, oracle *Oracle, seeds ...uint64) {
	t.Helper()
	if *seed != 0 {
		seeds = Seeds(*seed, *number)
	}
	var group errgroup.Group
	group.SetLimit(together)
	for _, of := range seeds {
		group.Go(func() error {
			verdict, err := oracle.Trial(t.Context(), of)
			if err != nil {
				t.Errorf("not compared: %v", err)
				return nil
			}
			t.Log(verdict.String())
			if verdict.Failed() {
				t.Errorf("%s\n%s", &verdict, verdict.State)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Seeds are that many from the first one on.
func Seeds(first, number uint64) []uint64 {
	var all []uint64
	for i := range number {
		all = append(all, first+i)
	}
	return all
}
