package placement

import (
	"slices"
)

// State is an occupation of the nodes. It is used by one goroutine at a time.
type State struct {
	c    *Cluster
	used [][]int64
	// free is the share of each node that is free, in percent.
	free []int64
	// cordoned is by node.
	cordoned []bool
	ports    [][]port
	// matching and holding count, for each term and domain, the pods that it selects and
	// those that have it as anti-affinity; total those that it selects.
	matching, holding [][]int32
	total             []int32
	// counted is by term of topology spread and node, siblings by owner and node.
	counted, siblings [][]int16
	// exclusive counts the pods of each claim that one pod uses at a time.
	exclusive []int32
	// Volumes tracks which node has which volume.
	Volumes Volumes
}

// State returns the nodes without pods. Nodes are schedulable as in their spec.
func (c *Cluster) State() *State {
	s := &State{
		c: c, used: make([][]int64, len(c.nodes)), free: make([]int64, len(c.nodes)), cordoned: make([]bool, len(c.nodes)),
		ports:    make([][]port, len(c.nodes)),
		matching: make([][]int32, len(c.terms)), holding: make([][]int32, len(c.terms)), total: make([]int32, len(c.terms)),
		counted: make([][]int16, len(c.spreads)), siblings: make([][]int16, c.owners), exclusive: make([]int32, c.exclusive),
		Volumes: Volumes{attached: make([]map[int32]int32, len(c.nodes)), holders: make([]holder, c.volumes)},
	}
	for i := range c.nodes {
		s.used[i], s.cordoned[i] = make([]int64, len(c.resources.names)), c.nodes[i].Spec.Unschedulable
		s.free[i] = s.share(i)
	}
	for i, term := range c.terms {
		s.matching[i], s.holding[i] = make([]int32, term.topology.domains), make([]int32, term.topology.domains)
	}
	for i := range s.counted {
		s.counted[i] = make([]int16, len(c.nodes))
	}
	for i := range s.siblings {
		s.siblings[i] = make([]int16, len(c.nodes))
	}
	return s
}

// Cordon makes a node unschedulable, or schedulable again.
func (s *State) Cordon(node int, cordoned bool) { s.cordoned[node] = cordoned }

// Cordoned reports whether a node is unschedulable.
func (s *State) Cordoned(node int) bool { return s.cordoned[node] }

// Add puts a pod on a node.
func (s *State) Add(pod *Pod, node int) {
	s.change(pod, node, 1)
	s.ports[node] = append(s.ports[node], pod.ports...)
}

// Remove takes a pod from a node.
func (s *State) Remove(pod *Pod, node int) {
	s.change(pod, node, -1)
	for _, used := range pod.ports {
		if at := slices.Index(s.ports[node], used); at >= 0 {
			s.ports[node] = slices.Delete(s.ports[node], at, at+1)
		}
	}
}

func (s *State) change(pod *Pod, node int, by int16) {
	for _, request := range pod.requests {
		s.used[node][request.resource] += int64(by) * request.amount
	}
	s.free[node] = s.share(node)
	s.Volumes.count(pod, node, int32(by), s.used[node])
	for _, at := range pod.counted {
		s.counted[at][node] += by
	}
	if pod.owner >= 0 {
		s.siblings[pod.owner][node] += by
	}
	s.constrain(pod, node, by)
}

// End has a pod that was removed still exclude others, as one that is ending: the scheduler counts it for
// affinity, anti-affinity and claims, and not for topology spread. Gone ends that.
func (s *State) End(pod *Pod, node int) { s.constrain(pod, node, 1) }

// Gone ends what End began.
func (s *State) Gone(pod *Pod, node int) { s.constrain(pod, node, -1) }

func (s *State) constrain(pod *Pod, node int, by int16) {
	for _, at := range pod.matched {
		s.total[at] += int32(by)
		if domain := s.c.terms[at].topology.of[node]; domain >= 0 {
			s.matching[at][domain] += int32(by)
		}
	}
	for _, at := range pod.anti {
		if domain := s.c.terms[at].topology.of[node]; domain >= 0 {
			s.holding[at][domain] += int32(by)
		}
	}
	for _, at := range pod.exclusive {
		s.exclusive[at] += int32(by)
	}
}

// Reject is why a node is not suitable for a pod; None if it is.
func (s *State) Reject(pod *Pod, node int) Rejection {
	pod.class.evaluate(s.c.nodes)
	return s.reject(pod, node, s.skews(pod))
}

func (s *State) reject(pod *Pod, node int, skews []skew) Rejection {
	class := pod.class
	switch {
	case s.cordoned[node] && !class.cordoned:
		return Unschedulable
	case !class.selected[node]:
		return Affinity
	case !class.tolerated[node]:
		return Taint
	}
	used, room := s.used[node], s.c.room[node]
	exceeds := func(request request) bool { return used[request.resource] > room[request.resource]-request.amount }
	if slices.ContainsFunc(pod.requests, exceeds) || len(pod.attached) > 0 && s.Volumes.exceed(pod, node, used, room) {
		return Resources
	}
	if slices.ContainsFunc(pod.ports, func(wanted port) bool { return slices.ContainsFunc(s.ports[node], wanted.clashes) }) {
		return Ports
	}
	if slices.ContainsFunc(pod.exclusive, func(claim int32) bool { return s.exclusive[claim] > 0 }) {
		return Exclusive
	}
	for _, reaches := range pod.volumes {
		if !reaches(&s.c.nodes[node]) {
			return Volume
		}
	}
	if why := s.rejectPods(pod, node); why != None {
		return why
	}
	for i := range skews {
		if !skews[i].allows(node) {
			return Spread
		}
	}
	return None
}

// rejectPods tests affinity and anti-affinity, in both directions.
func (s *State) rejectPods(pod *Pod, node int) Rejection {
	for _, at := range pod.anti {
		if domain := s.c.terms[at].topology.of[node]; domain >= 0 && s.matching[at][domain] > 0 {
			return PodAntiAffinity
		}
	}
	for _, at := range pod.matched {
		if domain := s.c.terms[at].topology.of[node]; domain >= 0 && s.holding[at][domain] > 0 {
			return PodAntiAffinity
		}
	}
	if pod.affinity < 0 {
		return None
	}
	domain := s.c.terms[pod.affinity].topology.of[node]
	if domain < 0 || (s.matching[pod.affinity][domain] == 0 && (s.total[pod.affinity] > 0 || !pod.self)) {
		return PodAffinity
	}
	return None
}

// skew is a constraint of topology spread with the numbers of pods at present.
type skew struct {
	*constraint

	// pods is by domain, least the number in the domain with the fewest.
	pods  []int
	least int
}

func (s skew) allows(node int) bool {
	domain := s.topology.of[node]
	if domain < 0 {
		return false
	}
	added := s.pods[domain] - s.least
	if s.self {
		added++
	}
	return added <= s.skew
}

// skews counts the pods of the constraints of a pod (kubernetes
// pkg/scheduler/framework/plugins/podtopologyspread, calPreFilterState).
func (s *State) skews(pod *Pod) []skew {
	if len(pod.spread) == 0 {
		return nil
	}
	found := make([]skew, 0, len(pod.spread))
	for i := range pod.spread {
		of := &pod.spread[i]
		skew := skew{constraint: of, pods: make([]int, of.topology.domains)}
		known := make([]bool, of.topology.domains)
		domains := 0
		for node := range s.c.nodes {
			domain := of.topology.of[node]
			if domain < 0 || !pod.eligible(of, node, s.cordoned) {
				continue
			}
			if !known[domain] {
				known[domain], domains = true, domains+1
			}
			skew.pods[domain] += int(s.counted[of.term][node])
		}
		skew.least = fewest(skew.pods, known)
		if domains < of.domains {
			skew.least = 0
		}
		found = append(found, skew)
	}
	return found
}

// eligible reports whether a constraint counts a node, of which some are cordoned.
func (pod *Pod) eligible(of *constraint, node int, cordoned []bool) bool {
	if !of.everywhere && !pod.class.selected[node] {
		return false
	}
	if of.tolerated && (!pod.class.tolerated[node] || (cordoned[node] && !pod.class.cordoned)) {
		return false
	}
	for i := range pod.spread {
		if pod.spread[i].topology.of[node] < 0 {
			return false
		}
	}
	return true
}

func fewest(pods []int, known []bool) int {
	least := unlimited
	for domain, number := range pods {
		if known[domain] {
			least = min(least, number)
		}
	}
	if least == unlimited {
		return 0
	}
	return least
}

// Volumes tracks which node has which attached volume.
type Volumes struct {
	// attached counts the pods of each volume by node, and holders has the node of each volume that one node has.
	attached []map[int32]int32
	holders  []holder
}

// holder is the node that has a volume, for that many pods.
type holder struct {
	node int
	pods int
}

// Attach makes a pod use its volumes on its node, and reports whether it can: a volume that only one node can have
// at a time may be on another node. The scheduler does not check this.
func (v *Volumes) Attach(pod *Pod, node int) bool {
	for _, each := range pod.attached {
		if of := v.holders[each.volume]; each.single && of.pods > 0 && of.node != node {
			return false
		}
	}
	for _, each := range pod.attached {
		v.holders[each.volume] = holder{node, v.holders[each.volume].pods + 1}
	}
	return true
}

// Detach ends what Attach began.
func (v *Volumes) Detach(pod *Pod) {
	for _, each := range pod.attached {
		v.holders[each.volume].pods--
	}
}

// count counts the volumes of a pod on its node, which has each once, in what is used of the node.
func (v *Volumes) count(pod *Pod, node int, by int32, used []int64) {
	for _, each := range pod.attached {
		if v.attached[node] == nil {
			v.attached[node] = map[int32]int32{}
		}
		before := v.attached[node][each.volume]
		v.attached[node][each.volume] = before + by
		if before == 0 || before+by == 0 {
			used[each.resource] += int64(by)
		}
	}
}

// exceed reports whether a node has no room for the volumes of a pod that it does not have yet.
func (v *Volumes) exceed(pod *Pod, node int, used, room []int64) bool {
	needed := map[int]int64{}
	for _, each := range pod.attached {
		if v.attached[node][each.volume] > 0 {
			continue
		}
		needed[each.resource]++
		if used[each.resource]+needed[each.resource] > room[each.resource] {
			return true
		}
	}
	return false
}
