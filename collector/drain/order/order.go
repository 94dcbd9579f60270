// Package order answers: which nodes does an update drain, and in which order?
//
// [Of] divides the nodes into pools, and [Pool.Next] returns the nodes that a pool drains next, given the nodes
// that are drained already. The rules are from machine-config-operator (MCO) pkg/controller/node.
package order

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// nodePoolLabel names the NodePool of a node of a hosted cluster.
const nodePoolLabel = "hypershift.openshift.io/nodePool"

// Input of [Of].
type Input struct {
	Nodes []corev1.Node
	Pools []machineconfigurationv1.MachineConfigPool
	// NodePools are the updated NodePools of a hosted cluster; the nodes of others are not drained. If nil, the
	// updated ones are unknown, and the nodes of all are drained one at a time.
	NodePools []NodePool
	// Topology is status.controlPlaneTopology of the Infrastructure "cluster".
	Topology configv1.TopologyMode
	// AtTarget reports whether a node has the configuration of the target already. Where nil, none has.
	AtTarget func(*corev1.Node) bool
	// Last is the node of the machine-config-operator's pod, which is updated last in its pool; empty if unknown.
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
	// Unavailable are its nodes that are unavailable from the start and that MCO does not update; they count against
	// MaxUnavailable. Updating are the unavailable nodes that return by themselves, since they are being updated.
	Unavailable, Updating []string
	// Later are the nodes that are drained once the nodes that are being updated have returned: all of Nodes and
	// Updating, in order; nil without Updating.
	Later []string
	// Unordered is true if the order of its nodes is unknown, as in a NodePool.
	Unordered bool
	// Surge is how many nodes a NodePool adds before it drains one; 0 if it updates in place.
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

// Blocked reports whether the pool drains no node at all, because the maximum number of nodes is unavailable
// before it starts, not counting nodes that are being updated. MCO reports no error then.
func (p *Pool) Blocked() bool {
	return len(p.Nodes) > 0 && len(p.Unavailable)-len(p.Updating) >= p.MaxUnavailable
}

// Waits reports whether the pool drains no node until one that is being updated returns.
func (p *Pool) Waits() bool {
	return len(p.Nodes) > 0 && !p.Blocked() && len(p.Unavailable) >= p.MaxUnavailable
}

// Next returns the nodes that the pool drains next: the nodes for which started is false, as many as may be
// unavailable besides the pool's Unavailable and the busy ones, which are being drained or updated. The node of
// the machine-config-operator's pod is the last one of the pool.
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

type pool struct {
	name        string
	paused      bool
	unavailable *intstr.IntOrString
	selector    labels.Selector
}

// rank is the precedence of pools that select the same node: the control plane's, then
// custom pools, then worker, which selects their nodes too (machine-config-operator
// pkg/helpers, GetPrimaryPoolForNode).
func (p *pool) rank() int {
	switch p.name {
	case "master", arbiter:
		return 0
	case "worker":
		return 2
	}
	return 1
}

// arbiter is the pool whose nodes are updated one at a time, whatever its maxUnavailable.
const arbiter = "arbiter"

func readPools(found []machineconfigurationv1.MachineConfigPool) ([]pool, error) {
	pools := make([]pool, 0, len(found))
	for i := range found {
		selector, err := metav1.LabelSelectorAsSelector(found[i].Spec.NodeSelector)
		if err != nil {
			return nil, fmt.Errorf("the nodeSelector of MachineConfigPool %q is invalid: %w", found[i].Name, err)
		}
		pools = append(pools, pool{
			name: found[i].Name, paused: found[i].Spec.Paused, unavailable: found[i].Spec.MaxUnavailable,
			selector: selector,
		})
	}
	slices.SortFunc(pools, func(a, b pool) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.name, b.name))
	})
	return pools, nil
}

// poolOf is the position of the pool that updates a node, or -1. Where several custom pools
// select the node, none updates it, and custom is true.
func poolOf(node *corev1.Node, pools []pool) (at int, custom bool) {
	if node.Labels[corev1.LabelOSStable] == string(corev1.Windows) {
		return -1, false
	}
	at = -1
	for i := range pools {
		if pools[i].selector.Empty() || !pools[i].selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		if at >= 0 {
			return at, pools[at].rank() == 1 && pools[i].rank() == 1
		}
		at = i
	}
	return at, false
}

// limit is how many of that many nodes may be unavailable: one unless the pool has another
// number; a percentage is rounded down, and is at least one (machine-config-operator
// pkg/controller/node, maxUnavailable).
func (p *pool) limit(nodes int) (int, error) {
	if p.unavailable == nil || p.name == arbiter {
		return 1, nil
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(p.unavailable, nodes, false)
	if err != nil {
		return 0, fmt.Errorf("maxUnavailable of MachineConfigPool %q is invalid: %w", p.name, err)
	}
	return max(1, limit), nil
}

// compareZones orders nodes as MCO updates them: by zone, those without one last, and the
// oldest first (machine-config-operator pkg/controller/node). Nodes of the same age are
// ordered by name, so that the result is always the same.
func compareZones(a, b *corev1.Node) int {
	zoneA, zoneB := a.Labels[corev1.LabelTopologyZone], b.Labels[corev1.LabelTopologyZone]
	if (zoneA == "") != (zoneB == "") {
		if zoneA == "" {
			return 1
		}
		return -1
	}
	return cmp.Or(strings.Compare(zoneA, zoneB), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// NodePool is how a NodePool of a hosted cluster is updated (HyperShift hypershift-operator/controllers/nodepool).
type NodePool struct {
	Name string
	// Replicas is nil if the pool is scaled automatically.
	Replicas *int32
	// InPlace is true for a pool that keeps its machines: each is drained, updated and used again.
	// The others replace them, as a MachineDeployment of Cluster API.
	InPlace bool
	// MaxUnavailable is by default 1 in place, else 0. MaxSurge is by default 1, and unused in place.
	MaxUnavailable, MaxSurge *intstr.IntOrString
	// Timeout is spec.nodeDrainTimeout; 0 means no timeout. It has no effect on updates in place.
	Timeout time.Duration
	// Skip is why none of its nodes is drained; empty where they are.
	Skip Skip
}

// limits are how many nodes of the pool may be drained at the same time, and how many are added before.
func (p *NodePool) limits() (drained, surge int, err error) {
	replicas := 1
	if p.Replicas != nil {
		replicas = int(*p.Replicas)
	}
	scaled := func(of *intstr.IntOrString, otherwise int, up bool) int {
		if of == nil {
			return otherwise
		}
		count, problem := intstr.GetScaledValueFromIntOrPercent(of, replicas, up)
		if problem != nil {
			err = fmt.Errorf("NodePool %q has an invalid limit: %w", p.Name, problem)
		}
		return count
	}
	if p.InPlace {
		return max(1, scaled(p.MaxUnavailable, 1, false)), 0, err
	}
	surge = scaled(p.MaxSurge, 1, true)
	return max(1, surge+scaled(p.MaxUnavailable, 0, false)), surge, err
}

func (o *Order) addNodePool(name string, nodes []*corev1.Node, input *Input) error {
	at := slices.IndexFunc(input.NodePools, func(p NodePool) bool { return p.Name == name })
	switch {
	case input.NodePools != nil && at < 0:
		for _, node := range nodes {
			o.skip(node, name, NotRequested, "")
		}
		return nil
	case at < 0:
		if err := o.add(&pool{name: name}, nodes, input); err != nil {
			return err
		}
		o.Pools[len(o.Pools)-1].Unordered = true
		return nil
	}
	of := &input.NodePools[at]
	if of.Skip != "" {
		for _, node := range nodes {
			o.skip(node, name, of.Skip, "")
		}
		return nil
	}
	limit, surge, err := of.limits()
	if err != nil {
		return err
	}
	number := intstr.FromInt(limit)
	if err := o.add(&pool{name: name, unavailable: &number}, nodes, input); err != nil {
		return err
	}
	added := &o.Pools[len(o.Pools)-1]
	added.Unordered, added.Surge = true, surge
	if !of.InPlace {
		// Cluster API replaces machines that are not available first, and does not wait for them.
		added.Unavailable, added.Updating, added.Timeout = nil, nil, of.Timeout
	}
	return nil
}
