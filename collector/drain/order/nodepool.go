package order

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

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
