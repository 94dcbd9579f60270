// Package comparison answers: do the drains of a cluster end as they were rehearsed?
package comparison

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"

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
	// guards are the names of guards, which do not exist where a drain sticks, and missing counts the pods
	// that did not exist, by controller; a rehearsal has those that may be created.
	guards  map[string]bool
	missing map[string]int
}

// Extract is what a rehearsal of several clusters says of one, which is as it was then.
func Extract(all drain.Rehearsal, cluster lab.Cluster) Prediction {
	found := Prediction{}
	found.know(cluster)
	for i := range all.Pools {
		if slices.ContainsFunc(cluster.Pools,
			func(pool machineconfigurationv1.MachineConfigPool) bool { return pool.Name == all.Pools[i].Name }) {
			found.Pools = append(found.Pools, all.Pools[i])
		}
	}
	for i := range all.Pending {
		if _, known := found.owners[all.Pending[i].Pod.String()]; known {
			found.Pending = append(found.Pending, all.Pending[i])
		}
	}
	for i := range all.Lost {
		if _, known := found.owners[all.Lost[i].Pod.String()]; known {
			found.Lost = append(found.Lost, all.Lost[i])
		}
	}
	return found
}

// know remembers the pods of the cluster.
func (p *Prediction) know(cluster lab.Cluster) {
	p.owners, p.guards, p.missing = map[string]string{}, map[string]bool{}, cluster.Missing()
	for i := range cluster.Pods {
		pod := &cluster.Pods[i]
		p.owners[pod.Namespace+"/"+pod.Name] = lab.OwnerOf(pod)
		if lab.Guards(pod) {
			p.guards[pod.Name] = true
		}
	}
	for i := range cluster.ReplicaSets {
		p.owners[cluster.Namespace+"/"+cluster.ReplicaSets[i].Name] = cluster.ReplicaSets[i].Name
	}
	for i := range cluster.StatefulSets {
		of := &cluster.StatefulSets[i]
		for ordinal := range *of.Spec.Replicas {
			p.owners[fmt.Sprintf("%s/%s-%d", cluster.Namespace, of.Name, ordinal)] = of.Name
		}
	}
}

// Of rehearses the drains of a cluster that has settled.
func Of(cluster lab.Cluster) (Prediction, error) {
	found, err := order.Of(order.Input{Nodes: cluster.Nodes, Pools: cluster.Pools, Topology: configv1.HighlyAvailableTopologyMode})
	if err != nil {
		return Prediction{}, err
	}
	workloads := recreation.Input{
		ReplicaSets: cluster.ReplicaSets, StatefulSets: cluster.StatefulSets, Quotas: cluster.Quotas,
		Limits: cluster.Limits,
	}
	rehearsal := drain.Rehearse(drain.Input{
		Order: found, Cluster: placement.Input{Nodes: cluster.Nodes, Pods: cluster.Pods, Claims: cluster.Claims, Volumes: cluster.Volumes},
		Budgets:   cluster.Budgets,
		Workloads: recreation.New(workloads), Owners: owner.New(nil, nil), Now: time.Now(),
	})
	if wrong := contradictions(&rehearsal); len(wrong) > 0 {
		return Prediction{}, fmt.Errorf("the rehearsal contradicts itself: %s", strings.Join(wrong, "; "))
	}
	predicted := Prediction{Rehearsal: rehearsal, Order: found}
	predicted.know(cluster)
	return predicted, nil
}

// Count is how many pools there are by what is predicted of them: to be clear, to stick, to drain no node, or
// none of these.
type Count struct{ Clear, Sticks, Blocked, Unknown int }

// Plus is the sum.
func (c Count) Plus(other Count) Count {
	return Count{c.Clear + other.Clear, c.Sticks + other.Sticks, c.Blocked + other.Blocked, c.Unknown + other.Unknown}
}

// Count counts the pools.
func (p *Prediction) Count() Count {
	var found Count
	for i := range p.Pools {
		switch p.Pools[i].Outcome {
		case drain.Clear:
			found.Clear++
		case drain.Sticks:
			found.Sticks++
		case drain.Blocked:
			found.Blocked++
		case drain.Undetermined:
			found.Unknown++
		}
	}
	return found
}

// Wide are why a prediction has several outcomes: of each pool that is Unknown or may stick at one of several
// nodes, and of each controller whose number of pods without a node has a range.
func (p *Prediction) Wide() []string {
	var causes []string
	for i := range p.Pools {
		pool := &p.Pools[i]
		switch {
		case pool.Outcome == drain.Undetermined:
			causes = append(causes, "Unknown: "+general(pool.Why))
		case slices.ContainsFunc(pool.Stuck, func(node drain.Node) bool { return node.Uncertain }):
			causes = append(causes, "sticks at one of several nodes")
		}
	}
	for i := range p.Pending {
		if p.Pending[i].Uncertain && !p.Pending[i].Behind {
			causes = append(causes, "pods without a node: "+general(p.Pending[i].Why))
		}
	}
	slices.Sort(causes)
	return slices.Compact(causes)
}

// general is a text without what it names, and "nodes" for what keeps a pod from each.
func general(text string) string {
	if regexp.MustCompile(`^\d+ nodes?\b`).MatchString(text) {
		return "the nodes that the scheduler chooses"
	}
	return regexp.MustCompile(`"[^"]*"|\b[a-z]*\d[-\w./]*|\b[a-z]+(-\w+)+\b`).ReplaceAllString(text, "…")
}

// Unsafe are the pools that were predicted to be clear and are not drained, in words.
func (p *Prediction) Unsafe(ended lab.Outcome) []string {
	var wrong []string
	for i := range p.Pools {
		pool := &p.Pools[i]
		stuck, waiting := ended.Stuck[pool.Name], ended.Waiting[pool.Name]
		if pool.Outcome == drain.Clear && (len(stuck) > 0 || waiting > 0) {
			wrong = append(wrong, fmt.Sprintf("UNSAFE: pool %s was predicted to be clear, and sticks at %v with %d nodes that wait", pool.Name,
				stuck, waiting))
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
		case pool.Outcome == drain.Blocked && (ended.Drained[pool.Name] > 0 || len(stuck) > 0):
			wrong = append(wrong, fmt.Sprintf("pool %s was predicted to drain no node, and drained %d", pool.Name, ended.Drained[pool.Name]))
		case pool.Outcome != drain.Sticks:
		case len(stuck) == 0:
			wrong = append(wrong, fmt.Sprintf("pool %s was predicted to stick at %s, and is drained", pool.Name, nodes(pool.Stuck)))
		case !covers(pool.Stuck, stuck):
			wrong = append(wrong, fmt.Sprintf("pool %s was predicted to stick at %s, and sticks at %v", pool.Name, nodes(pool.Stuck), stuck))
		}
	}
	return append(wrong, p.pending(ended)...)
}

// bounds are the least and the most pods without a node.
type bounds struct{ least, most int }

// pending compares the pods without a node, by controller, unless it is unknown where a pool sticks.
func (p *Prediction) pending(ended lab.Outcome) []string {
	if p.Count().Unknown > 0 {
		return nil
	}
	predicted := p.absent()
	rehearsed := map[string]bool{}
	for i := range p.Pending {
		if p.Pending[i].Missing {
			rehearsed[p.owners[p.Pending[i].Pod.String()]] = true
		}
	}
	for owner := range ended.Absent {
		if rehearsed[owner] {
			continue
		}
		predicted[owner] = bounds{predicted[owner].least, predicted[owner].most + p.missing[owner]}
	}
	var wrong []string
	for _, owner := range slices.Sorted(maps.Keys(predicted)) {
		of, got := predicted[owner], ended.Absent[owner]
		if got < of.least || got > of.most && !p.guards[owner] {
			wrong = append(wrong, fmt.Sprintf("%d pods of %s are without a node, predicted %d to %d", got, owner, of.least, of.most))
		}
	}
	return wrong
}

// absent are the pods that stay without a node or are not created again, by controller.
func (p *Prediction) absent() map[string]bounds {
	found := map[string]bounds{}
	for _, pending := range p.Pending {
		if pending.Behind {
			continue // an obstacle is removed first, which a real drain waits for
		}
		owner := p.owners[pending.Pod.String()]
		of := bounds{found[owner].least, found[owner].most + 1}
		if !pending.Uncertain {
			of.least++
		}
		found[owner] = of
	}
	for _, lost := range p.Lost {
		if lost.Behind {
			continue
		}
		owner := p.owners[lost.Pod.String()]
		of := bounds{found[owner].least, found[owner].most + 1}
		if !lost.Uncertain {
			of.least++
		}
		found[owner] = of
	}
	return found
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
