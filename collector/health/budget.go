package health

import (
	"fmt"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// budgetState is what the status of a PodDisruptionBudget comes to: whether a
// pod can be evicted, and if not, why not.
type budgetState string

const (
	// letsGo means that a pod can be evicted now.
	letsGo budgetState = ""
	// selectsNothing means that there is no pod to evict.
	selectsNothing budgetState = "SelectsNothing"
	// never means that as many pods have to be healthy as there are to be.
	never budgetState = "NeverSatisfied"
	// notNow means that too many pods are not healthy.
	notNow budgetState = "NotSatisfiedNow"
	// unmanagedPods means that the budget has pods that no controller made, and
	// cannot tell how many there are to be.
	unmanagedPods budgetState = "UnmanagedPods"
	// syncFailed means that the disruption controller could not work out the
	// status, and allows no eviction until it can.
	syncFailed budgetState = "SyncFailed"
	// stale means that the status is of an earlier spec.
	stale budgetState = "StaleStatus"
	// invalid means that the status cannot be.
	invalid budgetState = "InvalidStatus"
)

func (s budgetState) outcome() preflight.Outcome {
	switch s {
	case letsGo, selectsNothing:
		return preflight.Pass
	case stale, invalid:
		return preflight.Unknown
	case never, notNow, unmanagedPods, syncFailed:
		return preflight.Fail
	}
	return preflight.Unknown
}

// stateOf judges a budget as the API server does when it is asked to evict
// (kubernetes pkg/registry/core/pod/storage/eviction.go), by the numbers of the
// disruption controller (pkg/controller/disruption).
func stateOf(budget *policyv1.PodDisruptionBudget) budgetState {
	status := &budget.Status
	switch {
	case syncCondition(budget) != nil:
		return syncFailed
	case status.ObservedGeneration < budget.Generation:
		return stale
	case min(status.DisruptionsAllowed, status.ExpectedPods, status.CurrentHealthy, status.DesiredHealthy) < 0:
		return invalid
	case status.DisruptionsAllowed > 0:
		return letsGo
	case status.ExpectedPods == 0 && status.CurrentHealthy == 0:
		return selectsNothing
	case status.ExpectedPods == 0:
		return unmanagedPods
	case status.DesiredHealthy >= status.ExpectedPods:
		return never
	case alwaysAllows(budget) && status.CurrentHealthy == 0:
		return letsGo // all of its pods are unhealthy, and those may go
	}
	return notNow
}

// syncCondition is the condition that says that the status is not right.
func syncCondition(budget *policyv1.PodDisruptionBudget) *metav1.Condition {
	for i := range budget.Status.Conditions {
		condition := &budget.Status.Conditions[i]
		if condition.Type == policyv1.DisruptionAllowedCondition && condition.Reason == policyv1.SyncFailedReason {
			return condition
		}
	}
	return nil
}

func alwaysAllows(budget *policyv1.PodDisruptionBudget) bool {
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	return policy != nil && *policy == policyv1.AlwaysAllow
}

func describeBudget(budget *policyv1.PodDisruptionBudget, state budgetState) finding.Finding {
	f := finding.Finding{Finding: preflight.Finding{
		Name:    "PodDisruptionBudget-" + budget.Namespace + "." + budget.Name,
		Reason:  string(state),
		Objects: []preflight.Object{budgetObject(budget.Namespace, budget.Name)},
	}}
	status := budget.Status
	subject := fmt.Sprintf("PodDisruptionBudget %s/%s", budget.Namespace, budget.Name)
	edit := fmt.Sprintf("oc -n %s edit poddisruptionbudget %s", budget.Namespace, budget.Name)
	pods := fmt.Sprintf("oc -n %s get pods", budget.Namespace)
	describe := fmt.Sprintf("oc -n %s describe poddisruptionbudget %s", budget.Namespace, budget.Name)
	switch state {
	case never:
		f.Message = fmt.Sprintf("%s wants %d healthy pods of the %d that there are to be (%s), so none of them can ever be evicted, and no node that has one can be drained",
			subject, status.DesiredHealthy, status.ExpectedPods, limit(budget))
		f.Remediation = "Let one of them go, such as with maxUnavailable: 1, or have more replicas than it wants: " + edit
	case notNow:
		f.Message = fmt.Sprintf("%s wants %d healthy pods (%s), and of %d there are %d, so no healthy one can be evicted now; %s",
			subject, status.DesiredHealthy, limit(budget), status.ExpectedPods, status.CurrentHealthy, unhealthy(budget))
		f.Remediation = fmt.Sprintf("Find out why %d of its pods are not healthy, and wait until they are: %s; %s",
			max(status.ExpectedPods-status.CurrentHealthy, 0), describe, pods)
	case unmanagedPods:
		f.Message = fmt.Sprintf("%s selects %d healthy pods that no controller made, and with %s it cannot tell how many there are to be, so none of them can be evicted",
			subject, status.CurrentHealthy, limit(budget))
		f.Remediation = "Give it a whole number as minAvailable, or have a controller make the pods: " + edit
	case syncFailed:
		f.Message = fmt.Sprintf("the status of %s could not be worked out, and until it is no pod of it can be evicted: %s", subject, short(syncCondition(budget).Message))
		f.Remediation = "Put right what the message names: " + describe
	case stale:
		f.Message = fmt.Sprintf("the status of %s is of generation %d, but its spec is of generation %d, so it tells of an earlier state",
			subject, status.ObservedGeneration, budget.Generation)
		f.Remediation = "Wait until the disruption controller has caught up, then run the preflight again. See whether it runs: oc -n openshift-kube-controller-manager get pods"
	case invalid, letsGo, selectsNothing:
		f.Message = fmt.Sprintf("the status of %s has a negative number: disruptionsAllowed %d, expectedPods %d, currentHealthy %d, desiredHealthy %d",
			subject, status.DisruptionsAllowed, status.ExpectedPods, status.CurrentHealthy, status.DesiredHealthy)
		f.Remediation = "See who writes it: " + describe
	}
	return f
}

// limit is what the budget asks for, as it is spelled.
func limit(budget *policyv1.PodDisruptionBudget) string {
	switch {
	case budget.Spec.MaxUnavailable != nil:
		return "maxUnavailable: " + budget.Spec.MaxUnavailable.String()
	case budget.Spec.MinAvailable != nil:
		return "minAvailable: " + budget.Spec.MinAvailable.String()
	}
	return "neither minAvailable nor maxUnavailable"
}

// unhealthy says what the budget does with its unhealthy pods.
func unhealthy(budget *policyv1.PodDisruptionBudget) string {
	switch {
	case alwaysAllows(budget):
		return "unhealthy ones can (unhealthyPodEvictionPolicy: AlwaysAllow)"
	case budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0:
		return "unhealthy ones can, while the others stay healthy (unhealthyPodEvictionPolicy: IfHealthyBudget)"
	}
	return "nor can an unhealthy one that runs (unhealthyPodEvictionPolicy: IfHealthyBudget)"
}

// ofOpenShift says whether a namespace belongs to the cluster itself.
func ofOpenShift(namespace string) bool {
	return strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-") || namespace == "openshift"
}
