package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxBehind bounds the pods without a node that are named for an obstacle.
	maxBehind = 10
	// maxSlow bounds the pools of which a rehearsal is made in which they are slow.
	maxSlow = 2
	// smallCluster is how many pods a cluster has at most that gets manyShuffled rehearsals in
	// a random order; others get fewShuffled.
	smallCluster, manyShuffled, fewShuffled = 2000, 24, 4
)

// Rehearse drains the nodes of an update on paper.
func Rehearse(input Input) Rehearsal {
	m := modelOf(&input)
	all := choicesFor(len(input.Order.Pools), m.existing)
	runs := make([]*run, 0, len(all))
	for _, choices := range all {
		ended := m.run(choices)
		ended.now.state = nil
		runs = append(runs, ended)
	}
	return m.fold(runs)
}

// choicesFor are those of the rehearsals. The first is the most likely one. A small cluster gets
// more, since a pod more or less matters more there.
func choicesFor(pools, pods int) []choices {
	all := []choices{
		{preference: placement.Emptiest, slow: -1, hopeful: true},
		{preference: placement.Emptiest, slow: -1},
		{preference: placement.Any, slow: -1},
		{preference: placement.Any, slow: -1, hopeful: true},
		{preference: placement.Fullest, slow: -1},
		{preference: placement.Emptiest, slow: -1, newest: true},
		{preference: placement.Any, slow: -1, newest: true, hopeful: true},
		{preference: placement.Emptiest, slow: -1, newest: true, instant: true},
	}
	for slow := range min(pools, maxSlow) {
		if pools > 1 {
			all = append(all, choices{preference: placement.Emptiest, slow: slow})
		}
	}
	shuffled := fewShuffled
	if pods <= smallCluster {
		shuffled = manyShuffled
	}
	for i := range shuffled {
		all = append(all, choices{preference: []placement.Preference{placement.Emptiest, placement.Any}[i%2], slow: -1, shuffled: true, hopeful: i%4 >= 2})
	}
	for i := range all {
		all[i].settles = all[i].hopeful
	}
	all = append(all, choices{preference: placement.Emptiest, slow: -1, hopeful: true}, choices{preference: placement.Emptiest, slow: -1, settles: true})
	for i := range all {
		all[i].seed = uint64(i)
	}
	return all
}

// fold is what the rehearsals have in common. The first one is the example that is shown.
func (m *model) fold(runs []*run) Rehearsal {
	shown := runs[0]
	found := Rehearsal{Preempted: shown.log.preempted, Graces: m.graces(shown.log.evicted)}
	for i := range m.input.Order.Pools {
		found.Pools = append(found.Pools, m.foldPool(i, runs))
	}
	found.Never = m.never()
	found.Pending = m.foldPending(runs)
	found.Lost = m.foldLost(runs)
	found.Interrupted = m.interrupted(shown)
	return found
}

// foldLost are the pods that a rehearsal loses.
func (m *model) foldLost(runs []*run) []Lost {
	times := map[int]int{}
	for _, run := range runs {
		for at, lost := range run.log.lost {
			if lost {
				times[at]++
			}
		}
	}
	var found []Lost
	for _, at := range slices.Sorted(maps.Keys(times)) {
		why := m.pods[at].recreation.Why
		if m.pods[at].recreation.Outcome != recreation.Lost {
			why = "is of a Job whose backoffLimit the evictions exceed"
		}
		found = append(found, Lost{Pod: m.reference(at), Node: m.nodeOf(at), Why: why, Uncertain: times[at] < len(runs)})
	}
	return found
}

// never are the pods on nodes that are drained whose eviction is refused for ever.
func (m *model) never() []Obstacle {
	now := m.situation(choices{})
	var found []Obstacle
	for i := range m.input.Order.Pools {
		for _, name := range m.input.Order.Pools[i].Nodes {
			node := m.cluster.Node(name)
			if node < 0 {
				continue
			}
			for _, each := range now.obstacles(node) {
				if each.Outcome == eviction.Never || each.Outcome == eviction.Refused {
					found = append(found, each)
				}
			}
		}
	}
	return found
}

// stuck are the nodes of a pool whose drains have not ended, in order.
func (r *run) stuck(pool int) []int { return r.log.pools[pool].draining }

func (m *model) foldPool(at int, runs []*run) Pool {
	pool := &m.input.Order.Pools[at]
	found := Pool{Name: pool.Name, Nodes: runs[0].log.pools[at].done, Outcome: Clear, Waiting: len(pool.Nodes) - len(runs[0].log.pools[at].started)}
	if pool.Blocked() {
		found.Outcome = Blocked
		found.Why = fmt.Sprintf("%d of its nodes may be unavailable, and these are: %s", pool.MaxUnavailable, words.List(pool.Unavailable, maxBehind))
		return found
	}
	if pool.Waits() {
		found.Outcome = Undetermined
		found.Why = fmt.Sprintf("no other node is drained while these are being updated: %s", words.List(pool.Updating, maxBehind))
		return found
	}
	var sticking []*run
	for _, run := range runs {
		if len(run.stuck(at)) > 0 {
			sticking = append(sticking, run)
		}
	}
	if len(sticking) == 0 {
		return found
	}
	found.Outcome = Sticks
	if len(sticking) < len(runs) {
		found.Outcome = Undetermined
	}
	shown := sticking[0]
	found.Nodes, found.Waiting = shown.log.pools[at].done, len(pool.Nodes)-len(shown.log.pools[at].started)
	found.Stuck = stuckIn(at, sticking)
	if found.Outcome == Undetermined {
		found.Why = cmp.Or(m.settles(found.Stuck), why(found.Stuck))
	}
	return found
}

// stuckIn are the nodes at which a pool sticks in a rehearsal, those of the first one first.
func stuckIn(pool int, sticking []*run) []Node {
	times := map[int]int{}
	var found []Node
	var at []int
	for _, each := range sticking {
		for _, node := range each.stuck(pool) {
			if times[node]++; times[node] > 1 {
				continue
			}
			stuck := *each.log.pools[pool].nodes[node]
			stuck.Obstacles = each.now.obstacles(node)
			stuck.Kept = len(each.now.onNode[node]) - len(stuck.Obstacles)
			found, at = append(found, stuck), append(at, node)
		}
	}
	for i := range found {
		found[i].Uncertain = times[at[i]] < len(sticking)
	}
	return found
}

// settles is why an outcome depends on pods that started a moment ago; empty if it does not.
func (m *model) settles(stuck []Node) string {
	budgets := map[Reference]bool{}
	for _, node := range stuck {
		for _, obstacle := range node.Obstacles {
			for _, budget := range obstacle.Budgets {
				budgets[budget] = true
			}
		}
	}
	for at := range m.existing {
		for _, budget := range m.pods[at].budgets {
			if of := (Reference{m.budgets[budget].Namespace, m.budgets[budget].Name}); m.pods[at].starting && budgets[of] {
				return fmt.Sprintf("pod %s of PodDisruptionBudget %q started a moment ago and is not ready yet; run it again in some minutes", m.reference(at), of.Name)
			}
		}
	}
	return ""
}

// why is what an outcome depends on that differs between rehearsals.
func why(stuck []Node) string {
	for _, node := range stuck {
		for _, obstacle := range node.Obstacles {
			if obstacle.Outcome == eviction.Unknown {
				return obstacle.By
			}
		}
	}
	return "it depends on the nodes that the scheduler chooses"
}

// obstacles are the pods that a node keeps although its drain continues.
func (s *situation) obstacles(node int) []Obstacle {
	var found []Obstacle
	for _, at := range s.onNode[node] {
		answer := s.answer(int(at))
		if answer.Outcome == eviction.KeptOnNode {
			continue
		}
		if answer.Outcome == eviction.Evicted { // which waits for a node to migrate to
			answer.Outcome = eviction.WaitsFor
		}
		p := &s.m.pods[at]
		obstacle := Obstacle{Pod: s.m.reference(int(at)), Node: s.m.cluster.Name(node), Outcome: answer.Outcome, Cause: answer.Cause, By: s.by(int(at), answer)}
		obstacle.Reviewer, obstacle.Controller = p.admission.By, controllerOf(&s.m.input.Cluster.Pods[at])
		if answer.Cause == Operator {
			obstacle.Remedy = p.owner.Remedy
		}
		for _, budget := range p.budgets {
			obstacle.Budgets = append(obstacle.Budgets, Reference{s.budgets[budget].Namespace, s.budgets[budget].Name})
		}
		if len(p.budgets) == 1 {
			obstacle.Manager = s.m.managers[p.budgets[0]]
		}
		if answer.Outcome == eviction.WaitsFor && len(p.budgets) == 1 {
			obstacle.Behind = s.behind(p.budgets[0])
		}
		found = append(found, obstacle)
	}
	slices.SortFunc(found, func(a, b Obstacle) int { return compareReferences(a.Pod, b.Pod) })
	return found
}

// by is who refuses an eviction besides budgets, or what is not known.
func (s *situation) by(at int, answer eviction.Answer) string {
	p := &s.m.pods[at]
	switch answer.Cause { //nolint:exhaustive // the budgets explain the others
	case Terminating:
		return cmp.Or(p.stuck, "its finalizer "+s.m.pods[s.live[at].form].finalizer)
	case Admission:
		return p.admission.Why
	case Operator:
		if p.owner.Operator != "" {
			return p.owner.Operator + ": " + cmp.Or(s.live[at].why, p.owner.Why)
		}
		if s.m.owned[p.budgets[0]] {
			return s.m.managers[p.budgets[0]] + " owns the PodDisruptionBudget of the pod"
		}
		return custom(&s.m.input.Cluster.Pods[at]) + " owns the pod"
	case eviction.StaleBudget:
		return "the status of its budget is of an earlier generation"
	}
	return ""
}

// behind are the pods of a budget without a node.
func (s *situation) behind(budget int) []Pending {
	var found []Pending
	for at := range s.live {
		if s.waits(at) && slices.Contains(s.m.pods[at].budgets, budget) && len(found) < maxBehind {
			found = append(found, Pending{Pod: s.m.reference(at), Node: s.m.nodeOf(at), Why: s.live[at].why})
		}
	}
	return found
}

// waits reports whether a pod is without a node at the end.
func (s *situation) waits(at int) bool { return s.live[at].node < 0 && !s.live[at].gone }

// waiting are the pods without a node at the end.
func (r *run) waiting() []int {
	var found []int
	for at := range r.now.live {
		if r.now.waits(at) {
			found = append(found, at)
		}
	}
	return found
}

// foldPending are the pods without a node at the end of a rehearsal, those of all first. Of the pods of a
// ReplicaSet, which are the same, it has as many as a rehearsal leaves without a node at most, and as many
// of them are certain as each rehearsal leaves at least.
func (m *model) foldPending(runs []*run) []Pending {
	times, whys := map[int]int{}, map[int]string{}
	counts := make([]map[int]int, 0, len(runs)) // by controller
	for _, run := range runs {
		waiting := map[int]int{}
		for _, at := range run.waiting() {
			times[at]++
			whys[at] = cmp.Or(whys[at], run.now.live[at].why)
			waiting[m.pods[at].controller]++
		}
		counts = append(counts, waiting)
	}
	var found []Pending
	listed := map[int]int{} // by controller
	oftenest := func(a, b int) int { return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a, b)) }
	for _, at := range slices.SortedFunc(maps.Keys(times), oftenest) {
		uncertain := times[at] < len(runs)
		if p := &m.pods[at]; p.alike {
			least, most := bounds(counts, p.controller)
			if listed[p.controller]++; listed[p.controller] > most {
				continue
			}
			uncertain = listed[p.controller] > least
		}
		found = append(found, Pending{Pod: m.reference(at), Node: m.nodeOf(at), Why: whys[at], Uncertain: uncertain})
	}
	slices.SortStableFunc(found, func(a, b Pending) int {
		if a.Uncertain != b.Uncertain {
			if a.Uncertain {
				return 1
			}
			return -1
		}
		return compareReferences(a.Pod, b.Pod)
	})
	return found
}

// bounds are the least and the most of one count.
func bounds(counts []map[int]int, of int) (least, most int) {
	least = counts[0][of]
	for _, each := range counts {
		least, most = min(least, each[of]), max(most, each[of])
	}
	return least, most
}

func (m *model) interrupted(shown *run) []Interruption {
	replicas := make([]int, len(m.input.Services))
	for i := range m.pods {
		for _, service := range m.pods[i].services {
			if m.pods[i].Ready {
				replicas[service]++
			}
		}
	}
	var found []Interruption
	for _, at := range slices.Sorted(maps.Keys(shown.log.dark)) {
		service := &m.input.Services[at]
		found = append(found, Interruption{Service: Reference{service.Namespace, service.Name}, Nodes: shown.log.dark[at], Replicas: replicas[at]})
	}
	return found
}
