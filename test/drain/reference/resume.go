package reference

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// Resume is a cluster that has settled elsewhere: created are the objects that a user created, and
// found has the nodes, ReplicaSets and pods that an API server had then.
func Resume(created, found lab.Cluster) (*Settled, error) {
	created.Nodes = found.Nodes // the order of the drains depends on their ages
	m, err := modelOf(created)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", created.Namespace, err)
	}
	for i := range found.ReplicaSets {
		if at := m.controller(replicaSet, lab.ControllerOf(&found.ReplicaSets[i]).Name); at >= 0 {
			m.controllers[at].name = found.ReplicaSets[i].Name
		}
	}
	s := m.empty()
	s.limited = true
	for i := range found.Pods {
		if err := s.resume(&found.Pods[i]); err != nil {
			return nil, fmt.Errorf("read %s: pod %s: %w", created.Namespace, found.Pods[i].Name, err)
		}
	}
	s.rank()
	r := newRun(s, rand.New(rand.NewPCG(0, 0))) //nolint:gosec // nothing is chosen
	for i := range m.budgets {
		r.count(i)
	}
	return &Settled{m: m, start: s}, nil
}

// controller is the position of a controller, by the name of its workload; -1 if there is none.
func (m *model) controller(kind controllerKind, workload string) int {
	return slices.IndexFunc(m.controllers, func(c controller) bool { return c.kind == kind && c.workload == workload })
}

// resume adds a pod of the API server.
func (s *state) resume(of *corev1.Pod) error {
	p := pod{controller: -1, name: of.Name, number: len(s.pods), target: -1, nominated: -1, node: -1, running: of.Status.Phase == corev1.PodRunning, ready: lab.Ready(of)}
	by := lab.ControllerOf(of)
	switch by.Kind {
	case "ReplicaSet":
		p.controller = slices.IndexFunc(s.m.controllers, func(c controller) bool { return c.kind == replicaSet && c.name == by.Name })
	case "StatefulSet":
		p.controller = s.m.controller(statefulSet, by.Name)
		ordinal, err := strconv.Atoi(strings.TrimPrefix(of.Name, by.Name+"-"))
		if err != nil {
			return err
		}
		p.number = ordinal
	case "DaemonSet":
		p.controller = s.m.controller(daemonSet, by.Name)
		p.target = s.m.node(targetOf(of))
	}
	unmanaged := slices.IndexFunc(s.m.objects.Pods, func(other corev1.Pod) bool { return other.Name == of.Name })
	switch {
	case p.controller >= 0:
		p.template = s.m.controllers[p.controller].template
	case by.Kind == "" && unmanaged >= 0:
		p.template = s.m.unmanaged[unmanaged]
	default:
		return fmt.Errorf("its controller %s %q is not known", by.Kind, by.Name)
	}
	if of.Status.StartTime != nil {
		p.since = int(of.Status.StartTime.Unix())
	}
	s.pods = append(s.pods, p)
	s.existing[p.template] = append(s.existing[p.template], len(s.pods)-1)
	if of.Spec.NodeName != "" {
		s.put(len(s.pods)-1, s.m.node(of.Spec.NodeName))
	}
	return nil
}

// targetOf is the node of a pod of a DaemonSet.
func targetOf(of *corev1.Pod) string {
	for _, term := range of.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			return field.Values[0]
		}
	}
	return of.Spec.NodeName
}

// node is the position of a node.
func (m *model) node(name string) int {
	return slices.IndexFunc(m.objects.Nodes, func(node corev1.Node) bool { return node.Name == name })
}

// rank makes numbers of starts of times in seconds.
func (s *state) rank() {
	first := math.MaxInt
	for i := range s.pods {
		if s.pods[i].running {
			first = min(first, s.pods[i].since)
		}
	}
	for i := range s.pods {
		s.pods[i].since -= first
		s.starts = max(s.starts, s.pods[i].since+1)
	}
}
