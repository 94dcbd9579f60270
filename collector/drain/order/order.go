// Package order answers: which nodes does an update drain, and in which order?
//
// [Of] divides the nodes into pools, and [Pool.Next] is what a pool drains next, given what is
// drained already. The rules are from machine-config-operator (MCO) pkg/controller/node.
package order

import (
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
)

// nodePoolLabel names the NodePool of a node of a hosted cluster.
const nodePoolLabel = "hypershift.openshift.io/nodePool"

// Input of [Of].
type Input struct {
	Nodes []corev1.Node
	Pools []machineconfigurationv1.MachineConfigPool
	// NodePools of a hosted cluster that are updated; the nodes of others are not drained.
	// Where nil, it is not known which are updated, and the nodes of all are drained one at a time.
	NodePools []NodePool
	// Topology is status.controlPlaneTopology of the Infrastructure "cluster".
	Topology configv1.TopologyMode
	// AtTarget reports whether a node has the configuration of the target already. Where nil, none has.
	AtTarget func(*corev1.Node) bool
	// Last is the node of the machine-config-operator's pod, which is updated as the last of
	// its pool; empty where that is unknown.
	Last string
}

// Skip is why a node is not drained.
type Skip string

// The reasons.
const (
	// SingleReplica is a cluster with one node in its control plane: no node of it is drained
	// (machine-config-operator pkg/daemon/drain.go).
	SingleReplica Skip = "SingleReplica"
	// Paused is a node of a pool that is paused.
	Paused Skip = "Paused"
	// AtTarget is a node that has the configuration of the target.
	AtTarget Skip = "AtTarget"
	// NoPool is a node that no pool selects.
	NoPool Skip = "NoPool"
	// NotRequested is a node of a NodePool that is not updated.
	NotRequested Skip = "NotRequested"
	// OnDelete is a node of a NodePool that replaces a machine only when it is deleted.
	OnDelete Skip = "OnDelete"
	// NoDaemon is a node without the annotations of the machine-config-daemon.
	NoDaemon Skip = "NoDaemon"
	// SeveralPools is a node that several custom pools select: MCO reports an error.
	SeveralPools Skip = "SeveralPools"
	// Unavailable is a node that MCO does not update while it is as it is: cordoned, not
	// ready, or in the middle of a configuration.
	Unavailable Skip = "Unavailable"
)

// Skipped is a node that is not drained.
type Skipped struct {
	Node string `json:"node"`
	Pool string `json:"pool,omitempty"`
	Why  Skip   `json:"why"`
	// State is the reason of Unavailable.
	State Unavailability `json:"state,omitempty"`
}

// Pool is a pool of nodes that are drained.
type Pool struct {
	Name string
	// MaxUnavailable is how many of its nodes may be unavailable at the same time.
	MaxUnavailable int
	// Nodes that are drained, in order.
	Nodes []string
	// Unavailable are its nodes that are unavailable from the start and that MCO does not
	// update; they count against MaxUnavailable. Updating are those of them that return by themselves, since
	// they are being updated.
	Unavailable, Updating []string
	// Later are the nodes that are drained once those that are being updated have returned: all of Nodes and
	// Updating, in order; nil without Updating.
	Later []string
	// Unordered is true if the order of its nodes is not known: that of a NodePool.
	Unordered bool
	// Surge is how many nodes a NodePool adds before it drains one; none where it updates in place.
	Surge int
	// Timeout is after what time a NodePool deletes a node whose drain has not ended; 0 for never.
	Timeout time.Duration
	// last is the node that is deferred.
	last string
}

// Order is which nodes are drained.
type Order struct {
	// Pools with nodes, the control plane's first, then by name.
	Pools []Pool
	// Skipped are the nodes that are not drained, in the given order.
	Skipped []Skipped
}

// Of is which nodes an update of the operating system drains.
func Of(input Input) (Order, error) {
	pools, err := readPools(input.Pools)
	if err != nil {
		return Order{}, err
	}
	var order Order
	members := make([][]*corev1.Node, len(pools))
	hosted := map[string][]*corev1.Node{}
	for i := range input.Nodes {
		node := &input.Nodes[i]
		at, several := poolOf(node, pools)
		nodePool := node.Labels[nodePoolLabel]
		switch {
		case input.Topology == configv1.SingleReplicaTopologyMode:
			order.skip(node, "", SingleReplica, "")
		case at < 0 && nodePool != "" && input.Topology == configv1.ExternalTopologyMode:
			hosted[nodePool] = append(hosted[nodePool], node)
		case at < 0:
			order.skip(node, "", NoPool, "")
		case several:
			order.skip(node, pools[at].name, SeveralPools, "")
		case !managed(node):
			order.skip(node, pools[at].name, NoDaemon, "")
		default:
			members[at] = append(members[at], node)
		}
	}
	for i := range pools {
		if err := order.add(&pools[i], members[i], &input); err != nil {
			return Order{}, err
		}
	}
	for _, name := range sortedKeys(hosted) {
		if err := order.addNodePool(name, hosted[name], &input); err != nil {
			return Order{}, err
		}
	}
	return order, nil
}

func sortedKeys(of map[string][]*corev1.Node) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (o *Order) skip(node *corev1.Node, pool string, why Skip, state Unavailability) {
	o.Skipped = append(o.Skipped, Skipped{Node: node.Name, Pool: pool, Why: why, State: state})
}

func (o *Order) add(p *pool, nodes []*corev1.Node, input *Input) error {
	if len(nodes) == 0 {
		return nil
	}
	limit, err := p.limit(len(nodes))
	if err != nil {
		return err
	}
	added := Pool{Name: p.name, MaxUnavailable: limit, last: input.Last}
	sorted := slices.SortedFunc(slices.Values(nodes), compareZones)
	for _, node := range sorted {
		state := StateOf(node)
		switch {
		case p.paused:
			o.skip(node, p.name, Paused, "")
		case state != Available:
			added.Unavailable = append(added.Unavailable, node.Name)
			if state == Configuring {
				added.Updating, added.Later = append(added.Updating, node.Name), append(added.Later, node.Name)
			}
			o.skip(node, p.name, Unavailable, state)
		case input.AtTarget != nil && input.AtTarget(node):
			o.skip(node, p.name, AtTarget, "")
		default:
			added.Nodes, added.Later = append(added.Nodes, node.Name), append(added.Later, node.Name)
		}
	}
	if len(added.Updating) == 0 {
		added.Later = nil
	}
	if !p.paused {
		o.Pools = append(o.Pools, added)
	}
	return nil
}

// Blocked reports whether the pool drains no node at all, since as many nodes as may be
// unavailable are so before it starts, without those that are being updated. MCO reports no error then.
func (p *Pool) Blocked() bool {
	return len(p.Nodes) > 0 && len(p.Unavailable)-len(p.Updating) >= p.MaxUnavailable
}

// Waits reports whether the pool drains no node until one that is being updated returns.
func (p *Pool) Waits() bool {
	return len(p.Nodes) > 0 && !p.Blocked() && len(p.Unavailable) >= p.MaxUnavailable
}

// Next are the nodes that the pool drains next: those of Nodes for which started is false, as
// many as may be unavailable besides the pool's Unavailable and the busy ones, which are being
// drained or updated. The node of the machine-config-operator's pod is the last one of the pool.
func (p *Pool) Next(started func(node string) bool, busy int) []string {
	capacity := p.MaxUnavailable - len(p.Unavailable) - busy
	if capacity <= 0 {
		return nil
	}
	var candidates []string
	for _, name := range p.Nodes {
		if !started(name) {
			candidates = append(candidates, name)
		}
	}
	if at := slices.Index(candidates, p.last); at >= 0 && len(candidates) > 1 {
		candidates = slices.Delete(candidates, at, at+1)
	}
	return candidates[:min(capacity, len(candidates))]
}

// String is the pool with its limit, for messages.
func (p *Pool) String() string {
	return fmt.Sprintf("%s (maxUnavailable %d)", p.Name, p.MaxUnavailable)
}
