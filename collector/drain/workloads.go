package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/quota"
	"github.com/openshift/update-preflight/collector/drain/recreation"
)

// workloads create pods again during a rehearsal, and the disruption controller counts them.
type workloads struct{ r *run }

// exists records that one more or one less pod exists of the controller and the budgets of a pod. A budget
// then expects the scale of the controllers that have pods.
func (w *workloads) exists(at, by int) {
	p := &w.r.m.pods[w.r.now.live[at].form]
	if p.controller < 0 {
		return
	}
	for _, budget := range p.budgets {
		present := w.r.now.scaled[budget]
		if present == nil {
			continue
		}
		present[p.controller] += by
		if scale := w.r.m.sum(present); scale >= 0 && (scale != w.r.now.budgets[budget].Expected || w.r.now.budgets[budget].Failure != "") {
			w.r.now.budgets[budget].Expect(scale)
		}
	}
}

// predecessor is the pod that an ordered StatefulSet waits for before it creates this one; empty if for
// none (kubernetes pkg/controller/statefulset, processReplica).
func (w *workloads) predecessor(at int) string {
	p := &w.r.m.pods[at]
	if p.controller < 0 || !w.r.m.controllers[p.controller].Ordered {
		return ""
	}
	own, next := w.r.m.ordinal(at), w.r.m.controllers[p.controller].First
	for _, other := range w.r.m.controllers[p.controller].members {
		number := w.r.m.ordinal(other)
		if number >= own || number > next || number == next && !w.r.now.live[other].healthy && !w.r.now.live[other].gone {
			break
		}
		next = max(next, number+1)
	}
	if next >= own {
		return ""
	}
	name := w.r.m.input.Cluster.Pods[at].Name
	return strings.TrimSuffix(name, strconv.Itoa(own)) + strconv.Itoa(next)
}

// recreate has what comes in the place of a pod that left its node wait for its creation.
func (w *workloads) recreate(at int) {
	p, l := &w.r.m.pods[at], &w.r.now.live[at]
	active := l.moved || (!p.Ended && !p.Terminating)
	if p.controller >= 0 && active {
		w.r.now.counts.active[p.controller]--
	}
	if l.moved || !p.Ended {
		w.r.now.quotas.Release(w.charges(at))
	}
	failed := active && w.fails(at)
	superfluous := p.Ended && !l.moved || w.superfluous(p, active)
	l.form, l.created = position(p.next), false
	switch {
	case superfluous:
		w.vanish(at)
	case p.recreation.Outcome == recreation.Lost || failed, p.recreation.Outcome == recreation.Unknown && p.completes && !w.r.choices.hopeful:
		w.vanish(at)
		w.r.log.lost[at] = active
	case p.recreation.Outcome == recreation.Refused, p.recreation.Outcome == recreation.Unknown && !w.r.choices.hopeful:
		l.moved, l.why = true, p.recreation.String()
		w.exists(at, -1)
	case p.owner.Behavior == owner.Returns:
		l.moved, l.created, l.why = true, true, p.owner.Why
		w.r.now.returning = append(w.r.now.returning, position(at))
	default:
		w.await(at)
	}
}

// superfluous reports whether the controller of a pod has as many pods as it keeps without it.
func (w *workloads) superfluous(p *pod, active bool) bool {
	if p.controller < 0 {
		return false
	}
	of := &w.r.m.controllers[p.controller]
	return (!of.known && !active) || (of.known && w.r.now.counts.active[p.controller] >= of.Replicas)
}

// await has a pod wait for its creation and for a node.
func (w *workloads) await(at int) {
	if controller := w.r.m.pods[at].controller; controller >= 0 {
		w.r.now.counts.active[controller]++
	}
	w.r.now.live[at].moved, w.r.now.live[at].since = true, w.r.since()
	w.r.scheduler.pending = append(w.r.scheduler.pending, position(at))
}

// charges returns the amounts that quotas count for an existing pod.
func (w *workloads) charges(at int) []quota.Charge {
	if w.r.now.live[at].moved {
		return w.r.m.pods[at].recreation.Charges
	}
	return w.r.m.pods[at].charges
}

// ignores reports whether a pod that does not exist now is left out: one that its controller does not create, and where
// nothing that is known keeps it from being created, since something else does, in all but a hopeful rehearsal.
func (w *workloads) ignores(at int) bool {
	p, l := &w.r.m.pods[at], &w.r.now.live[at]
	if !p.absent {
		return false
	}
	if p.recreation.Outcome == recreation.Recreated {
		if !w.create(at) {
			return false
		}
		w.r.now.quotas.Release(p.recreation.Charges)
		w.exists(at, -1)
		if l.created, l.absent, l.why = false, true, "it does not exist now"; w.r.choices.hopeful {
			return false
		}
	}
	l.gone, l.why = true, ""
	w.r.now.counts.active[p.controller]--
	return true
}

// vanish has a pod be gone, which nothing creates again.
func (w *workloads) vanish(at int) {
	w.r.now.live[at].gone = true
	w.exists(at, -1)
}

// fails counts an evicted pod as a failure of its Job, and reports whether the Job fails by it. A failed Job
// has no pods: its controller deletes them (kubernetes pkg/controller/job, deleteActivePods).
func (w *workloads) fails(at int) bool {
	controller := w.r.m.pods[at].controller
	if controller < 0 || w.r.m.controllers[controller].Failures == recreation.Unlimited {
		return false
	}
	if w.r.now.counts.failures[controller]--; w.r.now.counts.failures[controller] >= 0 {
		return false
	}
	for other := range w.r.now.live {
		l := &w.r.now.live[other]
		if other == at || w.r.m.pods[other].controller != controller || l.gone || w.r.m.pods[other].Ended && !l.moved {
			continue
		}
		if l.node >= 0 {
			w.r.leave(other, int(l.node))
		}
		w.r.scheduler.pending = slices.DeleteFunc(w.r.scheduler.pending, func(pending int32) bool { return int(pending) == other })
		w.vanish(other)
		w.r.log.lost[other] = true
	}
	return true
}

// create has the controller of a pod create what comes in its place, and reports whether it exists.
func (w *workloads) create(at int) bool {
	l := &w.r.now.live[at]
	if l.created {
		return true
	}
	failed := func(why string) bool {
		if l.why = why; !l.absent {
			l.absent = true
			w.exists(at, -1)
		}
		return false
	}
	if before := w.predecessor(at); before != "" {
		return failed(fmt.Sprintf("its StatefulSet creates it once pod %q is ready", before))
	}
	if by, why, ok := w.r.now.quotas.Admit(w.r.m.pods[at].recreation.Charges); !ok {
		return failed(by + " refuses it: it " + why)
	}
	l.created = true
	if l.absent {
		l.absent = false
		w.exists(at, 1)
	}
	return true
}

// beyond is the part of a rehearsal after the obstacles at which its drains hang. If an acceptance removes an
// obstacle, the update continues, and so does the rehearsal: as if each obstacle were removed, until all nodes are
// drained.
type beyond struct {
	r    *run
	stop stop
	// removed are the pods that were removed in spite of an obstacle, behind the pods of obstacles behind others, and
	// broken the budgets of all; details contains the obstacles of all rehearsals.
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

// await records the pods without a node. The fate of the removed pods belongs to their obstacle.
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
