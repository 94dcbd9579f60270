package order

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

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
		pools = append(pools, pool{name: found[i].Name, paused: found[i].Spec.Paused, unavailable: found[i].Spec.MaxUnavailable, selector: selector})
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
	// Replicas is nil where the pool is scaled automatically.
	Replicas *int32
	// InPlace is true for a pool that keeps its machines: each is drained, updated and used again.
	// The others replace them, as a MachineDeployment of Cluster API.
	InPlace bool
	// MaxUnavailable is by default 1 in place, else 0. MaxSurge is by default 1, and unused in place.
	MaxUnavailable, MaxSurge *intstr.IntOrString
	// Timeout is spec.nodeDrainTimeout: 0 is none. It has no effect in place.
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
