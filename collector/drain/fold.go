package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/words"
)

type folding struct {
	m       *model
	runs    []*run
	details map[int]Obstacle
	// single drains one node of each pool at a time; nil where all pools do.
	single *run
}

// rehearsal returns what the rehearsals have in common. The first one is the example that is shown.
func (f *folding) rehearsal() Rehearsal {
	m, shown := f.m, f.runs[0]
	found := Rehearsal{Preempted: shown.log.preempted, Graces: m.graces(shown.log.evicted)}
	for i := range m.input.Order.Pools {
		found.Pools = append(found.Pools, f.pool(i))
	}
	found.Never, found.Behind = f.never(), f.behind(f.details)
	found.Pending = f.pendingBehind(f.pending(func(each *run) map[int]string { return each.beyond.stop.waiting }))
	found.Lost = f.lost()
	found.Interrupted = f.interrupted()
	found.Expanded, found.Together, found.Addresses = f.expanded(), f.together(), f.addresses()
	found.Delayed = shown.log.delayed
	slices.SortFunc(found.Delayed, func(a, b Pending) int { return compareReferences(a.Pod, b.Pod) })
	return found
}

// never are the pods whose eviction is refused as long as the objects are as they are now. A drain may change them: of a
// pod that each rehearsal evicts, nothing is refused, and of one that some evict, it is unknown.
func (f *folding) never() []Obstacle {
	times := map[Reference]int{}
	for _, run := range f.runs {
		for at, evicted := range run.log.evicted[:f.m.existing] {
			if evicted && !run.beyond.removed[at] {
				times[f.m.reference(at)]++
			}
		}
	}
	var found []Obstacle
	for _, each := range f.m.never() {
		switch times[each.Pod] {
		case len(f.runs):
			continue
		case 0:
		default:
			each.Outcome, each.By = eviction.Unknown, cmp.Or(each.By, orderDecides)
		}
		found = append(found, each)
	}
	return found
}

func (f *folding) lost() []Lost {
	m, runs := f.m, f.runs
	times, before := map[int]int{}, map[int]int{} // before are those that every obstacle leaves
	for _, run := range runs {
		for at, lost := range run.log.lost {
			if lost {
				times[at]++
			}
			if run.beyond.stop.lost[at] {
				before[at]++
			}
		}
	}
	var found []Lost
	for _, at := range slices.Sorted(maps.Keys(times)) {
		why := m.pods[at].recreation.Why
		if m.pods[at].recreation.Outcome == recreation.Recreated {
			why = "belongs to a Job whose backoffLimit the evictions exceed"
		}
		found = append(found, Lost{
			Pod: m.reference(at), Node: m.nodeOf(at), Why: why, Uncertain: cmp.Or(before[at], times[at]) < len(runs),
			Behind: before[at] == 0,
		})
	}
	return found
}

func (f *folding) pool(at int) Pool {
	m, runs := f.m, f.runs
	pool := &m.input.Order.Pools[at]
	found := Pool{
		Name: pool.Name, Nodes: runs[0].beyond.done(at), Outcome: Clear,
		Waiting: len(pool.Nodes) - runs[0].beyond.stop.pools[at].started, Unreached: f.unreached(at),
	}
	if pool.Blocked() {
		found.Outcome = Blocked
		found.Why = fmt.Sprintf("%d of its nodes may be unavailable, and these are: %s", pool.MaxUnavailable,
			words.List(pool.Unavailable, maxBehind))
		return found
	}
	if pool.Waits() {
		found.Outcome = Undetermined
		found.Why = fmt.Sprintf("no other node is drained while these are being updated: %s", words.List(pool.Updating, maxBehind))
		return found
	}
	var sticking []*run
	for _, run := range runs {
		if len(run.beyond.stop.pools[at].stuck) > 0 {
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
	found.Single = f.single != nil && pool.MaxUnavailable > 1 && len(f.single.beyond.stop.pools[at].stuck) == 0
	shown := sticking[0]
	found.Nodes, found.Waiting = shown.beyond.done(at), len(pool.Nodes)-shown.beyond.stop.pools[at].started
	found.Stuck = stuckIn(at, sticking)
	if found.Outcome == Undetermined {
		found.Why = cmp.Or(f.settles(found.Stuck), why(found.Stuck))
	}
	return found
}

// settles is why an outcome depends on pods that started a moment ago; empty if it does not.
func (f *folding) settles(stuck []Node) string {
	m := f.m
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
				return fmt.Sprintf("pod %s of PodDisruptionBudget %q started a moment ago and is not ready yet; run it again in some minutes",
					m.reference(at), of.Name)
			}
		}
	}
	return ""
}

// pendingBehind adds those that only lack a node behind the obstacles.
func (f *folding) pendingBehind(found []Pending) []Pending {
	controllers := map[Reference]int{} // those that are alike have one, others are their own
	for i := range f.m.input.Cluster.Pods {
		controllers[f.m.reference(i)] = -2 - i
		if p := &f.m.pods[i]; p.alike {
			controllers[f.m.reference(i)] = p.controller
		}
	}
	known := map[int]int{}
	for i := range found {
		known[controllers[found[i].Pod]]++
	}
	for _, each := range f.pending(func(each *run) map[int]string { return each.beyond.waiting }) {
		if known[controllers[each.Pod]]--; known[controllers[each.Pod]] >= 0 {
			continue
		}
		each.Behind = true
		found = append(found, each)
	}
	return found
}

// pending returns the pods without a node after a rehearsal, in the order of the first rehearsal. The pods of a
// ReplicaSet are interchangeable: it has as many pending pods as one rehearsal leaves without a node at most, and
// as many of them are certain as each rehearsal leaves at least.
func (f *folding) pending(without func(*run) map[int]string) []Pending {
	m, runs := f.m, f.runs
	times, whys := map[int]int{}, map[int]string{}
	counts := make([]map[int]int, 0, len(runs)) // by controller
	for _, run := range runs {
		waiting := map[int]int{}
		for at, why := range without(run) {
			times[at]++
			whys[at] = cmp.Or(whys[at], why)
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
		found = append(found, Pending{Pod: m.reference(at), Node: m.nodeOf(at), Why: whys[at], Uncertain: uncertain, Missing: m.pods[at].absent})
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

// together are the workloads with several ready pods that have none in the first rehearsal, and at least one where one node
// of each pool is drained at a time. What other pools drain at the same time counts for both.
func (f *folding) together() []Together {
	m, shown := f.m, f.runs[0]
	if f.single == nil {
		return nil
	}
	ready, example := map[int]int{}, map[int]int{}
	for at := range m.existing {
		if p := &m.pods[at]; p.controller >= 0 && p.Ready && !p.Terminating {
			ready[p.controller]++
			example[p.controller] = at
		}
	}
	var found []Together
	for _, group := range slices.Sorted(maps.Keys(shown.log.dark)) {
		controller := group - len(m.input.Services)
		if _, alone := f.single.log.dark[group]; alone || ready[controller] <= 1 {
			continue
		}
		pod := &m.input.Cluster.Pods[example[controller]]
		by := metav1.GetControllerOfNoCopy(pod)
		of := Together{
			APIVersion: by.APIVersion, Kind: by.Kind, Workload: Reference{pod.Namespace, by.Name}, Nodes: shown.log.dark[group],
			Replicas: ready[controller],
		}
		if kind, name, scaled := strings.Cut(m.controllers[controller].Scaler, "/"); scaled {
			of.Kind, of.Workload.Name = kind, name // of the same API group
		}
		found = append(found, of)
	}
	return found
}

// addresses finds the addresses that only one node can have, where that node is drained.
func (f *folding) addresses() []Address {
	drained := map[string]bool{}
	for i := range f.m.input.Order.Pools {
		for _, node := range f.m.input.Order.Pools[i].Nodes {
			drained[node] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(f.m.input.Addresses),
		func(each Address) bool { return len(each.Nodes) != 1 || !drained[each.Nodes[0]] })
}

// expanded are the pods on new machines of the first rehearsal that needs some.
func (f *folding) expanded() []Expansion {
	var found []Expansion
	for _, run := range f.runs {
		for _, at := range slices.Sorted(maps.Keys(run.scheduler.expanded)) {
			found = append(found, Expansion{Pod: f.m.reference(at), MachineSet: run.scheduler.expanded[at]})
		}
		if len(found) > 0 {
			break
		}
	}
	return found
}

// interrupted are the Services without a ready pod in the first rehearsal.
func (f *folding) interrupted() []Interruption {
	m, shown := f.m, f.runs[0]
	replicas := make([]int, len(m.input.Services))
	for i := range m.pods {
		for _, group := range m.pods[i].groups {
			if m.pods[i].Ready && group < len(replicas) {
				replicas[group]++
			}
		}
	}
	var found []Interruption
	for _, at := range slices.Sorted(maps.Keys(shown.log.dark)) {
		if at >= len(replicas) {
			continue
		}
		service := &m.input.Services[at]
		found = append(found, Interruption{
			Service: Reference{service.Namespace, service.Name}, Nodes: shown.log.dark[at],
			Replicas: replicas[at],
		})
	}
	return found
}

func stuckIn(pool int, sticking []*run) []Node {
	times := map[string]int{}
	var found []Node
	for _, each := range sticking {
		for _, stuck := range each.beyond.stop.pools[pool].stuck {
			if times[stuck.Name]++; times[stuck.Name] == 1 {
				found = append(found, stuck)
			}
		}
	}
	for i := range found {
		found[i].Uncertain = times[found[i].Name] < len(sticking)
	}
	return found
}

// why explains an outcome that differs between rehearsals.
func why(stuck []Node) string {
	for _, node := range stuck {
		for _, obstacle := range node.Obstacles {
			if obstacle.Outcome == eviction.Unknown {
				return obstacle.By
			}
		}
	}
	return orderDecides
}

// orderDecides is why an outcome differs between rehearsals that know the same.
const orderDecides = "it depends on the nodes that the scheduler chooses"

// bounds are the least and the most of one count.
func bounds(counts []map[int]int, of int) (least, most int) {
	least = counts[0][of]
	for _, each := range counts {
		least, most = min(least, each[of]), max(most, each[of])
	}
	return least, most
}
