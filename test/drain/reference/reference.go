// Package reference answers: how can the drains of an update end, by the rules of Kubernetes?
//
// [Settle] places the pods of a cluster, and [Settled.Drain] drains its nodes, one step at a time: a
// pool cordons its next node, the API server grants an eviction, a controller creates a pod, the
// scheduler places or preempts one, a kubelet starts or ends one, the disruption controller counts
// those of a budget. Which of the possible steps is the next is random, since in a cluster it depends
// on how fast each component is. A drain is stuck if no step is possible any more.
//
// It is written from Kubernetes 1.37 and the machine-config-operator, whose sources are named where
// their rules are not evident, and not from collector/drain, whose rehearsals it checks. It has the
// rules that the clusters of lab.Plain need, and refuses others.
package reference

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// Settled is a cluster in which no step is possible until nodes are drained.
type Settled struct {
	m     *model
	start *state
}

// Settle places the pods of a cluster, and creates its quotas then.
func Settle(cluster lab.Cluster, random *rand.Rand) (*Settled, error) {
	m, err := modelOf(cluster)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", cluster.Namespace, err)
	}
	s := m.empty()
	r := newRun(s, random)
	for i := range m.unmanaged {
		r.born(pod{template: m.unmanaged[i], controller: -1, name: m.objects.Pods[i].Name, target: -1})
	}
	for i := range m.controllers {
		r.add(create, i)
	}
	for i := range m.budgets {
		r.changed(i)
	}
	if err := r.toEnd(); err != nil {
		return nil, fmt.Errorf("settle %s: %w", cluster.Namespace, err)
	}
	s.limited = true
	for _, template := range m.unmanaged {
		m.existed[template] = len(s.existing[template]) > 0
	}
	return &Settled{m: m, start: s}, nil
}

// Drain drains the nodes of a copy of the cluster.
func (s *Settled) Drain(random *rand.Rand) (lab.Outcome, error) {
	r := newRun(s.start.clone(), random)
	for i := range s.m.pools {
		r.add(cordon, i)
	}
	for i := range s.m.controllers {
		r.add(create, i)
	}
	for i := range r.s.pods {
		if r.s.pods[i].node < 0 {
			r.add(place, i)
		}
	}
	if err := r.toEnd(); err != nil {
		return lab.Outcome{}, fmt.Errorf("drain %s: %w", s.m.objects.Namespace, err)
	}
	return r.s.outcome(), nil
}

// outcome is how the drains ended.
func (s *state) outcome() lab.Outcome {
	ended := lab.Outcome{Stuck: map[string][]string{}, Absent: map[string]int{}}
	for i := range s.m.pools {
		if stuck := s.stuck(&s.m.pools[i]); len(stuck) > 0 {
			ended.Stuck[s.m.pools[i].name] = stuck
		}
	}
	for i := range s.m.controllers {
		if absent := s.absent(&s.m.controllers[i]); absent > 0 {
			ended.Absent[s.m.controllers[i].name] = absent
		}
	}
	for i, template := range s.m.unmanaged {
		if s.m.existed[template] && len(s.existing[template]) == 0 {
			ended.Absent[s.m.objects.Pods[i].Name] = 1
		}
		for _, at := range s.existing[template] {
			if s.pods[at].node < 0 {
				ended.Absent[s.pods[at].name]++
			}
		}
	}
	return ended
}

// absent counts the pods of a controller without a node, or that do not exist.
func (s *state) absent(c *controller) int {
	placed := 0
	for _, at := range s.existing[c.template] {
		if s.pods[at].node >= 0 {
			placed++
		}
	}
	if c.kind == daemonSet {
		return len(s.existing[c.template]) - placed
	}
	return c.replicas - placed
}

// stuck are the nodes of a pool whose drains have not ended, sorted.
func (s *state) stuck(of *pool) []string {
	var names []string
	for _, node := range of.nodes {
		if s.draining[node] {
			names = append(names, s.m.nodeName(node))
		}
	}
	slices.Sort(names)
	return names
}

// errEndless is returned for steps that do not end, which is a defect of this package.
var errEndless = errors.New("the steps do not end")
