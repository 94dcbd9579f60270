package reference

import (
	"math"
)

// place tries to place a pod, in any order with others: the queue of the scheduler has the most
// important first, but not those that wait for the end of their back-off. It reports false if there is
// no node for it; it may have preempted others then.
func (r *run) place(at int) bool {
	p := &r.s.pods[at]
	if p.gone || p.node >= 0 {
		return true
	}
	node := r.choose(p)
	if node < 0 {
		r.preempt(at)
		return false
	}
	r.s.nominate(at, -1)
	r.s.put(at, node)
	r.add(start, at)
	r.wake(place) // topology spread may allow more nodes now
	return true
}

// choose is a node for a pod, or -1: of those that fit any, or the one with the best score.
func (r *run) choose(p *pod) int {
	s := r.s
	skews := s.skews(&s.m.templates[p.template])
	nodes := len(s.m.room)
	from := r.random.IntN(nodes)
	best, most := -1, math.MinInt
	for i := range nodes {
		node := (from + i) % nodes
		if !s.reaches(p, node) || !s.fits(p.template, node, skews) || !s.fitsNominated(p, node) {
			continue
		}
		if !r.scoring {
			return node
		}
		if score := s.score(p, node); score > most {
			best, most = node, score
		}
	}
	return best
}

// score prefers nodes with free resources and few pods of the same controller, as the default profile
// does on the whole.
func (s *state) score(p *pod, node int) int {
	const percent, sibling, counted = 100, 30, 2
	score := 0
	for at := 1; at <= counted; at++ { // processors and memory
		room := s.m.room[node][at]
		score += int(percent * (room - s.used[node*len(s.m.resources)+at]) / (counted * max(1, room)))
	}
	return score - sibling*int(s.present[p.template*len(s.m.room)+node])
}

// reaches reports whether a node can ever be that of a pod while it is as it is: no preemption helps
// against these filters.
func (s *state) reaches(p *pod, node int) bool {
	t := &s.m.templates[p.template]
	return t.selected[node] && t.tolerated[node] && (t.tolerant || !s.cordoned[node]) && (p.target < 0 || p.target == node)
}

// fits reports whether a node has room for a pod of a template beside its other pods.
func (s *state) fits(of, node int, skews []skew) bool {
	t, resources := &s.m.templates[of], len(s.m.resources)
	for at, requested := range t.requests {
		if requested > 0 && s.used[node*resources+at]+requested > s.m.room[node][at] {
			return false
		}
	}
	for _, other := range t.conflicts {
		if s.clashes(other, node) {
			return false
		}
	}
	for i := range skews {
		if !skews[i].allows(node) {
			return false
		}
	}
	return true
}

// clashes reports whether a pod of a template that must not be there is in the domain of a node.
func (s *state) clashes(other conflict, node int) bool {
	present := s.present[other.template*len(s.m.room):]
	if other.topology < 0 {
		return present[node] > 0
	}
	t := &s.m.topologies[other.topology]
	if t.domain[node] < 0 {
		return false
	}
	for _, member := range t.members[t.domain[node]] {
		if present[member] > 0 {
			return true
		}
	}
	return false
}

// skew is a constraint with the number of pods of each domain, and the least of them.
type skew struct {
	*constraint

	domain []int
	pods   []int
	least  int
}

func (s *skew) allows(node int) bool {
	domain := s.domain[node]
	if domain < 0 {
		return false
	}
	pods := s.pods[domain] - s.least
	if s.self {
		pods++
	}
	return pods <= s.skew
}

// skews counts for the constraints of a template the pods on the nodes that its selector selects, also
// on cordoned ones (kubernetes pkg/scheduler/framework/plugins/podtopologyspread).
func (s *state) skews(t *template) []skew {
	if len(t.spread) == 0 {
		return nil
	}
	found := make([]skew, 0, len(t.spread))
	for i := range t.spread {
		of := &t.spread[i]
		topology := &s.m.topologies[of.topology]
		added := skew{constraint: of, domain: topology.domain, least: math.MaxInt}
		for _, members := range topology.members {
			pods, counts := s.domain(t, of, members)
			added.pods = append(added.pods, pods)
			if counts {
				added.least = min(added.least, pods)
			}
		}
		found = append(found, added)
	}
	return found
}

// domain counts the pods of a constraint on nodes, and reports whether one of these counts.
func (s *state) domain(t *template, of *constraint, nodes []int) (pods int, counts bool) {
	for _, node := range nodes {
		if !t.selected[node] || !s.m.labelled(t, node) {
			continue
		}
		counts = true
		for _, template := range of.counted {
			pods += int(s.staying[template*len(s.m.room)+node])
		}
	}
	return pods, counts
}

// labelled reports whether a node has the labels of all constraints of a template.
func (m *model) labelled(t *template, node int) bool {
	for i := range t.spread {
		if m.topologies[t.spread[i].topology].domain[node] < 0 {
			return false
		}
	}
	return true
}
