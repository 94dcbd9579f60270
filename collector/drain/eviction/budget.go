package eviction

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

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
	// Stale is true if the status is of an earlier generation of the spec.
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
		AlwaysAllow: policy != nil && *policy == policyv1.AlwaysAllow, MinAvailable: budget.Spec.MinAvailable, MaxUnavailable: budget.Spec.MaxUnavailable,
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
	b.Failure, b.Expected, b.Desired = "", scale, int32(scaled) //nolint:gosec // a share of the scale
	if fewer {
		b.Desired = max(0, scale-int32(scaled)) //nolint:gosec // a share of the scale
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
