package reference

import (
	"maps"
	"slices"
)

// state is a cluster at a moment.
type state struct {
	m    *model
	pods []pod
	// existing are the pods of each template that are not gone.
	existing [][]int
	// used is by node and resource, present and staying count the pods by template and node: all of
	// them, and those that are not being deleted. onNode are the pods of each node.
	used             []int64
	present, staying []int32
	onNode           [][]int
	// cordoned and draining are by node, started and busy by pool.
	cordoned, draining []bool
	started, busy      []int
	budgets            []budget
	// limited is true from when the quotas exist.
	limited bool
	starts  int
	// holders are the nodes of the volumes that one node has at a time, by claim.
	holders map[string]int
	// nominees are the pods that are nominated for a node.
	nominees []int
}

// pod is one pod. Its position in state.pods is never that of another.
type pod struct {
	template, controller int // controller is -1 for a pod without one
	// number is the ordinal of a pod of a StatefulSet, and distinguishes others in their names.
	number int
	name   string
	// target is the node of a pod of a DaemonSet, and nominated that of one that preempts others; -1
	// for none.
	target, nominated int
	// node is -1 for a pod without one.
	node int
	// running is true in phase Running; leaving for a pod that is being deleted, preempted if the
	// scheduler did; gone for one that does not exist any more.
	running, ready, leaving, preempted, gone bool
	// since is when it has started to run, as the number of starts before.
	since int
}

// budget is the status of a budget.
type budget struct {
	allowed, healthy, desired, expected int32
	disrupted                           []string
	// failure is why the controller cannot compute it.
	failure string
}

func (m *model) empty() *state {
	nodes, templates := len(m.room), len(m.templates)
	return &state{
		m: m, existing: make([][]int, templates), used: make([]int64, nodes*len(m.resources)),
		present: make([]int32, nodes*templates), staying: make([]int32, nodes*templates), onNode: make([][]int, nodes),
		cordoned: make([]bool, nodes), draining: make([]bool, nodes), started: make([]int, len(m.pools)), busy: make([]int, len(m.pools)),
		budgets: make([]budget, len(m.budgets)), holders: map[string]int{},
	}
}

func (s *state) clone() *state {
	c := *s
	c.pods, c.used, c.present, c.staying = slices.Clone(s.pods), slices.Clone(s.used), slices.Clone(s.present), slices.Clone(s.staying)
	c.cordoned, c.draining, c.started, c.busy = slices.Clone(s.cordoned), slices.Clone(s.draining), slices.Clone(s.started),
		slices.Clone(s.busy)
	c.nominees, c.holders = slices.Clone(s.nominees), maps.Clone(s.holders)
	c.budgets, c.existing, c.onNode = slices.Clone(s.budgets), cloneAll(s.existing), cloneAll(s.onNode)
	for i := range c.budgets {
		c.budgets[i].disrupted = slices.Clone(c.budgets[i].disrupted)
	}
	return &c
}

func cloneAll(lists [][]int) [][]int {
	cloned := make([][]int, len(lists))
	for i := range lists {
		cloned[i] = slices.Clone(lists[i])
	}
	return cloned
}

// occupy adds a pod to the numbers of a node, or takes it away where by is -1.
func (s *state) occupy(of *pod, node int, by int32) {
	for at, requested := range s.m.templates[of.template].requests {
		s.used[node*len(s.m.resources)+at] += int64(by) * requested
	}
	s.present[of.template*len(s.m.room)+node] += by
	if !of.leaving {
		s.staying[of.template*len(s.m.room)+node] += by
	}
}

// put puts a pod on a node.
func (s *state) put(at, node int) {
	s.pods[at].node = node
	s.occupy(&s.pods[at], node, 1)
	s.onNode[node] = append(s.onNode[node], at)
}

// drained reports whether a node has no pod that a drain evicts: it leaves those of DaemonSets.
func (s *state) drained(node int) bool {
	return !slices.ContainsFunc(s.onNode[node], func(at int) bool { return !s.ofDaemonSet(&s.pods[at]) })
}

func (s *state) ofDaemonSet(of *pod) bool {
	return of.controller >= 0 && s.m.controllers[of.controller].kind == daemonSet
}
