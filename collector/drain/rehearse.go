package drain

import (
	"cmp"
	"slices"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/placement"
)

const (
	// maxBehind bounds the pods without a node that are named for an obstacle.
	maxBehind = 10
	// maxSlow bounds the pools of which a rehearsal is made in which they are slow.
	maxSlow = 3
	// smallCluster is the number of pods up to which manyShuffled rehearsals are made, above it fewShuffled.
	smallCluster, manyShuffled, fewShuffled = 2000, 24, 4
)

// Rehearse drains the nodes of an update on paper.
func Rehearse(input Input) Rehearsal {
	m := modelOf(&input)
	all := choicesFor(len(input.Order.Pools), m.existing)
	runs, details := make([]*run, 0, len(all)), map[int]Obstacle{}
	for _, choices := range all {
		ended := m.run(choices, details)
		ended.now.state, ended.scheduler.machines = nil, nil
		runs = append(runs, ended)
	}
	return (&folding{m: m, runs: runs, details: details, single: m.single(runs[0].choices)}).rehearsal()
}

// single is the rehearsal that drains one node of each pool at a time; nil where all pools do.
func (m *model) single(like choices) *run {
	if !slices.ContainsFunc(m.input.Order.Pools, func(pool order.Pool) bool { return pool.MaxUnavailable > 1 && len(pool.Nodes) > 1 }) {
		return nil
	}
	like.single = true
	return m.run(like, map[int]Obstacle{})
}

// choicesFor lists the rehearsals, the most likely first; more for a small cluster, where one pod matters more.
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

// obstacles are the pods that a node keeps although its drain continues.
func (s *situation) obstacles(node int) []Obstacle {
	var found []Obstacle
	for _, at := range s.onNode[node] {
		if s.answer(int(at)).Outcome != eviction.KeptOnNode {
			found = append(found, s.obstacle(int(at), node))
		}
	}
	slices.SortFunc(found, func(a, b Obstacle) int { return compareReferences(a.Pod, b.Pod) })
	return found
}

// obstacle is a pod that its node keeps although its drain continues.
func (s *situation) obstacle(at, node int) Obstacle {
	answer := s.answer(at)
	if answer.Outcome == eviction.Evicted { // which waits for a node to migrate to
		answer.Outcome = eviction.WaitsFor
	}
	p := &s.m.pods[at]
	obstacle := Obstacle{Pod: s.m.reference(at), Node: s.m.cluster.Name(node), Outcome: answer.Outcome, Cause: answer.Cause, By: s.by(at, answer)}
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
	return obstacle
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
	for _, at := range s.waiting() {
		if slices.Contains(s.m.pods[at].budgets, budget) && len(found) < maxBehind {
			found = append(found, Pending{Pod: s.m.reference(at), Node: s.m.nodeOf(at), Why: s.live[at].why})
		}
	}
	return found
}

// waiting are the pods without a node, once a rehearsal has ended.
func (s *situation) waiting() []int {
	if s.unplaced == nil {
		s.unplaced = []int{}
		for at := range s.live {
			if s.live[at].node < 0 && !s.live[at].gone {
				s.unplaced = append(s.unplaced, at)
			}
		}
	}
	return s.unplaced
}
