package health

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameBudget = finding.NewName("PodDisruptionBudget",
		"A finding of the check Drain about a PodDisruptionBudget that allows no eviction: "+
			"PodDisruptionBudget-<namespace>.<name>.")

	reasonSelectsNothing = finding.NewReason("SelectsNothing", finding.Explanation{
		Meaning: "Reported when PodDisruptionBudgets select no pods. They do not block a drain, but protect nothing.",
		Cause:   "A wrong selector, or a workload that is scaled to zero.",
		Remedy:  "Check the selectors: `oc get poddisruptionbudgets --all-namespaces`.",
	})
	reasonNeverSatisfied = finding.NewReason("NeverSatisfied", finding.Explanation{
		Meaning: "Reported when a PodDisruptionBudget requires all expected pods to be healthy, so that none can ever be evicted.",
		Cause:   "MaxUnavailable is 0, or minAvailable is the number of replicas.",
		Remedy:  "Allow one pod to be unavailable, or add replicas: `oc -n NAMESPACE edit poddisruptionbudget NAME`.",
	})
	reasonNotSatisfiedNow = finding.NewReason("NotSatisfiedNow", finding.Explanation{
		Meaning: "Reported when too few pods of a PodDisruptionBudget are healthy, so that no healthy pod can be evicted now.",
		Cause:   "Pods of the workload are not ready.",
		Remedy:  "Check why the pods are not healthy: `oc -n NAMESPACE describe poddisruptionbudget NAME`.",
	})
	reasonUnmanagedPods = finding.NewReason("UnmanagedPods", finding.Explanation{
		Meaning: "Reported when a PodDisruptionBudget selects pods without a controller, and cannot compute how many are expected.",
		Cause:   "The budget has maxUnavailable or a percentage, and the pods have no controller.",
		Remedy: "Give the budget a whole number as minAvailable, or create the pods by a controller: `oc -n NAMESPACE " +
			"edit poddisruptionbudget NAME`.",
	})
	reasonSyncFailed = finding.NewReason("SyncFailed", finding.Explanation{
		Meaning: "Reported when the disruption controller could not compute the status of a PodDisruptionBudget, so that " +
			"none of its pods can be evicted.",
		Cause:  "The message has the error of the controller.",
		Remedy: "Fix what the message names: `oc -n NAMESPACE describe poddisruptionbudget NAME`.",
	})
	reasonInvalidStatus = finding.NewReason("InvalidStatus", finding.Explanation{
		Meaning: "Reported when the status of a PodDisruptionBudget has a negative number.",
		Cause:   "Another program than the disruption controller wrote the status.",
		Remedy:  "Check which program writes the status: `oc -n NAMESPACE describe poddisruptionbudget NAME`.",
	})
)

// evictable is the state of a PodDisruptionBudget that allows an eviction now.
var evictable finding.Reason //nolint:gochecknoglobals // the zero value, with a name

// stateOf is the state of a PodDisruptionBudget: why no pod of it can be evicted, or
// evictable. It judges as the API server does for an eviction (kubernetes
// pkg/registry/core/pod/storage/eviction.go), by the numbers of the disruption
// controller (pkg/controller/disruption).
func stateOf(budget *policyv1.PodDisruptionBudget) finding.Reason {
	status := &budget.Status
	switch {
	case syncCondition(budget) != nil:
		return reasonSyncFailed
	case status.ObservedGeneration < budget.Generation:
		return check.ReasonStaleStatus
	case min(status.DisruptionsAllowed, status.ExpectedPods, status.CurrentHealthy, status.DesiredHealthy) < 0:
		return reasonInvalidStatus
	case status.DisruptionsAllowed > 0:
		return evictable
	case status.ExpectedPods == 0 && status.CurrentHealthy == 0:
		return reasonSelectsNothing
	case status.ExpectedPods == 0:
		return reasonUnmanagedPods
	case status.DesiredHealthy >= status.ExpectedPods:
		return reasonNeverSatisfied
	case alwaysAllows(budget) && status.CurrentHealthy == 0:
		return evictable // all of its pods are unhealthy, and those can be evicted
	}
	return reasonNotSatisfiedNow
}

// budgetOutcome is the outcome of a state in which no pod can be evicted.
func budgetOutcome(state finding.Reason) preflight.Outcome {
	if state == check.ReasonStaleStatus || state == reasonInvalidStatus {
		return preflight.Unknown
	}
	return preflight.Fail
}

// syncCondition is the condition of a status that could not be computed.
func syncCondition(budget *policyv1.PodDisruptionBudget) *metav1.Condition {
	for i := range budget.Status.Conditions {
		condition := &budget.Status.Conditions[i]
		if condition.Type == policyv1.DisruptionAllowedCondition && condition.Reason == policyv1.SyncFailedReason {
			return condition
		}
	}
	return nil
}

// Undrainable describes each PodDisruptionBudget of which no pod can be evicted at
// present, so that the drain of a node with one of its pods waits, in the given order.
func Undrainable(budgets []policyv1.PodDisruptionBudget) []string {
	var found []string
	for i := range budgets {
		state := stateOf(&budgets[i])
		if state == evictable || state == reasonSelectsNothing {
			continue
		}
		found = append(found, fmt.Sprintf("PodDisruptionBudget %s/%s allows no disruption (%s): the drain of a node with one of its pods waits",
			budgets[i].Namespace, budgets[i].Name, state))
	}
	return found
}

func alwaysAllows(budget *policyv1.PodDisruptionBudget) bool {
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	return policy != nil && *policy == policyv1.AlwaysAllow
}

// describeBudget is the finding of a budget in a state in which no pod can be
// evicted.
func describeBudget(budget *policyv1.PodDisruptionBudget, state finding.Reason) finding.Finding {
	describe := map[finding.Reason]func(*policyv1.PodDisruptionBudget, string) finding.Finding{
		reasonNeverSatisfied: neverSatisfied, reasonNotSatisfiedNow: notSatisfiedNow, reasonUnmanagedPods: unmanagedPods,
		reasonSyncFailed: syncFailed, check.ReasonStaleStatus: staleBudget, reasonInvalidStatus: invalidStatus,
	}[state]
	object := budgetObject(budget.Namespace, budget.Name)
	return describe(budget, check.Describe(object)).
		Named(nameBudget + "-" + budget.Namespace + "." + budget.Name).
		About(object)
}

func neverSatisfied(budget *policyv1.PodDisruptionBudget, subject string) finding.Finding {
	return finding.Fail(reasonNeverSatisfied, "%s requires %d healthy pods of %d expected (%s), so none of them can ever be evicted, and no node with one can be drained",
		subject, budget.Status.DesiredHealthy, budget.Status.ExpectedPods, limit(budget)).
		Remedy("Allow one of the pods to be unavailable, for example with maxUnavailable: 1, or have more replicas than the budget requires.").
		Do(edit(budget))
}

func notSatisfiedNow(budget *policyv1.PodDisruptionBudget, subject string) finding.Finding {
	status := budget.Status
	return finding.Fail(reasonNotSatisfiedNow, "%s requires %d healthy pods (%s), and %d of %d are healthy, so no healthy pod can be evicted now; %s",
		subject, status.DesiredHealthy, limit(budget), status.CurrentHealthy, status.ExpectedPods, unhealthy(budget)).
		Remedy("Check why %d of its pods are not healthy, and wait until they are.", max(status.ExpectedPods-status.CurrentHealthy, 0)).
		Do(describeAction(budget), finding.Run("oc -n %s get pods", budget.Namespace))
}

func unmanagedPods(budget *policyv1.PodDisruptionBudget, subject string) finding.Finding {
	return finding.Fail(reasonUnmanagedPods, "%s selects %d healthy pods without a controller, and with %s the number of expected pods is unknown, so none of them can be evicted",
		subject, budget.Status.CurrentHealthy, limit(budget)).
		Remedy("Give the budget a whole number as minAvailable, or create the pods by a controller.").
		Do(edit(budget))
}

func syncFailed(budget *policyv1.PodDisruptionBudget, subject string) finding.Finding {
	return finding.Fail(reasonSyncFailed, "the status of %s could not be computed, and until it is no pod of it can be evicted: %s",
		subject, words.Line(syncCondition(budget).Message, maxQuoted)).
		Remedy("Fix what the message names.").
		Do(describeAction(budget))
}

func staleBudget(budget *policyv1.PodDisruptionBudget, _ string) finding.Finding {
	f, _ := check.Stale(budgetObject(budget.Namespace, budget.Name), budget.Status.ObservedGeneration, budget.Generation)
	return f.Do(finding.Run("oc -n openshift-kube-controller-manager get pods"))
}

func invalidStatus(budget *policyv1.PodDisruptionBudget, subject string) finding.Finding {
	status := budget.Status
	return finding.Unknown(reasonInvalidStatus, "the status of %s has a negative number: disruptionsAllowed %d, expectedPods %d, currentHealthy %d, desiredHealthy %d",
		subject, status.DisruptionsAllowed, status.ExpectedPods, status.CurrentHealthy, status.DesiredHealthy).
		Remedy("Check which program writes the status.").
		Do(describeAction(budget))
}

func edit(budget *policyv1.PodDisruptionBudget) finding.Action {
	return finding.Run("oc -n %s edit poddisruptionbudget %s", budget.Namespace, budget.Name)
}

func describeAction(budget *policyv1.PodDisruptionBudget) finding.Action {
	return finding.Run("oc -n %s describe poddisruptionbudget %s", budget.Namespace, budget.Name)
}

// limit is the limit of the budget, as in its spec.
func limit(budget *policyv1.PodDisruptionBudget) string {
	switch {
	case budget.Spec.MaxUnavailable != nil:
		return "maxUnavailable: " + budget.Spec.MaxUnavailable.String()
	case budget.Spec.MinAvailable != nil:
		return "minAvailable: " + budget.Spec.MinAvailable.String()
	}
	return "neither minAvailable nor maxUnavailable"
}

// unhealthy is whether unhealthy pods of the budget can be evicted.
func unhealthy(budget *policyv1.PodDisruptionBudget) string {
	switch {
	case alwaysAllows(budget):
		return "unhealthy pods can (unhealthyPodEvictionPolicy: AlwaysAllow)"
	case budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0:
		return "unhealthy pods can, while the others stay healthy (unhealthyPodEvictionPolicy: IfHealthyBudget)"
	}
	return "nor can an unhealthy pod that runs (unhealthyPodEvictionPolicy: IfHealthyBudget)"
}

func budgetObject(namespace, name string) finding.Object {
	return finding.Object{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget", Namespace: namespace, Name: name}
}
