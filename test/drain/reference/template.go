package reference

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// template is what the pods of a workload have in common.
type template struct {
	object   *corev1.PodTemplateSpec
	requests []int64 // by resource
	// selected and tolerated are by node, the latter without the taint of a cordoned one, which only
	// pods of DaemonSets tolerate here.
	selected, tolerated []bool
	tolerant            bool
	priority            int32
	getsReady           bool
	conflicts           []conflict
	spread              []constraint
	budgets             []int
	// claim is that of a volume that one node has at a time; empty for none.
	claim string
}

// conflict is a template whose pods must not be in the same domain of a topology, or on the same node
// if topology is -1.
type conflict struct{ template, topology int }

// constraint is one of topology spread.
type constraint struct {
	topology, skew int
	// counted are the templates whose pods it selects, and self is whether its own are.
	counted []int
	self    bool
}

// addTemplate adds a template with what concerns it alone.
func (m *model) addTemplate(of *corev1.PodTemplateSpec) error {
	if err := supported(of.Spec); err != nil {
		return err
	}
	priority, known := m.priorities[of.Spec.PriorityClassName]
	if !known && of.Spec.PriorityClassName != "" {
		return fmt.Errorf("PriorityClass %q does not exist", of.Spec.PriorityClassName)
	}
	added := template{
		object: of, requests: make([]int64, len(m.resources)), priority: priority,
		getsReady: of.Annotations[lab.AnnotationReady] != lab.NeverReady,
	}
	if len(of.Spec.Volumes) > 0 {
		added.claim, added.getsReady = of.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, true
	}
	added.requests[0] = 1 // the pod itself
	for i := range of.Spec.Containers {
		for at, name := range m.resources {
			added.requests[at] += amount(name, of.Spec.Containers[i].Resources.Requests)
		}
	}
	for i := range m.objects.Nodes {
		node := &m.objects.Nodes[i]
		added.selected = append(added.selected, labels.SelectorFromSet(of.Spec.NodeSelector).Matches(labels.Set(node.Labels)))
		added.tolerated = append(added.tolerated, !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(of.Spec.Tolerations, &taint)
		}))
	}
	if m.lowest = min(m.lowest, priority); len(m.templates) == 0 {
		m.lowest = priority
	}
	m.templates = append(m.templates, added)
	return nil
}

// supported refuses what the steps do not know.
func supported(spec corev1.PodSpec) error {
	for _, container := range spec.Containers {
		container.Name, container.Image, container.Ports, container.Resources.Requests = "", "", nil, nil
		if !reflect.DeepEqual(container, corev1.Container{}) {
			return fmt.Errorf("the reference does not know all of container %+v", container)
		}
	}
	if affinity := spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil && affinity.NodeAffinity == nil &&
		affinity.PodAffinity == nil {
		spec.Affinity = nil
	}
	if len(spec.Volumes) == 1 && spec.Volumes[0].PersistentVolumeClaim != nil {
		spec.Volumes = nil
	}
	tolerations := spec.Tolerations
	spec.Containers, spec.NodeSelector, spec.Tolerations, spec.TopologySpreadConstraints = nil, nil, nil, nil
	spec.PriorityClassName, spec.TerminationGracePeriodSeconds = "", nil
	if tolerates(tolerations, &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return errors.New("the reference does not know pods that come to cordoned nodes")
	}
	if !reflect.DeepEqual(spec, corev1.PodSpec{}) {
		return fmt.Errorf("the reference does not know all of pod %+v", spec)
	}
	return nil
}

// tolerates reports whether one of the tolerations is that of a taint.
func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(of corev1.Toleration) bool {
		value := of.Operator == corev1.TolerationOpExists || of.Value == taint.Value
		return (of.Effect == "" || of.Effect == taint.Effect) && (of.Key == "" || of.Key == taint.Key) && value
	})
}

// relate adds what concerns pairs of templates.
func (m *model) relate() error {
	for i := range m.templates {
		if err := m.separate(i); err != nil {
			return err
		}
		if err := m.spread(i); err != nil {
			return err
		}
		for j := range m.templates {
			if clash(&m.templates[i].object.Spec, &m.templates[j].object.Spec) {
				m.templates[i].conflicts = append(m.templates[i].conflicts, conflict{j, -1})
			}
		}
	}
	return nil
}

// separate reads the terms of anti-affinity of a template. They also keep the pods that they select
// away from its own.
func (m *model) separate(at int) error {
	of := m.templates[at].object
	if of.Spec.Affinity == nil {
		return nil
	}
	for _, term := range of.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		others, err := m.selectedBy(term.LabelSelector)
		if err != nil {
			return err
		}
		topology := m.topology(term.TopologyKey)
		for _, other := range others {
			m.templates[at].conflicts = append(m.templates[at].conflicts, conflict{other, topology})
			if other != at {
				m.templates[other].conflicts = append(m.templates[other].conflicts, conflict{at, topology})
			}
		}
	}
	return nil
}

// spread reads the constraints of topology spread of a template.
func (m *model) spread(at int) error {
	for _, of := range m.templates[at].object.Spec.TopologySpreadConstraints {
		if of.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		counted, err := m.selectedBy(of.LabelSelector)
		if err != nil {
			return err
		}
		m.templates[at].spread = append(m.templates[at].spread, constraint{
			topology: m.topology(of.TopologyKey), skew: int(of.MaxSkew), counted: counted, self: slices.Contains(counted, at),
		})
	}
	return nil
}

// selectedBy are the templates whose pods a selector selects.
func (m *model) selectedBy(selector *metav1.LabelSelector) ([]int, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	var found []int
	for i := range m.templates {
		if parsed.Matches(labels.Set(m.templates[i].object.Labels)) {
			found = append(found, i)
		}
	}
	return found, nil
}

// clash reports whether two pods use the same port of their node.
func clash(a, b *corev1.PodSpec) bool {
	uses := func(spec *corev1.PodSpec, port int32) bool {
		return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort == port })
		})
	}
	return slices.ContainsFunc(a.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 && uses(b, p.HostPort) })
	})
}
