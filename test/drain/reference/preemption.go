package reference

import (
	"cmp"
	"math"
	"slices"
)

func (s *state) priority(at int) int32 { return s.m.templates[s.pods[at].template].priority }

// nominate records the node for which a pod preempts others; -1 for none.
func (s *state) nominate(at, node int) {
	if s.pods[at].nominated = node; node >= 0 && !slices.Contains(s.nominees, at) {
		s.nominees = append(s.nominees, at)
	}
	if node < 0 {
		s.nominees = slices.DeleteFunc(s.nominees, func(other int) bool { return other == at })
	}
}

// fitsNominated reports whether a node also has room for a pod beside those that are nominated for it and
// at least as important (kubernetes pkg/scheduler/framework/runtime, RunFilterPluginsWithNominatedPods).
func (s *state) fitsNominated(p *pod, node int) bool {
	if len(s.nominees) == 0 {
		return true
	}
	var beside []int
	for _, at := range s.nominees {
		if other := &s.pods[at]; other != p && other.nominated == node && s.priority(at) >= s.m.templates[p.template].priority {
			beside = append(beside, at)
		}
	}
	s.occupyAll(beside, node, 1)
	fits := s.fits(p.template, node, s.skews(&s.m.templates[p.template]))
	s.occupyAll(beside, node, -1)
	return fits
}

// candidate is a node whose less important pods can be preempted.
type candidate struct {
	node, violations int
	victims          []int
}

// preempt deletes less important pods so that a pod fits on their node, unless it waits for such pods
// (kubernetes pkg/scheduler/framework/plugins/defaultpreemption).
func (r *run) preempt(at int) {
	s, nominated := r.s, r.s.pods[at].nominated
	if s.priority(at) <= s.m.lowest || (nominated >= 0 && s.awaits(at, nominated)) {
		return
	}
	best := r.candidate(at)
	if best == nil {
		return
	}
	for _, other := range slices.Clone(s.nominees) {
		if s.pods[other].nominated == best.node && s.priority(other) < s.priority(at) {
			s.nominate(other, -1)
		}
	}
	s.nominate(at, best.node)
	for _, victim := range best.victims {
		if !s.pods[victim].leaving {
			s.pods[victim].preempted = true
			r.leave(victim)
		}
	}
}

// candidate is the best node whose less important pods a pod can preempt; nil if there is none.
func (r *run) candidate(at int) *candidate {
	var best *candidate
	from := r.random.IntN(len(r.s.m.room))
	for i := range r.s.m.room {
		node := (from + i) % len(r.s.m.room)
		if !r.s.reaches(&r.s.pods[at], node) {
			continue
		}
		found := r.s.victims(at, node)
		if found != nil && (best == nil || r.s.compare(found, best) < 0) {
			best = found
		}
	}
	return best
}

// awaits reports whether a less important pod on a node is being preempted.
func (s *state) awaits(at, node int) bool {
	return slices.ContainsFunc(s.onNode[node], func(other int) bool {
		return s.pods[other].preempted && s.priority(other) < s.priority(at)
	})
}

// victims are the fewest pods of a node that have to go for a pod; nil if that does not suffice. Those
// whose budgets forbid it stay first, and the most important of the others.
func (s *state) victims(at, node int) *candidate {
	var potential []int
	for _, other := range s.onNode[node] {
		if s.priority(other) < s.priority(at) {
			potential = append(potential, other)
		}
	}
	if len(potential) == 0 {
		return nil
	}
	s.occupyAll(potential, node, -1)
	if !s.fitsNow(at, node) {
		s.occupyAll(potential, node, 1)
		return nil
	}
	slices.SortFunc(potential, s.important)
	violating, others := s.divide(potential)
	found := &candidate{node: node}
	for i, other := range slices.Concat(violating, others) {
		s.occupy(&s.pods[other], node, 1)
		if s.fitsNow(at, node) {
			continue
		}
		s.occupy(&s.pods[other], node, -1)
		if found.victims = append(found.victims, other); i < len(violating) {
			found.violations++
		}
	}
	s.occupyAll(found.victims, node, 1)
	return found
}

func (s *state) occupyAll(pods []int, node int, by int32) {
	for _, at := range pods {
		s.occupy(&s.pods[at], node, by)
	}
}

// fitsNow reports whether a node has room for a pod as it is now.
func (s *state) fitsNow(at, node int) bool {
	p := &s.pods[at]
	return s.fits(p.template, node, s.skews(&s.m.templates[p.template])) && s.fitsNominated(p, node)
}

// important orders pods by their priority and the time for which they run, the most important first.
func (s *state) important(a, b int) int {
	return cmp.Or(cmp.Compare(s.priority(b), s.priority(a)), cmp.Compare(s.runs(a), s.runs(b)))
}

// runs is since when a pod runs.
func (s *state) runs(at int) int {
	if !s.pods[at].running {
		return math.MaxInt
	}
	return s.pods[at].since
}

// divide divides pods into those that exceed what their budgets allow, if those before are deleted, and
// others.
func (s *state) divide(pods []int) (violating, others []int) {
	allowed := make([]int32, len(s.budgets))
	for i := range allowed {
		allowed[i] = s.budgets[i].allowed
	}
	for _, at := range pods {
		if s.violates(at, allowed) {
			violating = append(violating, at)
		} else {
			others = append(others, at)
		}
	}
	return violating, others
}

// violates takes a pod from what its budgets allow, up to the first that does not.
func (s *state) violates(at int, allowed []int32) bool {
	for _, budget := range s.m.templates[s.pods[at].template].budgets {
		if slices.Contains(s.budgets[budget].disrupted, s.pods[at].name) {
			continue
		}
		if allowed[budget]--; allowed[budget] < 0 {
			return true
		}
	}
	return false
}

// compare prefers the candidate with fewer violated budgets, less important and fewer victims, and
// then the one whose most important victims started later.
func (s *state) compare(a, b *candidate) int {
	rank := func(of *candidate) (highest int32, sum int64, earliest int) {
		highest, earliest = math.MinInt32, math.MaxInt
		for _, victim := range of.victims {
			highest = max(highest, s.priority(victim))
			sum += int64(s.priority(victim)) + math.MaxInt32 + 1
		}
		for _, victim := range of.victims {
			if s.priority(victim) == highest {
				earliest = min(earliest, s.runs(victim))
			}
		}
		return highest, sum, earliest
	}
	highestA, sumA, earliestA := rank(a)
	highestB, sumB, earliestB := rank(b)
	return cmp.Or(cmp.Compare(a.violations, b.violations), cmp.Compare(highestA, highestB), cmp.Compare(sumA, sumB),
		cmp.Compare(len(a.victims), len(b.victims)), cmp.Compare(earliestB, earliestA))
}
