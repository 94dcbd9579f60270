package drain

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/test/drain/comparison"
	"github.com/openshift/update-preflight/test/drain/lab"
)

// Flags that drain other clusters: -seed N -clusters 1 reproduces one.
var (
	//nolint:gochecknoglobals // a flag of the tests
	seed = flag.Uint64("seed", 0, "the seed of the first cluster; 0 for those of the test")
	//nolint:gochecknoglobals // a flag of the tests
	number = flag.Uint64("clusters", 1, "how many clusters are drained, where the seed is not zero")
)

const (
	// batch is how many clusters one call of the program is about, and together how many batches there are at
	// a time: a rehearsal of more than 2000 pods is one of fewer choices.
	batch, together = 50, 2
	hundred         = 100
	// tolerated is how many of a hundred clusters may end otherwise than predicted, as long as none sticks that was predicted
	// to be clear: which of several pods gets the last room, or the last of a quota, depends on times that no rehearsal has.
	tolerated = 5
)

// Expect drains the clusters of these seeds, and fails if one sticks that was predicted to be clear, or if
// more than a few of a hundred (tolerated) do not end as one of the outcomes that the program has predicted. No cluster is
// drained again.
func Expect(t *testing.T, oracle *Oracle, seeds ...uint64) {
	t.Helper()
	if *seed != 0 {
		seeds = Seeds(*seed, *number)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group errgroup.Group
	group.SetLimit(together)
	all := tally{causes: map[string]int{}}
	for some := range slices.Chunk(seeds, batch) {
		group.Go(func() error {
			clusters := make([]lab.Cluster, 0, len(some))
			for _, of := range some {
				clusters = append(clusters, lab.Random(of))
			}
			report := Report{Log: t.Logf, Ended: func(trial *Trial) { all.add(t, trial) }}
			if err := oracle.Batch(ctx, clusters, report); err != nil {
				t.Errorf("the clusters of seeds %v are not drained: %v", some, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Log(all.String())
	if all.wrong*hundred > all.clusters*tolerated {
		t.Errorf("%d of %d clusters did not end as predicted, which is more than %d of a hundred", all.wrong, all.clusters, tolerated)
	}
}

// tally is what came of all clusters.
type tally struct {
	mutex                         sync.Mutex
	clusters, wrong, unsafe, wide int
	pools                         comparison.Count
	causes                        map[string]int
	longest                       time.Duration
}

// add adds a cluster, and prints its line.
func (s *tally) add(t *testing.T, trial *Trial) {
	t.Helper()
	if trial.Err != nil {
		t.Errorf("%s: not drained: %v", trial.Created.Namespace, trial.Err)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	count, wrong, causes := trial.Predicted.Count(), trial.Wrong(), trial.Predicted.Wide()
	s.clusters++
	s.pools = s.pools.Plus(count)
	if len(causes) > 0 {
		s.wide++
	}
	for _, cause := range causes {
		s.causes[cause]++
	}
	s.longest = max(s.longest, trial.Took)
	line := fmt.Sprintf("%s: predicted %d pools clear, %d sticking, %d blocked, %d unknown, in %s", trial.Created.Namespace, count.Clear,
		count.Sticks, count.Blocked, count.Unknown, trial.Took.Round(time.Second))
	if len(wrong) == 0 {
		t.Log(line)
		return
	}
	s.wrong++
	line = fmt.Sprintf("%s; wrong: %s\n%s", line, strings.Join(wrong, "; "), trial)
	if len(trial.Predicted.Unsafe(trial.Ended)) == 0 {
		t.Log(line)
		return
	}
	s.unsafe++
	t.Error(line)
}

// String is the table.
func (s *tally) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "of %d clusters, %d did not end as predicted, %d of them stuck although predicted to be clear; of %d several "+
		"outcomes were predicted; the longest drain took %s\n",
		s.clusters, s.wrong, s.unsafe, s.wide, s.longest.Round(time.Second))
	fmt.Fprintf(&text, "pools predicted: %d clear, %d sticking, %d blocked, %d unknown\n", s.pools.Clear, s.pools.Sticks, s.pools.Blocked,
		s.pools.Unknown)
	for _, cause := range slices.SortedFunc(maps.Keys(s.causes),
		func(a, b string) int { return cmp.Or(cmp.Compare(s.causes[b], s.causes[a]), cmp.Compare(a, b)) }) {
		fmt.Fprintf(&text, "%4d clusters  %s\n", s.causes[cause], cause)
	}
	return text.String()
}

// Seeds are that many from the first one on.
func Seeds(first, number uint64) []uint64 {
	var all []uint64
	for i := range number {
		all = append(all, first+i)
	}
	return all
}
