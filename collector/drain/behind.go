package drain

import (
	"cmp"
	"maps"
	"slices"

	"github.com/openshift/update-preflight/collector/drain/eviction"
)

// beyond is what a rehearsal has beyond the obstacles at which its drains stop. An acceptance removes an obstacle, and the update
// continues: so does the rehearsal, as if each obstacle were removed, until all nodes are drained.
type beyond struct {
	r    *run
	stop stop
	// removed are the pods that were removed in spite of an obstacle, behind those of an obstacle behind others, and broken the
	// budgets of all; details has the obstacles of all rehearsals.
	removed, behind, broken map[int]bool
	details                 map[int]Obstacle
	// waiting are the pods without a node then or at the end, and why.
	waiting map[int]string
}

// stop is where the drains of a rehearsal come to while every obstacle stands.
type stop struct {
	pools []stopped
	// waiting are the pods without a node, and why; lost those that nothing creates again.
	waiting map[int]string
	lost    map[int]bool
}

// stopped is where the drains of one pool stop: done and started count its nodes.
type stopped struct {
	done, started int
	stuck         []Node
}

// done are the nodes of a pool that are drained while every obstacle stands.
func (b *beyond) done(pool int) []Node {
	count := b.stop.pools[pool].done
	return b.r.log.pools[pool].done[:count:count]
}

// note records where the drains stop.
func (b *beyond) note() {
	b.waiting = map[int]string{}
	b.await()
	b.stop.waiting, b.stop.lost = maps.Clone(b.waiting), maps.Clone(b.r.log.lost)
	for i := range b.r.log.pools {
		record := &b.r.log.pools[i]
		at := stopped{done: len(record.done), started: len(record.started)}
		for _, node := range record.draining {
			stuck := *record.nodes[node]
			stuck.Obstacles = b.r.now.obstacles(node)
			stuck.Kept = len(b.r.now.onNode[node]) - len(stuck.Obstacles)
			at.stuck = append(at.stuck, stuck)
		}
		b.stop.pools = append(b.stop.pools, at)
	}
}

// await records the pods without a node. What becomes of those that were removed is the matter of their obstacle.
func (b *beyond) await() {
	b.r.now.unplaced = nil
	for _, at := range b.r.now.waiting() {
		if _, known := b.waiting[at]; !known && !b.removed[at] {
			b.waiting[at] = b.r.now.live[at].why
		}
	}
}

// goOn drains the nodes behind the obstacles.
func (b *beyond) goOn() {
	for range b.r.m.bound() {
		if !b.remove() {
			break
		}
		b.r.drainAll()
	}
	b.await()
}

// remove removes the obstacles at which the drains stop, and what keeps a pool from draining any node, and reports whether there
// was anything. From the second time on, the obstacles are noted in behind; what the budget of a removed one refuses is no other cause.
func (b *beyond) remove() bool {
	removed := false
	b.r.now.unplaced = nil
	for i := range b.r.log.pools {
		for _, node := range b.r.log.pools[i].draining {
			for _, at := range slices.Clone(b.r.now.onNode[node]) {
				removed = b.removeOne(int(at), node) || removed
			}
		}
		if pool := &b.r.pools[i]; len(pool.Unavailable) > 0 && len(pool.Unavailable) >= pool.MaxUnavailable {
			if pool.Later != nil {
				pool.Nodes = pool.Later
			}
			pool.Unavailable, pool.Updating, removed = nil, nil, true
		}
	}
	b.r.end()
	if b.behind == nil {
		b.behind = map[int]bool{}
	}
	return removed
}

func (b *beyond) removeOne(at, node int) bool {
	if int(b.r.now.live[at].node) != node || b.r.now.answer(at).Outcome == eviction.KeptOnNode {
		return false
	}
	budgets := b.r.m.pods[b.r.now.live[at].form].budgets
	if b.behind != nil && !slices.ContainsFunc(budgets, func(budget int) bool { return b.broken[budget] }) {
		if b.behind[at] = true; b.details[at].Node == "" {
			b.details[at] = b.r.now.obstacle(at, node)
		}
	}
	for _, budget := range budgets {
		b.broken[budget] = true
	}
	b.removed[at], b.r.log.evicted[at] = true, true
	if shape := b.r.now.shape(at); !b.r.m.pods[at].Ended || b.r.now.live[at].moved {
		b.r.now.state.End(shape, node)
		b.r.ending = append(b.r.ending, ending{shape, node})
	}
	b.r.now.leave(at, node)
	lost := b.r.log.lost[at]
	b.r.workloads.recreate(at)
	b.r.log.lost[at] = lost
	return true
}

// behind are the obstacles behind the others; those that not every rehearsal comes to are unknown.
func (f *folding) behind(details map[int]Obstacle) []Obstacle {
	times := map[int]int{}
	for _, run := range f.runs {
		for at := range run.beyond.behind {
			times[at]++
		}
	}
	var found []Obstacle
	for _, at := range slices.Sorted(maps.Keys(times)) {
		obstacle := details[at]
		if times[at] < len(f.runs) && obstacle.Outcome != eviction.Unknown {
			obstacle.Outcome, obstacle.By = eviction.Unknown, cmp.Or(obstacle.By, orderDecides)
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
