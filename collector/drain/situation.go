package drain

import (
	"maps"
	"slices"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/quota"
)

// situation is where the pods are at a moment of a rehearsal, and what their budgets allow.
type situation struct {
	m       *model
	state   *placement.State
	budgets []eviction.Budget
	// scaled counts the pods of each budget by controller, as in the model.
	scaled []map[int]int
	quotas *quota.Use
	live   []live
	onNode [][]int32
	// returning are the pods that are created again on their own node once that is schedulable.
	returning []int32
	counts    counts
	// unplaced are the pods without a node at the end; nil before.
	unplaced []int
	// tried are the nodes whose drain did not end at once, so that the next try finds the pods that came meanwhile.
	tried map[int]bool
	// attaching are the pods on nodes that cannot have their volumes yet.
	attaching []int32
}

// counts are numbers of pods: active for each controller, failures (how many more may fail), and ready for each
// group, which are the Services and then the controllers.
type counts struct{ active, failures, ready []int }

type live struct {
	node int32
	// form is the position of the pod's spec: its own, or the spec of the pod that was created in its place.
	form int32
	// gone is true for a pod that nothing creates again.
	gone bool
	// moved is true for a replacement, healthy for a pod that its budgets count.
	moved, healthy bool
	// stays is true for a replacement that came to a node while it was unschedulable, which it
	// tolerates. A drain evicts the pods that the node had at first.
	stays bool
	// created is true once it exists, absent for a replacement whose creation has failed.
	created, absent bool
	// attached is true for a pod on a node that has its volumes.
	attached bool
	why      string // why it has no node
	// far is true while it has no node and another one would suit it but for its volumes.
	far   bool
	since int // its place among the pods that have been without one
}

// situation is the one at the start, with the choices of a rehearsal: one that settles takes pods that
// have just started for ready.
func (m *model) situation(of choices) *situation {
	s := &situation{
		m: m, state: m.cluster.State(), budgets: slices.Clone(m.budgets), quotas: m.quotas.Used(), live: make([]live, m.existing),
		onNode: make([][]int32, len(m.input.Cluster.Nodes)), tried: map[int]bool{},
		counts: counts{active: make([]int, len(m.controllers)), ready: make([]int, len(m.input.Services)+len(m.controllers))},
	}
	for _, present := range m.scaled {
		s.scaled = append(s.scaled, maps.Clone(present))
	}
	for i := range m.controllers {
		s.counts.failures = append(s.counts.failures, m.controllers[i].Failures)
	}
	for i := range m.existing {
		s.start(i, of)
	}
	return s
}

// position is the position of a pod or a node in a list, in four bytes: each rehearsal keeps them for every pod.
func position(at int) int32 { return int32(at) } //nolint:gosec // a snapshot has far fewer than 2^31 objects of a resource

// start puts a pod where it is at first.
func (s *situation) start(at int, of choices) {
	p := &s.m.pods[at]
	s.live[at] = live{node: position(p.node), form: position(at), created: true, healthy: p.Ready && !p.Terminating}
	if p.starting && of.settles && p.node >= 0 {
		s.live[at].healthy = true
		for _, budget := range p.budgets {
			s.budgets[budget].Recover()
		}
	}
	if p.controller >= 0 && !p.Ended && !p.Terminating {
		s.counts.active[p.controller]++
	}
	switch {
	case p.absent:
		s.live[at].created, s.live[at].absent, s.live[at].why = false, true, "it does not exist now"
		return
	case p.node < 0 && (p.Ended || p.Terminating || s.m.input.Cluster.Pods[at].Spec.NodeName != ""):
		s.live[at].gone = true
		return
	case p.node < 0:
		s.live[at].why = "it has no node now"
		return
	}
	s.onNode[p.node] = append(s.onNode[p.node], position(at))
	if !p.Ended {
		s.state.Add(&s.m.cluster.Pods[at], p.node)
		s.live[at].attached = s.state.Volumes.Attach(&s.m.cluster.Pods[at], p.node)
	}
	if s.live[at].healthy {
		for _, group := range p.groups {
			s.counts.ready[group]++
		}
	}
}

// answer is the answer to the eviction of a pod, of admission, its operator and its budgets.
func (s *situation) answer(at int) eviction.Answer {
	p := &s.m.pods[at]
	now := p.Pod
	now.Ready = s.live[at].healthy
	if s.live[at].moved {
		now = eviction.Pod{Ready: s.live[at].healthy, Unstarted: p.Unstarted && p.node >= 0 && !s.live[at].healthy, Kept: p.Kept}
	}
	switch {
	case now.Kept != "", s.live[at].stays && !s.tried[int(s.live[at].node)]:
		return eviction.Answer{Outcome: eviction.KeptOnNode}
	case s.live[at].stays:
		// The next try evicts it, and ends without the one that comes then.
		if answer := s.operated(p, eviction.Of(now, s.budgetsOf(at))); answer.Outcome != eviction.Evicted {
			return answer
		}
		return eviction.Answer{Outcome: eviction.KeptOnNode}
	}
	if p.stuck != "" && !s.live[at].moved {
		return eviction.Answer{Outcome: eviction.WaitsFor, Cause: Terminating}
	}
	if p.admission.Outcome != eviction.Evicted {
		return eviction.Answer{Outcome: p.admission.Outcome, Cause: Admission}
	}
	answer := s.operated(p, eviction.Of(now, s.budgetsOf(at)))
	if answer.Outcome == eviction.Evicted && s.m.pods[s.live[at].form].finalizer != "" {
		return eviction.Answer{Outcome: eviction.Unknown, Cause: Terminating}
	}
	return answer
}

func (s *situation) budgetsOf(at int) []*eviction.Budget {
	budgets := make([]*eviction.Budget, 0, 1)
	for _, budget := range s.m.pods[s.live[at].form].budgets {
		budgets = append(budgets, &s.budgets[budget])
	}
	return budgets
}

// Causes of outcomes that the API server does not know.
const (
	// Terminating is a pod whose deletion does not end.
	Terminating eviction.Cause = "Terminating"
	// Admission is a webhook or a policy that refuses the eviction, or may.
	Admission eviction.Cause = "Admission"
	// Operator is an operator that moves its pods by rules of its own.
	Operator eviction.Cause = "Operator"
)

func (s *situation) operated(p *pod, answer eviction.Answer) eviction.Answer {
	refused := answer.Outcome == eviction.Never || answer.Outcome == eviction.WaitsFor
	switch p.owner.Behavior {
	case owner.Stays:
		return eviction.Answer{Outcome: eviction.Never, Cause: Operator}
	case owner.Holds:
		if refused {
			return eviction.Answer{Outcome: eviction.Never, Cause: Operator}
		}
	case owner.Moves, owner.Migrates:
		if answer.Cause != eviction.SeveralBudgets {
			return eviction.Answer{Outcome: eviction.Evicted, Cause: Operator}
		}
	case owner.Adjusts, owner.Stops:
		if refused {
			return eviction.Answer{Outcome: eviction.Unknown, Cause: Operator}
		}
	case owner.Returns:
		// Its budget decides, which expects no pod of a node that is not schedulable now.
		if answer.Cause == eviction.RequiresAll {
			return eviction.Answer{Outcome: eviction.WaitsFor, Cause: eviction.TooFewHealthy}
		}
	case owner.None:
		// Another operator may move its pods as well.
		if refused && len(p.budgets) == 1 && (s.m.custom(p) || s.m.owned[p.budgets[0]]) {
			return eviction.Answer{Outcome: eviction.Unknown, Cause: Operator}
		}
	}
	return answer
}

func (s *situation) shape(at int) *placement.Pod { return &s.m.cluster.Pods[s.live[at].form] }

// leave takes a pod from its node, budgets and groups, and returns the groups that it leaves without a ready pod.
func (s *situation) leave(at, node int) []int {
	s.onNode[node] = slices.DeleteFunc(s.onNode[node], func(other int32) bool { return int(other) == at })
	if !s.m.pods[at].Ended || s.live[at].moved {
		s.state.Remove(s.shape(at), node)
	}
	if s.live[at].attached {
		s.state.Volumes.Detach(s.shape(at))
	}
	s.live[at].node, s.live[at].attached = -1, false
	defer s.attach()
	if !s.live[at].healthy {
		return nil
	}
	s.live[at].healthy = false
	var dark []int
	p := &s.m.pods[s.live[at].form]
	for _, budget := range p.budgets {
		s.budgets[budget].Evict()
	}
	for _, group := range p.groups {
		if s.counts.ready[group]--; s.counts.ready[group] == 0 {
			dark = append(dark, group)
		}
	}
	return dark
}

// arrive puts a pod on a node. A replacement is ready if the pod was.
func (s *situation) arrive(at, node int, settles bool) {
	s.state.Add(s.shape(at), node)
	s.onNode[node] = append(s.onNode[node], position(at))
	l := &s.live[at]
	l.node, l.moved, l.stays, l.why = position(node), true, s.state.Cordoned(node), ""
	l.attached = s.state.Volumes.Attach(s.shape(at), node)
	switch ready := s.m.pods[at].becomesReady(settles, int(l.form) != at); {
	case !ready:
	case l.attached:
		s.recover(at)
	default:
		s.attaching = append(s.attaching, position(at))
	}
}

// recover has a pod be ready.
func (s *situation) recover(at int) {
	s.live[at].healthy = true
	p := &s.m.pods[s.live[at].form]
	for _, budget := range p.budgets {
		s.budgets[budget].Recover()
	}
	for _, group := range p.groups {
		s.counts.ready[group]++
	}
}

// attach has the pods be ready whose volumes are free now.
func (s *situation) attach() {
	s.attaching = slices.DeleteFunc(s.attaching, func(at int32) bool {
		l := &s.live[at]
		if l.node >= 0 && s.state.Volumes.Attach(s.shape(int(at)), int(l.node)) {
			l.attached = true
			s.recover(int(at))
		}
		return l.node < 0 || l.attached
	})
}

// resume makes the pods again that return to a node.
func (s *situation) resume(node int, settles bool) {
	s.returning = slices.DeleteFunc(s.returning, func(at int32) bool {
		if s.m.pods[at].node != node {
			return false
		}
		s.arrive(int(at), node, settles)
		return true
	})
}

// becomesReady reports whether the replacement of a pod is taken for one that gets ready: if the
// pod is ready, or was never seen running. One that started a moment ago may, and one of another template.
func (p *pod) becomesReady(settles, other bool) bool {
	return p.Ready || p.Terminating || p.Ended || p.node < 0 || settles && (p.Unstarted || p.starting || other)
}
