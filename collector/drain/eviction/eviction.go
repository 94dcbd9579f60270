// Package eviction answers: how does the API server respond to the eviction of a pod?
//
// [Of] returns the response, given a [Pod] and the budgets that select it, which [Budgets] finds. The rules come
// from kubectl's drain (pkg/drain/filters.go) and from the eviction subresource (kubernetes
// pkg/registry/core/pod/storage/eviction.go) of Kubernetes 1.37, without the rules of admission.
package eviction

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Outcome is the fate of a pod on a node that is drained.
type Outcome string

// The outcomes.
const (
	// KeptOnNode is a pod that is not evicted, and does not hinder the drain.
	KeptOnNode Outcome = "Kept"
	// Evicted pods are deleted at the first request.
	Evicted Outcome = "Evicted"
	// WaitsFor is a request that is refused now and repeated: it succeeds once other pods of
	// the budget are healthy.
	WaitsFor Outcome = "WaitsFor"
	// Never is a request that is refused as long as the objects are as they are.
	Never Outcome = "Never"
	// Refused is a request that admission refuses.
	Refused Outcome = "Refused"
	// Unknown is a request whose response depends on unknown facts.
	Unknown Outcome = "Unknown"
)

// Cause is why a request has its outcome.
type Cause string

// The causes.
const (
	// NotAsked is a pod that has not started, has ended or is being deleted: budgets are not read.
	NotAsked Cause = "NotAsked"
	// NoBudget is a pod that no budget selects.
	NoBudget Cause = "NoBudget"
	// Allowed is a budget that allows a disruption.
	Allowed Cause = "Allowed"
	// Unhealthy is a pod that is not ready and may be evicted by the budget's unhealthyPodEvictionPolicy.
	Unhealthy Cause = "Unhealthy"
	// SeveralBudgets is a pod that more than one budget selects: error 500.
	SeveralBudgets Cause = "SeveralBudgets"
	// StaleBudget is a budget whose status has an earlier generation: error 429.
	StaleBudget Cause = "StaleBudget"
	// NegativeBudget is a status with negative disruptionsAllowed: error 403.
	NegativeBudget Cause = "NegativeBudget"
	// TooManyDisrupted is a status with more than 2000 disrupted pods: error 403.
	TooManyDisrupted Cause = "TooManyDisrupted"
	// SyncFailed is a status that the disruption controller cannot compute: error 429.
	SyncFailed Cause = "SyncFailed"
	// RequiresAll is a budget that requires all expected pods to be healthy: error 429.
	RequiresAll Cause = "RequiresAll"
	// Unmanaged is a budget that expects no pods, since the pods that it selects have no controller: error 429.
	Unmanaged Cause = "Unmanaged"
	// TooFewHealthy is a budget with too few healthy pods at present: error 429.
	TooFewHealthy Cause = "TooFewHealthy"
)

// Answer is the answer to one request.
type Answer struct {
	Outcome Outcome
	Cause   Cause
}

// Of is the answer to the eviction of a pod that these budgets select: the first rule that
// matches, as in the API server.
func Of(pod Pod, budgets []*Budget) Answer {
	switch {
	case pod.Kept != "":
		return Answer{Outcome: KeptOnNode}
	case pod.Unstarted || pod.Ended || pod.Terminating:
		return Answer{Outcome: Evicted, Cause: NotAsked}
	case len(budgets) == 0:
		return Answer{Outcome: Evicted, Cause: NoBudget}
	case len(budgets) > 1:
		return Answer{Outcome: Never, Cause: SeveralBudgets}
	}
	budget := budgets[0]
	if !pod.Ready && (budget.AlwaysAllow || (budget.Healthy >= budget.Desired && budget.Desired > 0)) {
		return Answer{Outcome: Evicted, Cause: Unhealthy}
	}
	return budget.answer()
}

func (b *Budget) answer() Answer {
	switch {
	case b.Failure != "": // whose status keeps an earlier generation, or none
		return Answer{Outcome: Never, Cause: SyncFailed}
	case b.Stale:
		return Answer{Outcome: Unknown, Cause: StaleBudget}
	case b.Allowed < 0:
		return Answer{Outcome: Never, Cause: NegativeBudget}
	case b.Disrupted > maxDisrupted:
		return Answer{Outcome: WaitsFor, Cause: TooManyDisrupted}
	case b.Allowed > 0:
		return Answer{Outcome: Evicted, Cause: Allowed}
	}
	if cause := b.Permanent(); cause != "" {
		return Answer{Outcome: Never, Cause: cause}
	}
	return Answer{Outcome: WaitsFor, Cause: TooFewHealthy}
}

// Budgets finds the budgets that select a pod. Each is indexed by one label that it requires,
// so that a pod is not compared with all.
type Budgets struct {
	byNamespace map[string]*selection
	// Invalid are the budgets whose selector cannot be parsed, as namespace/name, in the
	// given order. The API server takes them for budgets that select nothing.
	Invalid []string
}

type selection struct {
	byLabel map[string][]selector
	// others require no particular label.
	others []selector
}

type selector struct {
	labels labels.Selector
	at     int
}

// NewBudgets indexes budgets. A selector {} selects all pods of the namespace, and none selects none (policy/v1).
func NewBudgets(budgets []policyv1.PodDisruptionBudget) *Budgets {
	index := &Budgets{byNamespace: map[string]*selection{}}
	for i := range budgets {
		budget := &budgets[i]
		matching, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			index.Invalid = append(index.Invalid, budget.Namespace+"/"+budget.Name)
			continue
		}
		in := index.byNamespace[budget.Namespace]
		if in == nil {
			in = &selection{byLabel: map[string][]selector{}}
			index.byNamespace[budget.Namespace] = in
		}
		in.add(budget.Spec.Selector, selector{labels: matching, at: i})
	}
	return index
}

func (s *selection) add(of *metav1.LabelSelector, added selector) {
	if of != nil {
		for key, value := range of.MatchLabels {
			label := key + "=" + value
			s.byLabel[label] = append(s.byLabel[label], added)
			return
		}
	}
	s.others = append(s.others, added)
}

// Of are the positions, in the list of NewBudgets, of the budgets that select a pod with these labels, sorted.
func (b *Budgets) Of(namespace string, pod map[string]string) []int {
	in := b.byNamespace[namespace]
	if in == nil {
		return nil
	}
	var found []int
	add := func(candidates []selector) {
		for _, candidate := range candidates {
			if candidate.labels.Matches(labels.Set(pod)) {
				found = append(found, candidate.at)
			}
		}
	}
	add(in.others)
	if len(in.byLabel) > 0 {
		for key, value := range pod {
			add(in.byLabel[key+"="+value])
		}
	}
	slices.Sort(found)
	return found
}

// Pod contains the fields that decide the outcome of an eviction, apart from budgets.
type Pod struct {
	// Ready is true if the condition Ready is true.
	Ready bool
	// Unstarted is true for a pod in phase Pending, and Ended for one in phase Succeeded or
	// Failed. The API server deletes both without looking at budgets.
	Unstarted, Ended bool
	Terminating      bool
	// Kept is why a drain does not evict the pod: KeptDaemonSet or KeptMirror; empty for all others.
	Kept Kept
}

// Kept is why a drain leaves a pod on its node.
type Kept string

// The reasons (kubectl pkg/drain/filters.go).
const (
	// KeptDaemonSet is a pod of a DaemonSet that exists.
	KeptDaemonSet Kept = "DaemonSet"
	// KeptMirror is the mirror of a static pod.
	KeptMirror Kept = "Mirror"
)

// PodOf returns the pod as an eviction sees it. daemonSet reports whether a DaemonSet exists; a drain with the
// option Force, such as MCO's, evicts the pods of a missing one. If nil, all exist.
func PodOf(pod *corev1.Pod, daemonSet func(namespace, name string) bool) Pod {
	return Pod{
		Ready:       Ready(pod),
		Unstarted:   pod.Status.Phase == corev1.PodPending,
		Ended:       pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Terminating: pod.DeletionTimestamp != nil,
		Kept:        keptOf(pod, daemonSet),
	}
}

// Ready reports whether the condition Ready of a pod is true.
func Ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

func keptOf(pod *corev1.Pod, daemonSet func(namespace, name string) bool) Kept {
	if _, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		return KeptMirror
	}
	// Only the kind is compared, and ended pods of a DaemonSet are deleted
	// (kubectl pkg/drain/filters.go, daemonSetFilter).
	owner := metav1.GetControllerOfNoCopy(pod)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if owner == nil || owner.Kind != "DaemonSet" || ended {
		return ""
	}
	if daemonSet != nil && !daemonSet(pod.Namespace, owner.Name) {
		return ""
	}
	return KeptDaemonSet
}

// maxDisrupted is how many evicted pods a budget may list before the API server refuses
// further evictions (kubernetes pkg/registry/core/pod/storage/eviction.go,
// MaxDisruptedPodSize).
const maxDisrupted = 2000

// Budget is the status of a PodDisruptionBudget, as the API server reads it. Evict and Recover
// change it as the disruption controller does.
type Budget struct {
	Namespace, Name string
	// Allowed, Healthy, Desired and Expected are disruptionsAllowed, currentHealthy,
	// desiredHealthy and expectedPods of the status.
	Allowed, Healthy, Desired, Expected int32
	// Disrupted counts the pods in status.disruptedPods.
	Disrupted int
	// Stale is true if the status has an earlier generation than the spec.
	Stale bool
	// AlwaysAllow is true for the unhealthyPodEvictionPolicy of that name.
	AlwaysAllow bool
	// MinAvailable and MaxUnavailable of the spec.
	MinAvailable, MaxUnavailable *intstr.IntOrString
	// Failure is the message of the condition with reason SyncFailed: the disruption
	// controller cannot compute the status, and sets disruptionsAllowed to 0 until it can.
	Failure string
}

// BudgetOf is the status of a budget.
func BudgetOf(budget *policyv1.PodDisruptionBudget) Budget {
	status := &budget.Status
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	found := Budget{
		Namespace: budget.Namespace, Name: budget.Name,
		Allowed: status.DisruptionsAllowed, Healthy: status.CurrentHealthy, Desired: status.DesiredHealthy, Expected: status.ExpectedPods,
		Disrupted: len(status.DisruptedPods), Stale: status.ObservedGeneration < budget.Generation,
		AlwaysAllow: policy != nil && *policy == policyv1.AlwaysAllow, MinAvailable: budget.Spec.MinAvailable,
		MaxUnavailable: budget.Spec.MaxUnavailable,
	}
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type == policyv1.DisruptionAllowedCondition && condition.Reason == policyv1.SyncFailedReason {
			found.Failure = condition.Message
			if found.Failure == "" {
				found.Failure = policyv1.SyncFailedReason
			}
		}
	}
	return found
}

// Permanent is why no healthy pod of the budget can ever be evicted while the spec and the
// number of replicas are as they are; empty if one can once enough pods are healthy.
func (b *Budget) Permanent() Cause {
	switch {
	case b.Failure != "":
		return SyncFailed
	case b.Stale:
		return "" // the status may say anything
	case b.Allowed < 0:
		return NegativeBudget
	case b.Allowed > 0:
		return ""
	case b.Expected <= 0:
		return Unmanaged
	case b.Desired >= b.Expected:
		return RequiresAll
	}
	return ""
}

// Evict takes a healthy pod from the budget, that was evicted or lost.
func (b *Budget) Evict() {
	b.Healthy--
	b.count()
}

// Recover adds a healthy pod to the budget: the replacement of one that was evicted.
func (b *Budget) Recover() {
	b.Healthy++
	b.count()
}

// Scaled reports whether the expected pods are the scale of the controllers of the pods: they are counted
// instead where spec.minAvailable is a number.
func (b *Budget) Scaled() bool {
	return b.MaxUnavailable != nil || b.MinAvailable != nil && b.MinAvailable.Type == intstr.String
}

// Expect changes the expected pods to the scale of the controllers that have pods, and ends a failure
// (kubernetes pkg/controller/disruption, getExpectedPodCount).
func (b *Budget) Expect(scale int32) {
	of, fewer := b.MinAvailable, false
	if b.MaxUnavailable != nil {
		of, fewer = b.MaxUnavailable, true
	}
	if of == nil {
		return
	}
	scaled, err := intstr.GetScaledValueFromIntOrPercent(of, int(scale), true)
	if err != nil {
		return
	}
	share := int32(scaled) //nolint:gosec // an int32 of the spec, or a percentage of the scale
	b.Failure, b.Expected, b.Desired = "", scale, share
	if fewer {
		b.Desired = max(0, scale-share)
	}
	b.count()
}

// count computes disruptionsAllowed (kubernetes pkg/controller/disruption, updatePdbStatus).
func (b *Budget) count() {
	switch {
	case b.Failure != "" || b.Expected <= 0:
		b.Allowed = 0
	default:
		b.Allowed = max(0, b.Healthy-b.Desired)
	}
}
