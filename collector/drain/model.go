package drain

import (
	"cmp"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/quota"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

const (
	// overdue is how long after the end of its grace period a pod that is being deleted is
	// taken for one that stays.
	overdue = 5 * time.Minute
	// settling is how long after its start a pod that is not ready may become so.
	settling = 5 * time.Minute
	// longGrace is the least grace period that is reported.
	longGrace = 10 * time.Minute
)

// model is the input, prepared for rehearsals. It does not change.
type model struct {
	input   *Input
	cluster *placement.Cluster
	// pods are those of the cluster, existing in number, and what is created in their place where that is
	// another pod.
	pods     []pod
	existing int
	quotas   *quota.Quotas
	budgets  []eviction.Budget
	// owned are the budgets that an operator owns, managers what restores a budget.
	owned       []bool
	managers    []string
	controllers []controller
	// scaled counts the pods of each budget by controller; nil for a budget whose expected pods stay what its
	// status says.
	scaled []map[int]int
	// lowest is the lowest priority of a pod on a node.
	lowest int32
}

// pod is what a rehearsal reads of a pod.
type pod struct {
	eviction.Pod

	node       int
	budgets    []int
	recreation recreation.Answer
	// next is the position of what is created in its place: its own for a pod like it.
	next       int
	charges    []quota.Charge
	owner      owner.Answer
	controller int
	alike      bool // whether the pods of its controller are the same: those of a DaemonSet have a node each, and those of a StatefulSet volumes
	services   []int
	grace      int64  // in seconds
	started    int64  // when the kubelet saw it, in seconds; the last of all if it has not
	starting   bool   // whether it started a moment ago and is not ready yet
	stuck      string // why the deletion of a pod does not end
	finalizer  string // what may keep the pod once it is evicted
	admission  reviewer.Answer
}

// addBudgets reads the budgets. Evictions that were granted before do not count for longer than two minutes
// (kubernetes pkg/controller/disruption, DeletionTimeout).
func (m *model) addBudgets() {
	for i := range m.input.Budgets {
		of := &m.input.Budgets[i]
		budget := eviction.BudgetOf(of)
		budget.Disrupted = 0
		m.budgets = append(m.budgets, budget)
		m.owned = append(m.owned, operated(of))
		m.managers = append(m.managers, managerOf(of))
	}
}

func modelOf(input *Input) *model {
	m := &model{input: input, pods: make([]pod, len(input.Cluster.Pods)), existing: len(input.Cluster.Pods)}
	m.addBudgets()
	if input.Workloads != nil {
		m.quotas = input.Workloads.Quotas()
	}
	find := &finder{budgets: eviction.NewBudgets(input.Budgets), services: servicesOf(input.Services), controllers: map[string]int{}}
	placed := input.Cluster
	for i := range input.Cluster.Pods {
		of := &input.Cluster.Pods[i]
		m.pods[i] = m.pod(of, find)
		m.pods[i].recreation = m.recreation(of, &m.pods[i])
		m.pods[i].next = i
		if created := m.pods[i].recreation.Pod; created != nil {
			m.pods[i].next = len(placed.Pods)
			placed.Pods = append(slices.Clip(placed.Pods), *created)
		}
	}
	for i := m.existing; i < len(placed.Pods); i++ {
		m.pods = append(m.pods, m.pod(&placed.Pods[i], find))
	}
	m.cluster = placement.Compile(placed)
	for i := range m.existing {
		p := &m.pods[i]
		if name := input.Cluster.Pods[i].Spec.NodeName; name != "" {
			p.node = m.cluster.Node(name)
		}
		for _, budget := range p.budgets {
			m.count(&m.budgets[budget], p)
			if _, disrupted := input.Budgets[budget].Status.DisruptedPods[input.Cluster.Pods[i].Name]; disrupted && p.Ready && !p.Terminating {
				m.budgets[budget].Recover()
			}
		}
		m.lowest = min(m.lowest, m.cluster.Pods[i].Priority)
	}
	m.scale()
	return m
}

// trusted takes an operator for one that creates its pods again like a controller of Kubernetes, unless their
// budget refuses an eviction now: then the operator may have to do something before.
func (m *model) trusted(p *pod) bool {
	var budgets []*eviction.Budget
	for _, budget := range p.budgets {
		budgets = append(budgets, &m.budgets[budget])
	}
	return p.owner.Behavior == owner.Moves || eviction.Of(p.Pod, budgets).Outcome == eviction.Evicted
}

// finder finds what concerns a pod.
type finder struct {
	budgets     *eviction.Budgets
	services    *services
	controllers map[string]int
}

// pod is what a rehearsal reads of a pod, but for its node and for what is created in its place.
func (m *model) pod(of *corev1.Pod, find *finder) pod {
	p := pod{Pod: eviction.PodOf(of, m.input.DaemonSet), node: -1, admission: reviewer.Answer{Outcome: eviction.Evicted}, started: math.MaxInt64}
	p.budgets = find.budgets.Of(of.Namespace, of.Labels)
	p.owner = m.input.Owners.Of(of)
	p.services, p.grace = find.services.of(of), graceOf(of, p.owner)
	p.stuck, p.finalizer, p.starting = m.stuck(of), foreign(of.Finalizers), m.starting(of, &p)
	if of.Status.StartTime != nil {
		p.started = of.Status.StartTime.Unix()
	}
	p.controller, p.alike = m.controller(of, find.controllers), alike(of)
	p.charges = m.quotas.Of(of)
	if p.Kept == "" {
		p.admission = m.input.Admission.Of(of)
	}
	return p
}

// foreign is a finalizer that no controller of Kubernetes removes by itself; empty for none.
func foreign(finalizers []string) string {
	for _, name := range finalizers {
		switch name {
		case batchv1.JobTrackingFinalizer, metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents:
		default:
			return name
		}
	}
	return ""
}

// starting reports whether a pod that is not ready may become so without a change: it started less than
// the time of settling before, or its startup probe may still fail.
func (m *model) starting(of *corev1.Pod, p *pod) bool {
	if p.Ready || p.Ended || p.Terminating || m.input.Now.IsZero() {
		return false
	}
	since := of.CreationTimestamp
	if of.Status.StartTime != nil {
		since = *of.Status.StartTime
	}
	return !since.IsZero() && m.input.Now.Before(since.Add(settling+probing(of)))
}

// probing is how long the startup probes of a pod may fail.
func probing(of *corev1.Pod) time.Duration {
	longest := time.Duration(0)
	for i := range of.Spec.Containers {
		if probe := of.Spec.Containers[i].StartupProbe; probe != nil {
			seconds := int64(probe.InitialDelaySeconds) + int64(probe.PeriodSeconds)*int64(probe.FailureThreshold)
			longest = max(longest, min(time.Duration(seconds)*time.Second, time.Hour))
		}
	}
	return longest
}

// count takes the status of a budget for stale that expects no pod and counts none as healthy,
// while one with a controller is ready: it was computed before the pod existed.
func (m *model) count(budget *eviction.Budget, of *pod) {
	if budget.Failure == "" && budget.Expected == 0 && budget.Healthy == 0 && of.Ready && of.controller >= 0 {
		budget.Stale = true
	}
}

// recreation is what becomes of a pod after its eviction.
func (m *model) recreation(of *corev1.Pod, p *pod) recreation.Answer {
	if m.input.Workloads == nil {
		return recreation.Answer{Outcome: recreation.Unknown, Why: "may be created again: workloads were not read"}
	}
	answer := m.input.Workloads.Of(of)
	if controller := metav1.GetControllerOfNoCopy(of); controller != nil && owner.KindOf(controller) == appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind() && p.Kept == "" {
		return recreation.Answer{Outcome: recreation.Lost, Why: "is of a DaemonSet that does not exist"}
	}
	if p.owner.Behavior == owner.Returns || answer.Outcome == recreation.Unknown && m.trusted(p) {
		return recreation.Answer{Outcome: recreation.Recreated, Charges: p.charges} // by its operator
	}
	if answer.Outcome == recreation.Recreated && m.input.Creation != nil {
		return m.admitted(of, answer)
	}
	return answer
}

// admitted is the answer with what webhooks and policies say of the creation. They have admitted a pod of
// the same template, so that only one of another template depends on their answers.
func (m *model) admitted(of *corev1.Pod, answer recreation.Answer) recreation.Answer {
	created, other := of, answer.Pod != nil
	if other {
		created = answer.Pod
	}
	switch by := m.input.Creation.Of(created); {
	case by.Outcome == eviction.Refused:
		return recreation.Answer{Outcome: recreation.Refused, By: "the API server", Why: "cannot be created: " + by.Why}
	case by.Outcome == eviction.Unknown && other:
		return recreation.Answer{Outcome: recreation.Unknown, Why: "is of a template that was changed since, and " + by.Why}
	}
	return answer
}

func alike(of *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(of)
	if controller == nil {
		return false
	}
	kind := owner.KindOf(controller)
	return kind == appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind() || kind == corev1.SchemeGroupVersion.WithKind("ReplicationController").GroupKind()
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
