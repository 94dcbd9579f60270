package drain

import (
	"cmp"
	"math"
	"slices"

	"github.com/openshift/update-preflight/collector/drain/placement"
)

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
		switch s.r.now.state.Reject(s.r.now.shape(at), node) { //nolint:exhaustive // a preemption helps against no other rejection
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

// compareVictims prefers fewer violated budgets, a lower highest priority, a lower sum of priorities,
// counted from below the lowest possible one, fewer pods, and those of the highest priority that started
// later.
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
