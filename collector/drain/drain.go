// Package drain answers: what will an update evict, node by node, and does it come back?
//
// [Rehearse] simulates the drains of an update: it cordons the nodes in the order of [order.Order], evicts their
// pods under their budgets, places the recreated pods, and repeats this until nothing changes. It does so several
// times, with different choices where a controller or the scheduler has one; a result on which these rehearsals
// differ is unknown, never clear.
package drain

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

// Input is the state of a cluster.
type Input struct {
	// Order is which nodes are drained.
	Order order.Order
	// Cluster has the nodes, the pods and their volumes.
	Cluster placement.Input
	Budgets []policyv1.PodDisruptionBudget
	// Workloads create pods again.
	Workloads *recreation.Workloads
	Services  []corev1.Service
	// Owners is how operators move their pods.
	Owners *owner.Owners
	// DaemonSet reports whether a DaemonSet exists. Where nil, all exist.
	DaemonSet func(namespace, name string) bool
	// Admission returns the response of webhooks and policies to the eviction of a pod, and Creation their response to
	// the creation of one. If nil, all are admitted.
	Admission, Creation *reviewer.Reviewers
	// Room lists the MachineSets that the cluster autoscaler can grow.
	Room []Room
	// Addresses are the addresses that only some nodes can have.
	Addresses []Address
	Now       time.Time
}

// Address is an object with addresses for nodes.
type Address struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty for an object without one.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Nodes are the nodes that can have them.
	Nodes []string `json:"nodes"`
}

// Room is a MachineSet to which the cluster autoscaler can add machines for pods without a node.
type Room struct {
	MachineSet Reference
	// Node is a node of the MachineSet, like which the new ones are, and Machines how many can be added.
	Node     string
	Machines int
	// Priority is the least priority of the pods for which machines are added.
	Priority int32
}

// Outcome is how the drains of a pool end.
type Outcome string

// The outcomes.
const (
	// Clear is a pool whose nodes are all drained.
	Clear Outcome = "Clear"
	// Sticks is a pool with a node whose drain hangs.
	Sticks Outcome = "Sticks"
	// Blocked is a pool that drains no node, since too many of its nodes are unavailable.
	Blocked Outcome = "Blocked"
	// Undetermined is a pool whose outcome depends on unknown facts.
	Undetermined Outcome = "Unknown"
)

// Rehearsal is the simulated effect of an update on pods.
type Rehearsal struct {
	// Pools that are drained, in the order of Input.
	Pools []Pool `json:"pools,omitempty"`
	// Never are the pods on drained nodes that cannot be evicted unless an object changes, including pods that the
	// rehearsal does not reach because it stops at the first.
	Never []Obstacle `json:"never,omitempty"`
	// Behind are the pods that keep other nodes from being drained once the obstacles of Never, and those at which the
	// pools stick, are removed, as by an acceptance.
	Behind []Obstacle `json:"behind,omitempty"`
	// Pending are the pods that stay without a node after the update, or until the node on
	// which a pool sticks is drained.
	Pending []Pending `json:"pending,omitempty"`
	// Lost are the pods that are evicted and that nothing creates again.
	Lost []Lost `json:"lost,omitempty"`
	// Delayed are the pods that have no node until the one from which they are evicted is back, since others are
	// out of reach of their volumes.
	Delayed []Pending `json:"delayed,omitempty"`
	// Expanded are the pods that need a new machine, which the cluster autoscaler can add.
	Expanded []Expansion `json:"expanded,omitempty"`
	// Together are the workloads that only lose all their ready pods since several nodes are drained at the same time.
	Together []Together `json:"together,omitempty"`
	// Addresses are the addresses that only one node can have, and that node is drained.
	Addresses []Address `json:"addresses,omitempty"`
	// Interrupted are the Services that have no ready pod for a time.
	Interrupted []Interruption `json:"interrupted,omitempty"`
	// Graces are the evicted pods with long grace periods, the longest first.
	Graces []Grace `json:"graces,omitempty"`
	// Preempted is how many pods are deleted to make room for others.
	Preempted int `json:"preempted,omitempty"`
}

// Pool is how a pool is drained.
type Pool struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	// Why is why the outcome is Unknown or Blocked; empty for the others.
	Why string `json:"why,omitempty"`
	// Nodes that are drained, in order.
	Nodes []Node `json:"nodes,omitempty"`
	// Stuck are the nodes at which the pool sticks. Nodes that differ between rehearsals have Node.Uncertain.
	Stuck []Node `json:"stuck,omitempty"`
	// Single is true if the drains complete when the pool drains one node at a time.
	Single bool `json:"single,omitempty"`
	// Waiting counts the nodes that the pool does not come to.
	Waiting int `json:"waiting,omitempty"`
	// Unreached is the number of nodes that are not rehearsed, even without the obstacles.
	Unreached int `json:"unreached,omitempty"`
}

// Node is the drain of one node.
type Node struct {
	Name string `json:"name"`
	// Step counts the nodes that return at the same time, from 0 on.
	Step int `json:"step"`
	// Evicted and Kept count its pods.
	Evicted int `json:"evicted"`
	Kept    int `json:"kept"`
	// Waits counts how often the drain waits for a replacement to be ready.
	Waits int `json:"waits,omitempty"`
	// GraceSeconds is the longest grace period of a pod that is evicted from it, including pods that came from another
	// node.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// Obstacles are the pods that stay, sorted by name.
	Obstacles []Obstacle `json:"obstacles,omitempty"`
	// Uncertain is true if other choices of the scheduler lead to another result.
	Uncertain bool `json:"uncertain,omitempty"`
}

// Reference is a namespace and a name.
type Reference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (r Reference) String() string { return r.Namespace + "/" + r.Name }

// Obstacle is a pod that a drain cannot evict.
type Obstacle struct {
	Pod     Reference        `json:"pod"`
	Node    string           `json:"node"`
	Outcome eviction.Outcome `json:"outcome"`
	Cause   eviction.Cause   `json:"cause"`
	// Budgets are the PodDisruptionBudgets that refuse its eviction.
	Budgets []Reference `json:"budgets,omitempty"`
	// By is a clause: what rejects the eviction besides budgets, or what is unknown. For a pod whose deletion hangs it
	// names the cause, such as "its kubelet".
	By string `json:"by,omitempty"`
	// Reviewer is the name of the webhook, or of the binding of the policy, that refuses it or may.
	Reviewer string `json:"reviewer,omitempty"`
	// Controller is the name of the controller of the pod.
	Controller string `json:"controller,omitempty"`
	// Manager is the program that creates its only budget and restores it after a change, such as `Helm release
	// "shop"`; empty if it is unknown.
	Manager string `json:"manager,omitempty"`
	// Remedy is an instruction to change the settings of its operator; empty for other obstacles.
	Remedy string `json:"remedy,omitempty"`
	// Behind are the pods of the budget that are without a node, at most ten, and why.
	Behind []Pending `json:"behind,omitempty"`
}

// Pending is a pod without a node.
type Pending struct {
	Pod Reference `json:"pod"`
	// Missing is true for a pod that its controller wants and that does not exist now. Without a name of its own, it has
	// the name of its controller.
	Missing bool `json:"missing,omitempty"`
	// Node is that from which it is evicted; empty for a pod without a node now.
	Node string `json:"node,omitempty"`
	Why  string `json:"why,omitempty"`
	// Uncertain is true if it gets a node with other choices of the scheduler.
	Uncertain bool `json:"uncertain,omitempty"`
	// Behind is true if it only lacks a node once the obstacles at which the drains stop are removed.
	Behind bool `json:"behind,omitempty"`
}

// Expansion is a pod that has no node until the cluster autoscaler adds a machine.
type Expansion struct {
	Pod        Reference `json:"pod"`
	MachineSet Reference `json:"machineSet"`
}

// Together is a workload with several ready pods, none of which remains ready while the nodes are drained.
type Together struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Workload   Reference `json:"workload"`
	// Nodes whose drains leave no ready pod.
	Nodes    []string `json:"nodes,omitempty"`
	Replicas int      `json:"replicas"`
}

// Lost is a pod that nothing creates again.
type Lost struct {
	Pod  Reference `json:"pod"`
	Node string    `json:"node"`
	Why  string    `json:"why,omitempty"`
	// Uncertain is true if it is not lost with other choices of the scheduler.
	Uncertain bool `json:"uncertain,omitempty"`
	// Behind is true if it is only evicted once the obstacles at which the drains stop are removed.
	Behind bool `json:"behind,omitempty"`
}

// Interruption is a Service without a ready pod.
type Interruption struct {
	Service Reference `json:"service"`
	// Nodes whose drains leave no ready pod.
	Nodes []string `json:"nodes,omitempty"`
	// Replicas counts the ready pods before the update.
	Replicas int `json:"replicas"`
}

// Grace is a long time that a pod may take to end.
type Grace struct {
	Pod     Reference `json:"pod"`
	Node    string    `json:"node"`
	Seconds int64     `json:"seconds"`
}

// Period is the grace period, at most a year.
func (g Grace) Period() time.Duration { return period(g.Seconds) }

// Grace is the longest grace period of a pod that is evicted from the node, at most a year.
func (n *Node) Grace() time.Duration { return period(n.GraceSeconds) }

func period(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(maxGrace/time.Second))) * time.Second
}

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
		all = append(all, choices{
			preference: []placement.Preference{placement.Emptiest, placement.Any}[i%2], slow: -1, shuffled: true,
			hopeful: i%4 >= 2,
		})
	}
	for i := range all {
		all[i].settles = all[i].hopeful
	}
	all = append(all, choices{preference: placement.Emptiest, slow: -1, hopeful: true},
		choices{preference: placement.Emptiest, slow: -1, settles: true})
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
	obstacle := Obstacle{
		Pod: s.m.reference(at), Node: s.m.cluster.Name(node), Outcome: answer.Outcome, Cause: answer.Cause,
		By: s.by(at, answer),
	}
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
	switch answer.Cause { //nolint:exhaustive // Budgets explain the other causes
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
		return "the status of its budget has an earlier generation"
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
