// Package rollout answers: when are the nodes of a pool rebooted on the way to a release,
// and how long does that way take?
//
// A paused pool is not rebooted. It has to be unpaused before an update whose API server
// would no longer support its kubelets, and at the end.
package rollout

import (
	"fmt"
	"time"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/update"
)

// UnknownError is the error for a release whose Kubernetes version is unknown: it is newer than this program.
type UnknownError struct{ Release semver.Version }

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("the Kubernetes version of %s, or its oldest supported kubelet, is unknown", e.Release)
}

// Unpause are the versions at which a pool has to be unpaused, as indexes of the path,
// which starts with the present version: as late as the kubelets permit, so that its nodes
// are rebooted as rarely as possible. The last is the end of the path. The oldest kubelet
// of the pool has the version 1.kubelet. The error is an *UnknownError.
func Unpause(path []semver.Version, kubelet uint64) ([]int, error) {
	var at []int
	for i, release := range path {
		oldest, known := update.OldestKubelet(release)
		if !known {
			return nil, &UnknownError{release}
		}
		if kubelet >= oldest || i == 0 {
			continue
		}
		at = append(at, i-1)
		kubelet, _ = update.Kubernetes(path[i-1])
	}
	return append(at, len(path)-1), nil
}

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
