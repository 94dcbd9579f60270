package drain

import (
	"cmp"
	"maps"
	"slices"

	"github.com/openshift/update-preflight/collector/drain/eviction"
)

// A rehearsal does not end where its drains stop: who accepts an obstacle goes on behind it, and so does the rehearsal, as if each
// obstacle were removed, until all nodes are drained.

// stop is where the drains of a rehearsal come to while every obstacle stands.
type stop struct {
	pools []stopped
	// waiting are the pods without a node, also those at the end, and why.
	waiting map[int]string
}

// stopped is where the drains of one pool stop: done and started count its nodes.
type stopped struct {
	done, started int
	stuck         []Node
}

// done are the nodes of a pool that are drained while every obstacle stands.
func (r *run) done(pool int) []Node {
	return r.log.pools[pool].done[:r.stop.pools[pool].done:r.stop.pools[pool].done]
}

// note records where the drains stop.
func (r *run) note() {
	r.stop.waiting = map[int]string{}
	r.await()
	for i := range r.log.pools {
		record := &r.log.pools[i]
		at := stopped{done: len(record.done), started: len(record.started)}
		for _, node := range record.draining {
			stuck := *record.nodes[node]
			stuck.Obstacles = r.now.obstacles(node)
			stuck.Kept = len(r.now.onNode[node]) - len(stuck.Obstacles)
			at.stuck = append(at.stuck, stuck)
		}
		r.stop.pools = append(r.stop.pools, at)
	}
}

// await records the pods without a node.
func (r *run) await() {
	r.now.unplaced = nil
	for _, at := range r.now.waiting() {
		if _, known := r.stop.waiting[at]; !known {
			r.stop.waiting[at] = r.now.live[at].why
		}
	}
}

// goOn drains the nodes behind the obstacles.
func (r *run) goOn() {
	for range r.m.bound() {
		if !r.remove() {
			break
		}
		r.drainAll()
	}
	r.await()
}

// remove removes the obstacles at which the drains stop, and what keeps a pool from draining any node, and reports whether there
// was anything. After the first time, the obstacles are noted; what the budget of a removed one refuses is no other cause.
func (r *run) remove() bool {
	first, removed := r.behind == nil, false
	r.now.unplaced = nil
	if first {
		r.behind, r.broken = map[int]bool{}, map[int]bool{}
	}
	for i := range r.log.pools {
		for _, node := range r.log.pools[i].draining {
			for _, at := range slices.Clone(r.now.onNode[node]) {
				removed = r.removeOne(int(at), node, first) || removed
			}
		}
		if pool := &r.pools[i]; len(pool.Unavailable) > 0 && len(pool.Unavailable) >= pool.MaxUnavailable {
			if pool.Later != nil {
				pool.Nodes = pool.Later
			}
			pool.Unavailable, pool.Updating, removed = nil, nil, true
		}
	}
	r.end()
	return removed
}

func (r *run) removeOne(at, node int, first bool) bool {
	if int(r.now.live[at].node) != node || r.now.answer(at).Outcome == eviction.KeptOnNode {
		return false
	}
	budgets := r.m.pods[r.now.live[at].form].budgets
	if !first && !slices.ContainsFunc(budgets, func(budget int) bool { return r.broken[budget] }) {
		if r.behind[at] = true; r.details[at].Node == "" {
			r.details[at] = r.now.obstacle(at, node)
		}
	}
	for _, budget := range budgets {
		r.broken[budget] = true
	}
	r.log.evicted[at] = true
	if shape := r.now.shape(at); !r.m.pods[at].Ended || r.now.live[at].moved {
		r.now.state.End(shape, node)
		r.ending = append(r.ending, ending{shape, node})
	}
	r.now.leave(at, node) // the interruption is that of its obstacle
	r.workloads.recreate(at)
	return true
}

// behind are the obstacles behind the others; those that not every rehearsal comes to are unknown.
func (f *folding) behind(details map[int]Obstacle) []Obstacle {
	times := map[int]int{}
	for _, run := range f.runs {
		for at := range run.behind {
			times[at]++
		}
	}
	var found []Obstacle
	for _, at := range slices.Sorted(maps.Keys(times)) {
		obstacle := details[at]
		if times[at] < len(f.runs) && obstacle.Outcome != eviction.Unknown {
			obstacle.Outcome, obstacle.By = eviction.Unknown, cmp.Or(obstacle.By, "it depends on the nodes that the scheduler chooses")
		}
		found = append(found, obstacle)
	}
	slices.SortFunc(found, func(a, b Obstacle) int { return compareReferences(a.Pod, b.Pod) })
	return found
}

// unreached counts the nodes of a pool to which no rehearsal comes, also without the obstacles.
func (f *folding) unreached(pool int) int {
	most := 0
	for _, run := range f.runs {
		most = max(most, len(run.pools[pool].Nodes)-len(run.log.pools[pool].done))
	}
	return most
}
