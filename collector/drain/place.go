package drain

import (
	"cmp"
	"math"
	"slices"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/placement"
)

type scheduler struct {
	r *run
	// pending are the pods without a node.
	pending []int32
	// machines are the new ones, by what the cluster autoscaler can add, and expanded the pods on them.
	machines [][]*placement.State
	expanded map[int]Reference
}

// expand has the cluster autoscaler add a machine for a pod, and reports whether it can. The pods on it are not drained. Where
// pods of the same zone count, only a hopeful rehearsal takes a new node for one that suits.
func (s *scheduler) expand(at int) bool {
	shape := s.r.now.shape(at)
	if shape.Spread && !s.r.choices.hopeful {
		return false
	}
	if s.machines == nil {
		s.machines, s.expanded = make([][]*placement.State, len(s.r.m.input.Room)), map[int]Reference{}
	}
	for i := range s.r.m.input.Room {
		like := s.r.m.cluster.Node(s.r.m.input.Room[i].Node)
		if like < 0 || !s.add(shape, i, like) {
			continue
		}
		s.expanded[at] = s.r.m.input.Room[i].MachineSet
		l := &s.r.now.live[at]
		l.moved, l.gone, l.why = true, true, ""
		if s.r.m.pods[at].becomesReady(s.r.choices.settles, int(l.form) != at) {
			s.r.now.recover(at)
		}
		return true
	}
	return false
}

// add puts a pod on a new machine of a MachineSet that suits it, and reports whether there is one.
func (s *scheduler) add(shape *placement.Pod, set, like int) bool {
	room := &s.r.m.input.Room[set]
	fits := func(machine *placement.State) bool { return machine.Reject(shape, like) == placement.None }
	at := slices.IndexFunc(s.machines[set], fits)
	if at < 0 && len(s.machines[set]) < room.Machines {
		if added := s.machine(like); fits(added) {
			at, s.machines[set] = len(s.machines[set]), append(s.machines[set], added)
		}
	}
	if at < 0 || shape.Priority < room.Priority {
		return false
	}
	s.machines[set][at].Add(shape, like)
	return true
}

// machine is a new node like an existing one: it runs the pods of DaemonSets only, in a cluster without other pods.
func (s *scheduler) machine(like int) *placement.State {
	made := s.r.m.cluster.State()
	made.Cordon(like, false)
	for at := range s.r.m.existing {
		if p := &s.r.m.pods[at]; p.node == like && p.Kept == eviction.KeptDaemonSet && !p.Ended {
			made.Add(&s.r.m.cluster.Pods[at], like)
		}
	}
	return made
}

// place places the pods without a node, highest priority first, and the pods that their controllers can create
// now. Pods that are created only when the old ones are gone come after all pods that were evicted with them. It
// reports whether a pod got a node.
func (s *scheduler) place() bool {
	if len(s.pending) == 0 {
		return false
	}
	s.r.shuffle(s.pending)
	slices.SortStableFunc(s.pending, func(a, b int32) int { return s.r.choices.compare(&s.r.now.live[a], &s.r.now.live[b]) })
	existing, rest := s.create(s.pending)
	slices.SortStableFunc(existing, func(a, b int32) int {
		priority := cmp.Compare(s.r.now.shape(int(b)).Priority, s.r.now.shape(int(a)).Priority)
		if s.r.choices.newest {
			// The others are backing off: only those that were evicted with it come before one that is created late.
			return cmp.Or(priority, s.r.choices.compare(&s.r.now.live[a], &s.r.now.live[b]), cmp.Compare(s.arrivesLast(a), s.arrivesLast(b)))
		}
		return cmp.Or(cmp.Compare(s.arrivesLast(a), s.arrivesLast(b)), priority)
	})
	s.pending = nil
	placed, unplaced := s.placeInOrder(existing)
	// Preempted pods are pending now, too.
	s.pending = slices.Concat(s.pending, rest, unplaced)
	return placed
}

// create has the controllers create the pods that do not exist yet, and divides them by whether they exist then.
// Controllers do not know of each other: neither priorities nor the scheduler decide on what a quota admits.
func (s *scheduler) create(pending []int32) (existing, rest []int32) {
	for _, at := range pending {
		switch {
		case s.r.now.live[at].gone: // its Job has failed meanwhile
		case s.r.evicting && (s.arrivesLast(at) > 0 || s.backsOff(at)), !s.r.workloads.create(int(at)):
			rest = append(rest, at)
		default:
			existing = append(existing, at)
		}
	}
	return existing, rest
}

// arrivesLast is 1 for a pod that is created when the pods that were evicted at the same time have been
// placed, else 0.
func (s *scheduler) arrivesLast(at int32) int {
	controller := s.r.m.pods[at].controller
	if s.r.now.live[at].since == s.r.since() && controller >= 0 && s.r.m.controllers[controller].Late {
		return 1
	}
	return 0
}

// backsOff reports whether a pod is not tried yet while others are evicted: one that waited before the node
// returned, where the next drain begins at the same instant.
func (s *scheduler) backsOff(at int32) bool {
	return s.r.choices.instant && s.r.now.live[at].since < s.r.since()
}

// placeInOrder places pods in this order, and returns those that have no node.
func (s *scheduler) placeInOrder(waiting []int32) (placed bool, rest []int32) {
	failed := map[int]bool{} // controllers of which a pod found no node
	for _, at := range waiting {
		if s.r.now.live[at].gone {
			continue // its Job has failed meanwhile
		}
		controller, shape := s.r.m.pods[at].controller, s.r.now.shape(int(at))
		if s.r.m.pods[at].alike && failed[controller] && shape.Impossible == "" && shape.Unknown == "" {
			s.r.now.live[at].why = "as another pod of its controller"
			rest = append(rest, at)
			continue
		}
		if s.placeOne(int(at)) {
			placed = true
			clear(failed)
			continue
		}
		failed[controller] = true
		rest = append(rest, at)
	}
	return placed, rest
}

// compare orders pods by the time that they are without a node; half of the random orders put any of them first.
func (c choices) compare(a, b *live) int {
	since := cmp.Compare(a.since, b.since)
	switch {
	case c.shuffled && c.seed%2 == 0:
		return 0
	case c.newest:
		return -since
	}
	return since
}

func (s *scheduler) placeOne(at int) bool {
	of, l := s.r.now.shape(at), &s.r.now.live[at]
	if of.Impossible != "" {
		l.why = of.Impossible
		return false
	}
	if of.Unknown != "" && !s.r.choices.hopeful {
		l.why = of.Unknown
		return false
	}
	node, rejected := s.r.now.state.Find(of, s.r.choices.preference, s.r.random)
	if node < 0 && !of.Polite && of.Priority > s.r.m.lowest {
		node = s.preempt(at)
	}
	if node < 0 {
		l.why, l.far = rejected.String(), rejected[placement.Volume] > 0
		return s.expand(at)
	}
	s.r.now.arrive(at, node, s.r.choices.settles)
	return true
}

// maxPreempting bounds the nodes that are tried for a preemption.
const maxPreempting = 100

// victims are pods of a node that are deleted for a more important one.
type victims struct {
	node int
	pods []int32
	// violations counts those whose deletion violates a budget.
	violations int
}

// preempt deletes pods of lower priority so that a pod gets their node, which it returns, or -1
// (kubernetes pkg/scheduler/framework/preemption, without the scores of extenders). Of nodes that are equal
// it takes any, as the scheduler does, which tries them from a random one on.
func (s *scheduler) preempt(at int) int {
	var best *victims
	tried, from := 0, s.r.random.IntN(len(s.r.now.onNode))
	for i := range s.r.now.onNode {
		node := (from + i) % len(s.r.now.onNode)
		switch s.r.now.state.Reject(s.r.now.shape(at), node) { //nolint:exhaustive // preemption cannot fix other rejections
		case placement.Resources, placement.Ports, placement.Exclusive, placement.PodAntiAffinity, placement.Spread:
		default:
			continue
		}
		if tried++; tried > maxPreempting {
			break
		}
		found := s.victims(at, node)
		if len(found.pods) == 0 {
			continue
		}
		if best == nil || s.compareVictims(found, *best) < 0 {
			best = &found
		}
	}
	if best == nil {
		return -1
	}
	for _, victim := range best.pods {
		s.r.log.preempted++
		s.r.leave(int(victim), best.node)
		s.r.workloads.recreate(int(victim))
	}
	return best.node
}

// victims are the pods of a node that have to go for a pod; none if that does not suffice. Those
// whose budgets forbid it, with a higher priority, and that started earlier stay first (kubernetes
// pkg/scheduler/util, MoreImportantPod); times have seconds.
func (s *scheduler) victims(at, node int) victims {
	now, of := s.r.now, s.r.now.shape(at)
	var lower []int32
	for _, other := range now.onNode[node] {
		if now.shape(int(other)).Priority < of.Priority && (!now.m.pods[other].Ended || now.live[other].moved) {
			lower = append(lower, other)
			now.state.Remove(now.shape(int(other)), node)
		}
	}
	fits := now.state.Reject(of, node) == placement.None
	slices.SortStableFunc(s.r.shuffle(lower), func(a, b int32) int {
		return cmp.Or(cmp.Compare(now.shape(int(b)).Priority, now.shape(int(a)).Priority), cmp.Compare(s.started(a), s.started(b)))
	})
	violating, others := s.divide(lower)
	found := victims{node: node}
	for i, other := range slices.Concat(violating, others) {
		now.state.Add(now.shape(int(other)), node)
		if fits && now.state.Reject(of, node) != placement.None {
			now.state.Remove(now.shape(int(other)), node)
			found.pods = append(found.pods, other)
			if i < len(violating) {
				found.violations++
			}
		}
	}
	for _, other := range found.pods {
		now.state.Add(now.shape(int(other)), node)
	}
	return found
}

// started is when a pod started, in seconds; a replacement has started after all others.
func (s *scheduler) started(at int32) int64 {
	if s.r.now.live[at].moved {
		return math.MaxInt64
	}
	return s.r.m.pods[at].started
}

// divide returns the pods whose deletion violates a budget, if those before are deleted too, and the
// others (kubernetes pkg/scheduler/framework/preemption, FilterVictimsWithPDBViolation).
func (s *scheduler) divide(pods []int32) (violating, others []int32) {
	taken := map[int]int32{} // by budget
	for _, at := range pods {
		exceeds := false
		for _, budget := range s.r.m.pods[s.r.now.live[at].form].budgets {
			taken[budget]++
			if exceeds = taken[budget] > s.r.now.budgets[budget].Allowed; exceeds {
				break
			}
		}
		if exceeds {
			violating = append(violating, at)
		} else {
			others = append(others, at)
		}
	}
	return violating, others
}

// compareVictims prefers fewer violated budgets, a lower highest priority, a lower sum of priorities, counted from
// below the lowest possible one, fewer pods, and then highest-priority pods that started later.
func (s *scheduler) compareVictims(a, b victims) int {
	highest := func(of victims) int32 {
		most := s.r.m.lowest
		for _, victim := range of.pods {
			most = max(most, s.r.now.shape(int(victim)).Priority)
		}
		return most
	}
	sum := func(of victims) (sum int64) {
		for _, victim := range of.pods {
			sum += int64(s.r.now.shape(int(victim)).Priority) + math.MaxInt32 + 1
		}
		return sum
	}
	earliest := func(of victims) int64 {
		least := int64(math.MaxInt64)
		for _, victim := range of.pods {
			if s.r.now.shape(int(victim)).Priority == highest(of) {
				least = min(least, s.started(victim))
			}
		}
		return least
	}
	return cmp.Or(cmp.Compare(a.violations, b.violations), cmp.Compare(highest(a), highest(b)), cmp.Compare(sum(a), sum(b)),
		cmp.Compare(len(a.pods), len(b.pods)), cmp.Compare(earliest(b), earliest(a)))
}
