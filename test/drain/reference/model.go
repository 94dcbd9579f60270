package reference

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// model is a cluster, prepared for the steps. It does not change once the cluster has settled.
type model struct {
	objects     lab.Cluster
	resources   []corev1.ResourceName
	room        [][]int64 // by node and resource
	topologies  []topology
	templates   []template
	unmanaged   []int        // the templates of the pods without a controller
	existed     map[int]bool // those of these whose pods existed before the drains
	controllers []controller
	budgets     []budgetSpec
	pools       []pool
	priorities  map[string]int32
	// lowest is the lowest priority of a pod.
	lowest int32
}

// topology is a division of the nodes by the value of a label.
type topology struct {
	key string
	// domain is that of each node, -1 for one without the label; members are the nodes of each.
	domain  []int
	members [][]int
}

// pool is the nodes that are drained, in order.
type pool struct {
	name  string
	nodes []int
	limit int
}

type controllerKind int

const (
	replicaSet controllerKind = iota
	statefulSet
	daemonSet
)

// controller keeps pods of a template.
type controller struct {
	kind controllerKind
	// name is that of the controller, and workload that of what a user created: a Deployment has a
	// ReplicaSet.
	name, workload string
	template       int
	replicas       int
	// leaving is true for one that is being deleted once the cluster has settled, and waits for a finalizer.
	leaving bool
}

// budgetSpec is the spec of a budget, of which one of both numbers is set.
type budgetSpec struct {
	minAvailable, maxUnavailable *intstr.IntOrString
	alwaysAllow                  bool
	templates                    []int
}

func (m *model) nodeName(at int) string { return m.objects.Nodes[at].Name }

// replicaSetOf is the name of the ReplicaSet of a Deployment.
func replicaSetOf(deployment string) string { return deployment + "-1" }

func modelOf(cluster lab.Cluster) (*model, error) {
	m := &model{objects: cluster, existed: map[int]bool{}, priorities: map[string]int32{}}
	for _, class := range cluster.Priorities {
		m.priorities[class.Name] = class.Value
	}
	specs := m.workloads()
	m.measure(specs)
	for _, step := range []func() error{func() error { return m.addTemplates(specs) }, m.relate, m.addBudgets, m.addPools, m.checkQuotas} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *model) addTemplates(specs []*corev1.PodTemplateSpec) error {
	for _, spec := range specs {
		if err := m.addTemplate(spec); err != nil {
			return err
		}
	}
	for _, of := range m.controllers {
		m.templates[of.template].tolerant = of.kind == daemonSet
	}
	return nil
}

// checkQuotas refuses quotas and limits of what is not counted.
func (m *model) checkQuotas() error {
	for i := range m.objects.Limits {
		for _, item := range m.objects.Limits[i].Spec.Limits {
			if min, ok := item.Min[corev1.ResourceCPU]; !ok || item.Type != corev1.LimitTypeContainer || len(item.Min) > 1 || min.IsZero() {
				return fmt.Errorf("the reference does not know all of LimitRange %s", m.objects.Limits[i].Name)
			}
		}
	}
	for i := range m.objects.Quotas {
		for name := range m.objects.Quotas[i].Spec.Hard {
			if name != corev1.ResourceRequestsCPU && name != corev1.ResourceRequestsMemory {
				return fmt.Errorf("the reference does not know quotas of %s", name)
			}
		}
	}
	return nil
}

// workloads adds the controllers, and returns the templates of all pods.
func (m *model) workloads() []*corev1.PodTemplateSpec {
	var specs []*corev1.PodTemplateSpec
	add := func(kind controllerKind, name string, replicas *int32, template *corev1.PodTemplateSpec) {
		of := controller{kind: kind, name: name, workload: name, template: len(specs)}
		if replicas != nil {
			of.replicas = int(*replicas)
		}
		if kind == replicaSet {
			of.name = replicaSetOf(name)
		}
		m.controllers, specs = append(m.controllers, of), append(specs, template)
	}
	for i := range m.objects.Deployments {
		of := &m.objects.Deployments[i]
		add(replicaSet, of.Name, of.Spec.Replicas, &of.Spec.Template)
	}
	for i := range m.objects.StatefulSets {
		of := &m.objects.StatefulSets[i]
		add(statefulSet, of.Name, of.Spec.Replicas, &of.Spec.Template)
		m.controllers[len(m.controllers)-1].leaving = of.DeletionTimestamp != nil
	}
	for i := range m.objects.DaemonSets {
		of := &m.objects.DaemonSets[i]
		add(daemonSet, of.Name, nil, &of.Spec.Template)
	}
	for i := range m.objects.Pods {
		of := &m.objects.Pods[i]
		m.unmanaged = append(m.unmanaged, len(specs))
		specs = append(specs, &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: of.Labels, Annotations: of.Annotations},
			Spec:       of.Spec,
		})
	}
	return specs
}

// measure reads the room of the nodes, of each resource that is requested.
func (m *model) measure(specs []*corev1.PodTemplateSpec) {
	m.resources = []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory}
	for _, spec := range specs {
		for i := range spec.Spec.Containers {
			for name := range spec.Spec.Containers[i].Resources.Requests {
				if !slices.Contains(m.resources, name) {
					m.resources = append(m.resources, name)
				}
			}
		}
	}
	for i := range m.objects.Nodes {
		room := make([]int64, len(m.resources))
		for at, name := range m.resources {
			room[at] = amount(name, m.objects.Nodes[i].Status.Allocatable)
		}
		m.room = append(m.room, room)
	}
}

// amount is that of a resource, of processors in thousandths.
func amount(name corev1.ResourceName, list corev1.ResourceList) int64 {
	quantity := list[name]
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// topology is the position of the topology of a label.
func (m *model) topology(key string) int {
	if at := slices.IndexFunc(m.topologies, func(t topology) bool { return t.key == key }); at >= 0 {
		return at
	}
	added, domains := topology{key: key}, map[string]int{}
	for i := range m.objects.Nodes {
		value, labelled := m.objects.Nodes[i].Labels[key]
		domain, known := domains[value]
		switch {
		case !labelled:
			domain = -1
		case !known:
			domain = len(domains)
			domains[value], added.members = domain, append(added.members, nil)
		}
		added.domain = append(added.domain, domain)
		if domain >= 0 {
			added.members[domain] = append(added.members[domain], i)
		}
	}
	m.topologies = append(m.topologies, added)
	return len(m.topologies) - 1
}

func (m *model) addBudgets() error {
	for i := range m.objects.Budgets {
		if err := m.addBudget(i); err != nil {
			return err
		}
	}
	return nil
}

// addBudget adds a budget, and has the templates know it whose pods it selects.
func (m *model) addBudget(at int) error {
	of := &m.objects.Budgets[at]
	selector, err := metav1.LabelSelectorAsSelector(of.Spec.Selector)
	if err != nil {
		return fmt.Errorf("the selector of budget %s: %w", of.Name, err)
	}
	policy := of.Spec.UnhealthyPodEvictionPolicy
	added := budgetSpec{
		minAvailable: of.Spec.MinAvailable, maxUnavailable: of.Spec.MaxUnavailable, alwaysAllow: policy != nil && *policy == policyv1.AlwaysAllow,
	}
	for i := range m.templates {
		if selector.Matches(labels.Set(m.templates[i].object.Labels)) {
			added.templates = append(added.templates, i)
			m.templates[i].budgets = append(m.templates[i].budgets, at)
		}
	}
	m.budgets = append(m.budgets, added)
	return nil
}

func (m *model) addPools() error {
	for i := range m.objects.Pools {
		if err := m.addPool(i); err != nil {
			return err
		}
	}
	return nil
}

// addPool adds a pool with its nodes: by zone, then the oldest, then by name; and how many of them may
// be unavailable, at least one (machine-config-operator pkg/controller/node).
func (m *model) addPool(at int) error {
	of := &m.objects.Pools[at]
	selector, err := metav1.LabelSelectorAsSelector(of.Spec.NodeSelector)
	if err != nil {
		return fmt.Errorf("the selector of pool %s: %w", of.Name, err)
	}
	added := pool{name: of.Name, limit: 1}
	for i := range m.objects.Nodes {
		if selector.Matches(labels.Set(m.objects.Nodes[i].Labels)) {
			added.nodes = append(added.nodes, i)
		}
	}
	slices.SortFunc(added.nodes, func(a, b int) int {
		x, y := &m.objects.Nodes[a], &m.objects.Nodes[b]
		return cmp.Or(cmp.Compare(x.Labels[corev1.LabelTopologyZone], y.Labels[corev1.LabelTopologyZone]),
			x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	if most := of.Spec.MaxUnavailable; most != nil {
		limit, err := intstr.GetScaledValueFromIntOrPercent(most, len(added.nodes), false)
		if err != nil {
			return fmt.Errorf("maxUnavailable of pool %s: %w", of.Name, err)
		}
		added.limit = max(1, limit)
	}
	m.pools = append(m.pools, added)
	return nil
}
