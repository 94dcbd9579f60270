package drain

import (
	"cmp"
	"math"
	"slices"

	"github.com/openshift/update-preflight/collector/drain/placement"
)

// maxPreempting bounds the nodes that are tried for a preemption.
const maxPreempting = 100

// preempt deletes pods of lower priority so that a pod gets their node, which it returns, or -1
// (kubernetes pkg/scheduler/framework/preemption, without the scores of extenders).
func (r *run) preempt(at int) int {
	type option struct {
		node    int
		victims []int32
	}
	var best *option
	tried := 0
	for node := range r.now.onNode {
		switch r.now.state.Reject(&r.m.cluster.Pods[at], node) { //nolint:exhaustive // a preemption helps against no other rejection
		case placement.Resources, placement.Ports, placement.PodAntiAffinity, placement.Spread:
		default:
			continue
		}
		if tried++; tried > maxPreempting {
			break
		}
		victims := r.victims(at, node)
		if len(victims) == 0 {
			continue
		}
		if best == nil || r.now.compareVictims(victims, best.victims) < 0 {
			best = &option{node, victims}
		}
	}
	if best == nil {
		return -1
	}
	for _, victim := range best.victims {
		r.log.preempted++
		r.leave(int(victim), best.node)
		r.recreate(int(victim))
	}
	return best.node
}

// victims are the pods of a node that have to go for a pod; none if that does not suffice. Those
// whose budgets forbid it, with a higher priority, and that started earlier stay first (kubernetes
// pkg/scheduler/util, MoreImportantPod); times have seconds.
func (r *run) victims(at, node int) []int32 {
	s, of := r.now, &r.m.cluster.Pods[at]
	var lower []int32
	for _, other := range s.onNode[node] {
		if s.m.cluster.Pods[other].Priority < of.Priority && (!s.m.pods[other].Ended || s.live[other].moved) {
			lower = append(lower, other)
			s.state.Remove(&s.m.cluster.Pods[other], node)
		}
	}
	fits := s.state.Reject(of, node) == placement.None
	slices.SortStableFunc(r.shuffle(lower), func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.violates(b), s.violates(a)), cmp.Compare(s.m.cluster.Pods[b].Priority, s.m.cluster.Pods[a].Priority),
			cmp.Compare(s.started(a), s.started(b)))
	})
	var victims []int32
	for _, other := range lower {
		s.state.Add(&s.m.cluster.Pods[other], node)
		if fits && s.state.Reject(of, node) != placement.None {
			s.state.Remove(&s.m.cluster.Pods[other], node)
			victims = append(victims, other)
		}
	}
	for _, other := range victims {
		s.state.Add(&s.m.cluster.Pods[other], node)
	}
	return victims
}

// started is when a pod started, in seconds; a replacement has started after all others.
func (s *situation) started(at int32) int64 {
	if s.live[at].moved {
		return math.MaxInt64
	}
	return s.m.pods[at].started
}

// violates is 1 if the deletion of a pod violates a budget, otherwise 0.
func (s *situation) violates(at int32) int {
	for _, budget := range s.m.pods[at].budgets {
		if s.budgets[budget].Allowed <= 0 {
			return 1
		}
	}
	return 0
}

// compareVictims prefers fewer violated budgets, lower priorities, fewer pods, and those of the
// highest priority that started later.
func (s *situation) compareVictims(a, b []int32) int {
	violated := func(victims []int32) (sum int) {
		for _, victim := range victims {
			sum += s.violates(victim)
		}
		return sum
	}
	highest := func(victims []int32) int32 {
		most := s.m.lowest
		for _, victim := range victims {
			most = max(most, s.m.cluster.Pods[victim].Priority)
		}
		return most
	}
	earliest := func(victims []int32) int64 {
		least := int64(math.MaxInt64)
		for _, victim := range victims {
			if s.m.cluster.Pods[victim].Priority == highest(victims) {
				least = min(least, s.started(victim))
			}
		}
		return least
	}
	return cmp.Or(cmp.Compare(violated(a), violated(b)), cmp.Compare(highest(a), highest(b)), cmp.Compare(len(a), len(b)), cmp.Compare(earliest(b), earliest(a)))
}
