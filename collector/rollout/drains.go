package rollout

import (
	"time"

	"github.com/openshift/update-preflight/collector/drain"
)

// waiting is how long a drain waits until a pod that was evicted is ready again. A drain repeats
// refused evictions every five seconds for 90 seconds, and is repeated after a minute
// (machine-config-operator pkg/controller/drain).
func waiting() Range { return Range{10 * time.Second, 2 * time.Minute, 6 * time.Minute} }

// defaultGrace is the grace period of most pods, which the times of nodes have.
const defaultGrace = 30 * time.Second

// Drains is how much longer than quick ones the drains of each pool take that waits for
// PodDisruptionBudgets or for pods with long grace periods, by a rehearsal. Pods may end before
// their grace periods do: these count at most. Nodes after one whose drain does not end do not count.
func Drains(of *drain.Rehearsal) map[string]Range {
	found := map[string]Range{}
	for i := range of.Pools {
		pool := &of.Pools[i]
		steps := map[int]Range{}
		for n := range pool.Nodes {
			node := &pool.Nodes[n]
			takes := waiting().times(node.Waits)
			takes.High += max(0, node.Grace()-defaultGrace)
			steps[node.Step] = steps[node.Step].atLeast(takes)
		}
		var sum Range
		for _, step := range steps {
			sum = sum.plus(step)
		}
		if sum != (Range{}) {
			found[pool.Name] = sum
		}
	}
	return found
}
