package drain

import (
	"math/rand/v2"
	"slices"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
)

// choices has what a rehearsal chooses in place of a controller or the scheduler.
type choices struct {
	preference placement.Preference
	// hopeful lets the drain go on where something is unknown; settles takes pods for ready that have just started.
	hopeful, settles bool
	// slow is which pool waits for the others: -1 for none.
	slow int
	// newest places the pods first that were evicted last. The queue of the scheduler depends on
	// how often it has tried each pod.
	newest bool
	// instant drains the next nodes before what waits is placed on those that return.
	instant bool
	// shuffled evicts and places pods in a random order, and has nodes return one by one or together.
	shuffled bool
	// single drains one node of each pool at a time.
	single bool
	seed   uint64
}

type run struct {
	m       *model
	choices choices
	random  *rand.Rand
	now     *situation
	// pools are the pools of the input; the nodes of a NodePool may be in another order.
	pools     []order.Pool
	scheduler *scheduler
	workloads *workloads
	round     int // counts the rounds of evictions
	// evicting is true while the evictions of a round are requested.
	evicting bool
	// ending are the evicted pods of the round.
	ending []ending
	log    log
	beyond *beyond
}

// log is the record of a rehearsal.
type log struct {
	pools     []poolLog
	evicted   []bool
	lost      map[int]bool
	dark      map[int][]string // nodes by group
	preempted int
	delayed   []Pending
}

type poolLog struct {
	started  map[string]bool
	draining []int
	done     []Node
	nodes    map[int]*Node
}

func (m *model) run(choices choices, details map[int]Obstacle) *run {
	r := &run{
		//nolint:gosec // a seeded generator makes rehearsals repeatable
		m: m, choices: choices, random: rand.New(rand.NewPCG(choices.seed, 0)), now: m.situation(choices),
		log: log{evicted: make([]bool, len(m.pods)), lost: map[int]bool{}, dark: map[int][]string{}},
	}
	r.scheduler, r.workloads, r.beyond = &scheduler{r: r}, &workloads{r},
		&beyond{r: r, details: details, removed: map[int]bool{}, broken: map[int]bool{}}
	r.pools = slices.Clone(m.input.Order.Pools)
	for i := range r.pools {
		pool := &r.pools[i]
		if choices.single {
			pool.MaxUnavailable = min(1, pool.MaxUnavailable)
		}
		if choices.settles && len(pool.Updating) > 0 { // which return, and are drained then
			pool.Nodes = pool.Later
			pool.Unavailable = slices.DeleteFunc(slices.Clone(pool.Unavailable),
				func(node string) bool { return slices.Contains(pool.Updating, node) })
		}
		if choices.shuffled && pool.Unordered {
			pool.Nodes = slices.Clone(pool.Nodes)
			r.random.Shuffle(len(pool.Nodes), func(i, j int) { pool.Nodes[i], pool.Nodes[j] = pool.Nodes[j], pool.Nodes[i] })
		}
		r.log.pools = append(r.log.pools, poolLog{started: map[string]bool{}, nodes: map[int]*Node{}})
	}
	for at := range r.now.live {
		if r.now.live[at].why != "" && !r.workloads.ignores(at) {
			r.now.live[at].since = len(r.scheduler.pending)
			r.scheduler.pending = append(r.scheduler.pending, int32(at))
		}
	}
	r.drainAll()
	r.beyond.note()
	r.beyond.goOn()
	return r
}

// drainAll drains the pools until nothing changes.
func (r *run) drainAll() {
	for step := 0; step <= r.m.bound(); step++ {
		changed := r.cordon(step)
		for rounds := 0; rounds <= r.m.bound() && r.drainOnce(); rounds++ {
			changed = true
		}
		if r.finish() {
			changed = true
		}
		if !changed {
			return
		}
	}
}

// bound is a limit of the steps and rounds of a rehearsal that none of them needs: each step
// returns a node, and each round moves a pod that has not been moved in this step.
func (m *model) bound() int { return len(m.pods) + len(m.input.Cluster.Nodes) + 1 }

func (r *run) cordon(step int) bool {
	changed := false
	for i := range r.pools {
		pool, record := &r.pools[i], &r.log.pools[i]
		started := func(node string) bool { return record.started[node] }
		for _, name := range pool.Next(started, len(record.draining)) {
			record.started[name], changed = true, true
			node := r.m.cluster.Node(name)
			if node < 0 {
				continue
			}
			r.now.state.Cordon(node, true)
			record.draining = append(record.draining, node)
			record.nodes[node] = &Node{Name: name, Step: step}
		}
	}
	return changed
}

type evicting struct {
	record *poolLog
	node   int
	pod    int32
}

// since is when the pods are without a node that are evicted now: after all that are without one at first.
func (r *run) since() int { return len(r.m.pods) + r.round }

func (r *run) drained() []evicting {
	var all []evicting
	for i := range r.log.pools {
		record := &r.log.pools[i]
		for _, node := range record.draining {
			for _, at := range r.now.onNode[node] {
				all = append(all, evicting{record, node, at})
			}
		}
	}
	return all
}

// drainOnce evicts what can be evicted, and places what is without a node. It reports whether
// a pod has left its node or got one.
func (r *run) drainOnce() bool {
	r.round++
	r.evicting = true
	all := r.drained()
	if r.choices.shuffled {
		r.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	evicted := map[*Node]int{}
	for _, each := range all {
		if !r.evict(int(each.pod), each.node) {
			continue
		}
		node := each.record.nodes[each.node]
		evicted[node]++
		node.GraceSeconds = max(node.GraceSeconds, r.m.pods[each.pod].grace)
		if r.choices.shuffled && len(r.m.pods) <= smallCluster && r.random.IntN(2) == 0 {
			r.scheduler.place()
		}
	}
	// The next pods are tried while the old ones are ending.
	placed := len(r.ending) > 0 && r.scheduler.place()
	r.evicting = false
	r.end()
	for node, pods := range evicted {
		if node.Evicted > 0 {
			node.Waits++
			r.now.tried[r.m.cluster.Node(node.Name)] = !r.choices.hopeful
		}
		node.Evicted += pods
	}
	return r.scheduler.place() || placed || len(evicted) > 0
}

func (r *run) end() {
	for _, each := range r.ending {
		r.now.state.Gone(each.shape, each.node)
	}
	r.ending = r.ending[:0]
}

// shuffle changes the order of pods if the choices are shuffled.
func (r *run) shuffle(pods []int32) []int32 {
	if r.choices.shuffled {
		r.random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	}
	return pods
}

// evict evicts a pod, and reports whether it has left the node.
func (r *run) evict(at, node int) bool {
	if int(r.now.live[at].node) != node {
		return false // its controller has deleted it
	}
	answer := r.now.answer(at)
	switch answer.Outcome { //nolint:exhaustive // with other outcomes the pod stays
	case eviction.Evicted:
	case eviction.Unknown:
		if !r.choices.hopeful {
			return false
		}
	default:
		return false
	}
	if r.m.pods[at].owner.Behavior == owner.Migrates {
		return r.migrate(at, node)
	}
	r.log.evicted[at] = true
	if shape := r.now.shape(at); !r.m.pods[at].Ended || r.now.live[at].moved {
		r.now.state.End(shape, node)
		r.ending = append(r.ending, ending{shape, node})
	}
	r.leave(at, node)
	r.workloads.recreate(at)
	return true
}

// ending is a pod that is evicted and still excludes others.
type ending struct {
	shape *placement.Pod
	node  int
}

// leave takes a pod from its node, and records the groups that have no ready pod then.
func (r *run) leave(at, node int) {
	for _, group := range r.now.leave(at, node) {
		r.log.dark[group] = append(r.log.dark[group], r.m.cluster.Name(node))
	}
}

// migrate runs the pod on another node before it leaves its own.
func (r *run) migrate(at, node int) bool {
	target, _ := r.now.state.Find(r.now.shape(at), r.choices.preference, r.random)
	if target < 0 {
		r.now.live[at].why = "no node suits its migration"
		return false
	}
	r.leave(at, node)
	r.now.arrive(at, target, r.choices.settles)
	return true
}

// finish returns the nodes that are drained, and reports whether there is one. They are
// updated, and come back at the same time unless a pool is slow.
func (r *run) finish() bool {
	type ended struct{ pool, node int }
	var all []ended
	for i := range r.log.pools {
		for _, node := range r.log.pools[i].draining {
			if r.empty(node) {
				all = append(all, ended{i, node})
			}
		}
	}
	fast := slices.DeleteFunc(slices.Clone(all), func(e ended) bool { return e.pool == r.choices.slow })
	if len(fast) > 0 {
		all = fast
	}
	if r.choices.shuffled && len(all) > 1 && r.random.IntN(2) == 0 {
		one := r.random.IntN(len(all))
		all = all[one : one+1]
	}
	for _, e := range all {
		record := &r.log.pools[e.pool]
		record.draining = slices.DeleteFunc(record.draining, func(node int) bool { return node == e.node })
		record.nodes[e.node].Kept = len(r.now.onNode[e.node])
		record.done = append(record.done, *record.nodes[e.node])
		r.now.state.Cordon(e.node, false)
		r.log.delayed = append(r.log.delayed, r.delayed(e.node)...)
		r.now.resume(e.node, r.choices.settles)
	}
	if r.choices.instant {
		return len(all) > 0
	}
	return r.scheduler.place() || len(all) > 0
}

// delayed are the pods of a node that returns which had no other one because of their volumes.
func (r *run) delayed(node int) []Pending {
	var found []Pending
	for _, at := range r.scheduler.pending {
		pod, now := &r.m.pods[at], &r.now.live[at]
		if pod.node == node && now.node < 0 && now.far && r.now.state.Reject(r.now.shape(int(at)), node) == placement.None {
			found = append(found, Pending{Pod: r.m.reference(int(at)), Node: r.m.cluster.Name(node), Why: now.why})
		}
	}
	return found
}

// empty reports whether all pods but those that are kept have left a node.
func (r *run) empty(node int) bool {
	return !slices.ContainsFunc(r.now.onNode[node], func(at int32) bool { return r.now.answer(int(at)).Outcome != eviction.KeptOnNode })
}
