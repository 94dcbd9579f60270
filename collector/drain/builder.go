package drain

import (
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

type builder struct {
	made        *model
	input       *Input
	budgets     *eviction.Budgets
	services    *services
	controllers map[string]int
	creations   map[int]reviewer.Answer
	// youngest is when the last pod of each controller was created.
	youngest map[int]metav1.Time
}

// addBudgets reads the budgets. Evictions that were granted before do not count for longer than two minutes
// (kubernetes pkg/controller/disruption, DeletionTimeout).
func (b *builder) addBudgets() {
	for i := range b.input.Budgets {
		of := &b.input.Budgets[i]
		budget := eviction.BudgetOf(of)
		budget.Disrupted = 0
		b.made.budgets = append(b.made.budgets, budget)
		b.made.owned = append(b.made.owned, operated(of))
		b.made.managers = append(b.made.managers, managerOf(of))
	}
}

func modelOf(input *Input) *model {
	m, present := &model{input: input}, len(input.Cluster.Pods)
	if input.Workloads != nil {
		m.quotas = input.Workloads.Quotas()
		input.Cluster.Pods = append(slices.Clip(input.Cluster.Pods), input.Workloads.Missing(input.Cluster.Pods)...)
	}
	m.existing = len(input.Cluster.Pods)
	m.pods = make([]pod, m.existing)
	b := &builder{
		made: m, input: input, budgets: eviction.NewBudgets(input.Budgets), services: servicesOf(input.Services), controllers: map[string]int{},
		creations: map[int]reviewer.Answer{}, youngest: map[int]metav1.Time{},
	}
	b.addBudgets()
	b.date()
	placed := input.Cluster
	for i := range input.Cluster.Pods {
		of := &input.Cluster.Pods[i]
		m.pods[i] = b.pod(of)
		m.pods[i].recreation = b.recreation(of, &m.pods[i])
		m.pods[i].next, m.pods[i].absent = i, i >= present
		if created := m.pods[i].recreation.Pod; created != nil {
			m.pods[i].next = m.existing + len(placed.Created)
			placed.Created = append(placed.Created, created)
		}
	}
	for _, created := range placed.Created {
		m.pods = append(m.pods, b.pod(created))
	}
	m.cluster = placement.Compile(placed)
	for i := range m.existing {
		p := &m.pods[i]
		if name := input.Cluster.Pods[i].Spec.NodeName; name != "" {
			p.node = m.cluster.Node(name)
		}
		for _, budget := range p.budgets {
			count(&m.budgets[budget], p)
			if _, disrupted := input.Budgets[budget].Status.DisruptedPods[input.Cluster.Pods[i].Name]; disrupted && p.Ready && !p.Terminating {
				m.budgets[budget].Recover()
			}
		}
		m.lowest = min(m.lowest, m.cluster.Pods[i].Priority)
	}
	b.scale()
	return m
}

// date finds the youngest pod of each controller.
func (b *builder) date() {
	for i := range b.input.Cluster.Pods {
		at, created := b.controller(&b.input.Cluster.Pods[i]), b.input.Cluster.Pods[i].CreationTimestamp
		if last := b.youngest[at]; last.Before(&created) {
			b.youngest[at] = created
		}
	}
}

// trusted takes an operator for one that creates its pods again like a controller of Kubernetes, unless their
// budget refuses an eviction now: then the operator may have to do something before. A pod that runs to completion may
// be a task that fails with it.
func (b *builder) trusted(p *pod) bool {
	var budgets []*eviction.Budget
	for _, budget := range p.budgets {
		budgets = append(budgets, &b.made.budgets[budget])
	}
	return p.owner.Behavior == owner.Moves || !p.completes && eviction.Of(p.Pod, budgets).Outcome == eviction.Evicted
}

// pod prepares a pod for the rehearsals, but for its node and for what is created in its place.
func (b *builder) pod(of *corev1.Pod) pod {
	p := pod{
		Pod: eviction.PodOf(of, b.input.DaemonSet), node: -1, admission: reviewer.Answer{Outcome: eviction.Evicted},
		started: math.MaxInt64,
	}
	p.budgets = b.budgets.Of(of.Namespace, of.Labels)
	p.owner = b.input.Owners.Of(of)
	p.groups, p.grace = b.services.of(of), graceOf(of, p.owner)
	p.stuck, p.finalizer, p.starting = stuck(of, b.input.Now), foreign(of.Finalizers), starting(of, &p, b.input.Now)
	if of.Status.StartTime != nil {
		p.started = of.Status.StartTime.Unix()
	}
	p.controller = b.controller(of)
	p.alike, p.completes = alike(of), of.Spec.RestartPolicy != "" && of.Spec.RestartPolicy != corev1.RestartPolicyAlways
	if p.controller >= 0 {
		p.groups = append(p.groups, len(b.input.Services)+p.controller)
	}
	p.charges = b.made.quotas.Of(of)
	if p.Kept == "" {
		p.admission = b.input.Admission.Of(of)
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
func starting(of *corev1.Pod, p *pod, now time.Time) bool {
	if p.Ready || p.Ended || p.Terminating || now.IsZero() {
		return false
	}
	since := of.CreationTimestamp
	if of.Status.StartTime != nil {
		since = *of.Status.StartTime
	}
	return !since.IsZero() && now.Before(since.Add(settling+probing(of)))
}

func probing(of *corev1.Pod) time.Duration {
	longest := time.Duration(0)
	for i := range of.Spec.Containers {
		if probe := of.Spec.Containers[i].StartupProbe; probe != nil {
			seconds := int64(probe.InitialDelaySeconds) + int64(probe.PeriodSeconds)*int64(probe.FailureThreshold)
			longest = max(longest, time.Duration(min(seconds, 3600))*time.Second)
		}
	}
	return longest
}

// count takes the status of a budget for stale that expects no pod and counts none as healthy,
// while one with a controller is ready: it was computed before the pod existed.
func count(budget *eviction.Budget, of *pod) {
	if budget.Failure == "" && budget.Expected == 0 && budget.Healthy == 0 && of.Ready && of.controller >= 0 {
		budget.Stale = true
	}
}

// recreation answers what becomes of a pod after its eviction.
func (b *builder) recreation(of *corev1.Pod, p *pod) recreation.Answer {
	if b.input.Workloads == nil {
		return recreation.Answer{Outcome: recreation.Unknown, Why: "may be recreated: workloads could not be read"}
	}
	answer := b.input.Workloads.Of(of)
	if controller := metav1.GetControllerOfNoCopy(of); controller != nil &&
		owner.KindOf(controller) == appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind() && p.Kept == "" {
		return recreation.Answer{Outcome: recreation.Lost, Why: "belongs to a DaemonSet that does not exist"}
	}
	if p.owner.Behavior == owner.Returns || answer.Outcome == recreation.Unknown && b.trusted(p) {
		answer = b.input.Workloads.Like(of) // by its operator
	}
	if answer.Outcome == recreation.Recreated && b.input.Creation != nil && !answer.Asked {
		return b.admitted(of, answer)
	}
	return answer
}

// admitted is the answer with what webhooks and policies say of the creation. They have admitted a pod of
// the same template if they are older than that, so that only one of another template depends on their answers.
func (b *builder) admitted(of *corev1.Pod, answer recreation.Answer) recreation.Answer {
	if answer.Pod == nil {
		by, last := b.creationLike(of), b.youngest[b.controller(of)]
		switch {
		case by.Outcome == eviction.Refused:
			return refused(by)
		case by.Outcome == eviction.Unknown && last.Before(&by.Since):
			return recreation.Answer{
				Outcome: recreation.Unknown, Why: "is older than what reviews its creation now: " + by.Why,
				Charges: answer.Charges,
			}
		}
		return answer
	}
	switch by := b.input.Creation.Of(answer.Pod); by.Outcome { //nolint:exhaustive // reviewers return no other outcome
	case eviction.Refused:
		return refused(by)
	case eviction.Unknown:
		return recreation.Answer{Outcome: recreation.Unknown, Why: "comes from a template that was changed since, and " + by.Why}
	default:
		return answer
	}
}

func refused(by reviewer.Answer) recreation.Answer {
	return recreation.Answer{Outcome: recreation.Refused, By: "the API server", Why: "cannot be created: " + by.Why}
}

// creationLike returns the response of webhooks and policies to the creation of a pod like this one, computed once
// for each controller.
func (b *builder) creationLike(pod *corev1.Pod) reviewer.Answer {
	controller := b.controller(pod)
	if known, ok := b.creations[controller]; ok && controller >= 0 {
		return known
	}
	answer := b.input.Creation.Of(pod)
	b.creations[controller] = answer
	return answer
}

func alike(of *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(of)
	if controller == nil {
		return false
	}
	kind := owner.KindOf(controller)
	return kind == appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind() ||
		kind == corev1.SchemeGroupVersion.WithKind("ReplicationController").GroupKind()
}

// stuck is why the deletion of a pod has not ended, although its grace period has.
func stuck(of *corev1.Pod, now time.Time) string {
	if of.DeletionTimestamp == nil || now.IsZero() || now.Before(of.DeletionTimestamp.Add(overdue)) {
		return ""
	}
	if len(of.Finalizers) > 0 {
		return "its finalizer " + of.Finalizers[0]
	}
	return "its kubelet"
}
