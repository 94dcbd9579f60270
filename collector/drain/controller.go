package drain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/recreation"
)

// controller is a controller of pods. It does not change.
type controller struct {
	recreation.Controller

	// known is false for one that is not of Kubernetes, or was not read.
	known bool
	// members are the pods of an ordered StatefulSet, by their ordinals.
	members []int
}

// controller numbers the controllers of pods.
func (m *model) controller(of *corev1.Pod, numbers map[string]int) int {
	reference := metav1.GetControllerOfNoCopy(of)
	if reference == nil {
		return -1
	}
	key := of.Namespace + "/" + owner.KindOf(reference).String() + "/" + reference.Name
	at, ok := numbers[key]
	if !ok {
		at = len(m.controllers)
		numbers[key] = at
		added := controller{Controller: recreation.Controller{Failures: recreation.Unlimited}}
		if m.input.Workloads != nil {
			if found, ok := m.input.Workloads.Controller(of); ok {
				added.Controller, added.known = found, true
			}
		}
		m.controllers = append(m.controllers, added)
	}
	return at
}

// scale prepares what depends on all pods of a controller: the order of StatefulSets, and the budgets whose
// status the rehearsal computes: its expected pods are the scale of the controllers of its pods now.
func (m *model) scale() {
	m.scaled = make([]map[int]int, len(m.budgets))
	for i := range m.existing {
		p := &m.pods[i]
		if p.controller >= 0 && m.controllers[p.controller].Ordered {
			m.controllers[p.controller].members = append(m.controllers[p.controller].members, i)
		}
		for _, budget := range p.budgets {
			if m.budgets[budget].Scaled() {
				m.present(budget)[p.controller]++
			}
		}
	}
	for i := range m.controllers {
		slices.SortFunc(m.controllers[i].members, func(a, b int) int { return cmp.Compare(m.ordinal(a), m.ordinal(b)) })
	}
	for i := range m.scaled {
		if budget := &m.budgets[i]; budget.Failure == "" && (budget.Stale || m.sum(m.scaled[i]) != budget.Expected) {
			m.scaled[i] = nil
		}
	}
}

func (m *model) ordinal(at int) int { return recreation.Ordinal(&m.input.Cluster.Pods[at]) }

// present counts the pods of a budget by controller.
func (m *model) present(budget int) map[int]int {
	if m.scaled[budget] == nil {
		m.scaled[budget] = map[int]int{}
	}
	return m.scaled[budget]
}

// sum is the scale of the controllers that have pods; -1 where that of one is unknown.
func (m *model) sum(present map[int]int) int32 {
	total := 0
	for at, pods := range present {
		switch {
		case pods <= 0 || at < 0:
		case !m.controllers[at].known || m.controllers[at].Unscaled:
			return -1
		default:
			total += m.controllers[at].Replicas
		}
	}
	return int32(total)
}

// exists records that one more or one less pod exists of the controller and the budgets of a pod. A budget
// then expects the scale of the controllers that have pods.
func (s *situation) exists(at, by int) {
	p := &s.m.pods[s.live[at].form]
	if p.controller < 0 {
		return
	}
	for _, budget := range p.budgets {
		present := s.scaled[budget]
		if present == nil {
			continue
		}
		present[p.controller] += by
		if scale := s.m.sum(present); scale >= 0 && (scale != s.budgets[budget].Expected || s.budgets[budget].Failure != "") {
			s.budgets[budget].Expect(scale)
		}
	}
}

// predecessor is the pod that an ordered StatefulSet waits for before it creates this one; empty if for
// none (kubernetes pkg/controller/statefulset, processReplica).
func (s *situation) predecessor(at int) string {
	p := &s.m.pods[at]
	if p.controller < 0 || !s.m.controllers[p.controller].Ordered {
		return ""
	}
	own, next := s.m.ordinal(at), s.m.controllers[p.controller].First
	for _, other := range s.m.controllers[p.controller].members {
		number := s.m.ordinal(other)
		if number >= own || number > next || number == next && !s.live[other].healthy && !s.live[other].gone {
			break
		}
		next = max(next, number+1)
	}
	if next >= own {
		return ""
	}
	name := s.m.input.Cluster.Pods[at].Name
	return strings.TrimSuffix(name, strconv.Itoa(own)) + strconv.Itoa(next)
}
