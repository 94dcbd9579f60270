// Package comparison answers: do the drains of a cluster end as they were rehearsed?
package comparison

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/test/drain/lab"
)

// Prediction is a rehearsal of the drains of a cluster.
type Prediction struct {
	drain.Rehearsal

	// Order is which nodes are drained.
	Order order.Order
	// owners are the controllers of the pods, by the names of the pods; the name of one without.
	owners map[string]string
}

// Of rehearses the drains of a cluster that has settled.
func Of(cluster lab.Cluster) (Prediction, error) {
	found, err := order.Of(order.Input{Nodes: cluster.Nodes, Pools: cluster.Pools, Topology: configv1.HighlyAvailableTopologyMode})
	if err != nil {
		return Prediction{}, err
	}
	workloads := recreation.Input{ReplicaSets: cluster.ReplicaSets, StatefulSets: cluster.StatefulSets, Quotas: cluster.Quotas}
	rehearsal := drain.Rehearse(drain.Input{
		Order: found, Cluster: placement.Input{Nodes: cluster.Nodes, Pods: cluster.Pods}, Budgets: cluster.Budgets,
		Workloads: recreation.New(workloads), Owners: owner.New(nil, nil), Now: time.Now(),
	})
	owners := map[string]string{}
	for i := range cluster.Pods {
		pod := &cluster.Pods[i]
		owners[pod.Name] = pod.Name
		if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
			owners[pod.Name] = controller.Name
		}
	}
	return Prediction{Rehearsal: rehearsal, Order: found, owners: owners}, nil
}

// Count is how many pools there are by what is predicted of them: to be clear, to stick, or neither.
type Count struct{ Clear, Sticks, Unknown int }

// Count counts the pools.
func (p *Prediction) Count() Count {
	var found Count
	for i := range p.Pools {
		switch p.Pools[i].Outcome {
		case drain.Clear:
			found.Clear++
		case drain.Sticks, drain.Blocked:
			found.Sticks++
		case drain.Undetermined:
			found.Unknown++
		}
	}
	return found
}

// Unsafe are the pools that were predicted to be clear and are stuck, in words.
func (p *Prediction) Unsafe(ended lab.Outcome) []string {
	var wrong []string
	for i := range p.Pools {
		pool := &p.Pools[i]
		if stuck := ended.Stuck[pool.Name]; pool.Outcome == drain.Clear && len(stuck) > 0 {
			wrong = append(wrong, fmt.Sprintf("pool %s was predicted to be clear, and sticks at %v", pool.Name, stuck))
		}
	}
	return wrong
}

// Wrong are all disagreements, in words: those of Unsafe, pools that were predicted to stick and do not,
// or at other nodes, and numbers of pods without a node that were not predicted.
func (p *Prediction) Wrong(ended lab.Outcome) []string {
	wrong := p.Unsafe(ended)
	for i := range p.Pools {
		pool := &p.Pools[i]
		stuck := ended.Stuck[pool.Name]
		switch {
		case pool.Outcome != drain.Sticks:
		case len(stuck) == 0:
			wrong = append(wrong, fmt.Sprintf("pool %s was predicted to stick at %s, and is drained", pool.Name, nodes(pool.Stuck)))
		case !covers(pool.Stuck, stuck):
			wrong = append(wrong, fmt.Sprintf("pool %s was predicted to stick at %s, and sticks at %v", pool.Name, nodes(pool.Stuck), stuck))
		}
	}
	return append(wrong, p.pending(ended)...)
}

// pending compares the pods without a node, by controller, unless it is unknown where a pool sticks.
func (p *Prediction) pending(ended lab.Outcome) []string {
	if p.Count().Unknown > 0 {
		return nil
	}
	least, most, all := map[string]int{}, map[string]int{}, maps.Clone(ended.Absent)
	for _, pending := range p.Pending {
		owner := p.owners[pending.Pod.Name]
		most[owner]++
		if !pending.Uncertain {
			least[owner]++
		}
		all[owner] = ended.Absent[owner]
	}
	var wrong []string
	for _, owner := range slices.Sorted(maps.Keys(all)) {
		if got := all[owner]; got < least[owner] || got > most[owner] {
			wrong = append(wrong, fmt.Sprintf("%d pods of %s are without a node, predicted %d to %d", got, owner, least[owner], most[owner]))
		}
	}
	return wrong
}

// covers reports whether a pool sticks at all nodes that are predicted as certain, and at no other than
// those that are predicted.
func covers(predicted []drain.Node, stuck []string) bool {
	for i := range predicted {
		if !predicted[i].Uncertain && !slices.Contains(stuck, predicted[i].Name) {
			return false
		}
	}
	return !slices.ContainsFunc(stuck, func(name string) bool {
		return !slices.ContainsFunc(predicted, func(node drain.Node) bool { return node.Name == name })
	})
}

// nodes are those at which a pool sticks, with what stays on them.
func nodes(all []drain.Node) string {
	found := make([]string, 0, len(all))
	for i := range all {
		found = append(found, all[i].Name)
		for _, obstacle := range all[i].Obstacles {
			found = append(found, fmt.Sprintf("(%s %s %s behind %v)", obstacle.Pod, obstacle.Outcome, obstacle.Cause, obstacle.Behind))
		}
	}
	return strings.Join(found, " ")
}
