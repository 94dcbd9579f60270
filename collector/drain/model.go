package drain

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/recreation"
)

const (
	// overdue is how long after the end of its grace period a pod that is being deleted is
	// taken for one that stays.
	overdue = 5 * time.Minute
	// longGrace is the least grace period that is reported.
	longGrace = 10 * time.Minute
)

// model is the input, prepared for rehearsals. It does not change.
type model struct {
	input   *Input
	cluster *placement.Cluster
	pods    []pod
	budgets []eviction.Budget
	// owned are the budgets that an operator owns, managers what restores a budget.
	owned    []bool
	managers []string
	// replicas is how many pods each controller keeps, -1 where that is unknown.
	replicas []int
	// lowest is the lowest priority of a pod on a node.
	lowest int32
}

// pod is what a rehearsal reads of a pod.
type pod struct {
	eviction.Pod

	node       int
	budgets    []int
	recreation recreation.Answer
	owner      owner.Answer
	controller int
	alike      bool // whether the pods of its controller are the same: those of a DaemonSet have a node each, and those of a StatefulSet volumes
	services   []int
	grace      int64  // in seconds
	started    int64  // when the kubelet saw it, in seconds; the last of all if it has not
	stuck      string // why the deletion of a pod does not end
	admission  eviction.Outcome
	by         string
}

func modelOf(input *Input) *model {
	m := &model{input: input, cluster: placement.Compile(input.Cluster), pods: make([]pod, len(input.Cluster.Pods))}
	for i := range input.Budgets {
		m.budgets = append(m.budgets, eviction.BudgetOf(&input.Budgets[i]))
		m.owned = append(m.owned, operated(&input.Budgets[i]))
		m.managers = append(m.managers, managerOf(&input.Budgets[i]))
	}
	budgets := eviction.NewBudgets(input.Budgets)
	services := servicesOf(input.Services)
	controllers := map[string]int{}
	for i := range input.Cluster.Pods {
		of := &input.Cluster.Pods[i]
		p := pod{Pod: eviction.PodOf(of, input.DaemonSet), node: -1, controller: -1, admission: eviction.Evicted}
		if of.Spec.NodeName != "" {
			p.node = m.cluster.Node(of.Spec.NodeName)
		}
		p.budgets = budgets.Of(of.Namespace, of.Labels)
		p.owner = input.Owners.Of(of)
		p.services, p.grace = services.of(of), graceOf(of, p.owner)
		p.stuck, p.started = m.stuck(of), math.MaxInt64
		if of.Status.StartTime != nil {
			p.started = of.Status.StartTime.Unix()
		}
		p.recreation = m.recreation(of, p.Kept)
		if p.owner.Behavior == owner.Moves && p.recreation.Outcome == recreation.Unknown {
			p.recreation = recreation.Answer{Outcome: recreation.Recreated} // by its operator
		}
		p.controller, p.alike = m.controller(of, controllers), alike(of)
		if input.Admission != nil && p.Kept == "" {
			p.admission, p.by = input.Admission(of)
		}
		m.pods[i] = p
		for _, budget := range p.budgets {
			m.distrust(&m.budgets[budget], &p)
		}
		m.lowest = min(m.lowest, m.cluster.Pods[i].Priority)
	}
	return m
}

// distrust takes the status of a budget for stale that expects no pod and counts none as healthy,
// while one with a controller is ready: it was computed before the pod existed.
func (m *model) distrust(budget *eviction.Budget, of *pod) {
	if budget.Failure == "" && budget.Expected == 0 && budget.Healthy == 0 && of.Ready && of.controller >= 0 {
		budget.Stale = true
	}
}

func (m *model) recreation(of *corev1.Pod, kept eviction.Kept) recreation.Answer {
	if m.input.Workloads == nil {
		return recreation.Answer{Outcome: recreation.Unknown, Why: "may be created again: workloads were not read"}
	}
	answer := m.input.Workloads.Of(of)
	if owner := metav1.GetControllerOfNoCopy(of); owner != nil && owner.Kind == "DaemonSet" && kept == "" {
		return recreation.Answer{Outcome: recreation.Lost, Why: "is of a DaemonSet that does not exist"}
	}
	return answer
}

func alike(of *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(of)
	return owner != nil && (owner.Kind == "ReplicaSet" || owner.Kind == "ReplicationController")
}

// controller numbers the controllers of pods.
func (m *model) controller(of *corev1.Pod, known map[string]int) int {
	reference := metav1.GetControllerOfNoCopy(of)
	if reference == nil {
		return -1
	}
	key := of.Namespace + "/" + reference.Kind + "/" + reference.Name
	at, ok := known[key]
	if !ok {
		at = len(m.replicas)
		known[key] = at
		replicas := -1
		if m.input.Workloads != nil {
			if number, ok := m.input.Workloads.Replicas(of); ok {
				replicas = number
			}
		}
		m.replicas = append(m.replicas, replicas)
	}
	return at
}

// stuck is why the deletion of a pod has not ended, although its grace period has.
func (m *model) stuck(of *corev1.Pod) string {
	if of.DeletionTimestamp == nil || m.input.Now.IsZero() || m.input.Now.Before(of.DeletionTimestamp.Add(overdue)) {
		return ""
	}
	if len(of.Finalizers) > 0 {
		return "its finalizer " + of.Finalizers[0]
	}
	return "its kubelet"
}

func (m *model) reference(at int) Reference {
	of := &m.input.Cluster.Pods[at]
	return Reference{of.Namespace, of.Name}
}

// nodeOf is the node of a pod before the update.
func (m *model) nodeOf(at int) string { return m.input.Cluster.Pods[at].Spec.NodeName }

// graceOf is how many seconds a pod may take to end. One that is migrated leaves its node when what
// it runs does not run there any more.
func graceOf(of *corev1.Pod, by owner.Answer) int64 {
	if of.Spec.TerminationGracePeriodSeconds == nil || by.Behavior == owner.Migrates {
		return 0
	}
	return max(0, *of.Spec.TerminationGracePeriodSeconds)
}

// graces are the evicted pods with long grace periods, the longest first.
func (m *model) graces(evicted []bool) []Grace {
	var found []Grace
	for i := range m.pods {
		if seconds := m.pods[i].grace; evicted[i] && seconds >= int64(longGrace/time.Second) {
			found = append(found, Grace{Pod: m.reference(i), Node: m.nodeOf(i), Seconds: seconds})
		}
	}
	slices.SortStableFunc(found, func(a, b Grace) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), compareReferences(a.Pod, b.Pod))
	})
	return found
}

// maxGrace bounds a grace period: a year is for ever.
const maxGrace = 365 * 24 * time.Hour

func compareReferences(a, b Reference) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// services finds the Services of a pod.
type services struct {
	byNamespace map[string][]selecting
}

type selecting struct {
	labels labels.Selector
	at     int
}

func servicesOf(all []corev1.Service) *services {
	s := &services{byNamespace: map[string][]selecting{}}
	for i := range all {
		if len(all[i].Spec.Selector) == 0 {
			continue
		}
		selector := labels.SelectorFromSet(all[i].Spec.Selector)
		s.byNamespace[all[i].Namespace] = append(s.byNamespace[all[i].Namespace], selecting{selector, i})
	}
	return s
}

func (s *services) of(pod *corev1.Pod) []int {
	var found []int
	for _, candidate := range s.byNamespace[pod.Namespace] {
		if candidate.labels.Matches(labels.Set(pod.Labels)) {
			found = append(found, candidate.at)
		}
	}
	return found
}
