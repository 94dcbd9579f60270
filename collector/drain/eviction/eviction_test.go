package eviction_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/eviction"
)

func TestOf(t *testing.T) {
	t.Parallel()
	type budgets = []*eviction.Budget
	ready := eviction.Pod{Ready: true}
	// status is a budget with these numbers.
	status := func(allowed, healthy, desired, expected int32, changes ...func(*eviction.Budget)) *eviction.Budget {
		budget := &eviction.Budget{Allowed: allowed, Healthy: healthy, Desired: desired, Expected: expected}
		for _, change := range changes {
			change(budget)
		}
		return budget
	}
	always := func(budget *eviction.Budget) { budget.AlwaysAllow = true }
	for name, tc := range map[string]struct {
		reason  string
		pod     eviction.Pod
		budgets budgets
		outcome eviction.Outcome
		cause   eviction.Cause
	}{
		"DaemonSet": {
			"a drain ignores pods of DaemonSets, whatever their budget",
			eviction.Pod{Ready: true, Kept: eviction.KeptDaemonSet},
			budgets{status(0, 3, 3, 3)},
			eviction.KeptOnNode, "",
		},
		"Mirror": {
			"a drain ignores static pods",
			eviction.Pod{Ready: true, Kept: eviction.KeptMirror},
			budgets{status(0, 3, 3, 3)},
			eviction.KeptOnNode, "",
		},
		"NoBudget": {"nothing protects the pod", ready, nil, eviction.Evicted, eviction.NoBudget},
		"Allowed":  {"the budget allows one", ready, budgets{status(1, 3, 2, 3)}, eviction.Evicted, eviction.Allowed},
		"Pending": {
			"a pod that has not started is deleted",
			eviction.Pod{Unstarted: true},
			budgets{status(0, 0, 1, 1)},
			eviction.Evicted,
			eviction.NotAsked,
		},
		"Ended": {
			"a pod that has ended is deleted",
			eviction.Pod{Ended: true},
			budgets{status(0, 0, 1, 1)},
			eviction.Evicted,
			eviction.NotAsked,
		},
		"Terminating": {
			"a pod that is being deleted is not protected",
			eviction.Pod{Terminating: true},
			budgets{status(0, 0, 1, 1)},
			eviction.Evicted, eviction.NotAsked,
		},
		"PendingSeveral": {
			"the phase is checked before the number of budgets",
			eviction.Pod{Unstarted: true},
			budgets{status(1, 3, 2, 3), status(1, 3, 2, 3)},
			eviction.Evicted, eviction.NotAsked,
		},
		"Several": {
			"two budgets refuse, although both allow", ready,
			budgets{status(1, 3, 2, 3), status(1, 3, 2, 3)},
			eviction.Never,
			eviction.SeveralBudgets,
		},
		"SeveralUnready": {
			"two budgets refuse an unready pod too",
			eviction.Pod{},
			budgets{status(1, 3, 2, 3, always), status(1, 3, 2, 3, always)},
			eviction.Never, eviction.SeveralBudgets,
		},
		"AlwaysAllow": {
			"an unready pod with AlwaysAllow",
			eviction.Pod{},
			budgets{status(0, 0, 1, 1, always)},
			eviction.Evicted,
			eviction.Unhealthy,
		},
		"IfHealthy": {
			"an unready pod while enough others are healthy",
			eviction.Pod{},
			budgets{status(0, 2, 2, 3)},
			eviction.Evicted,
			eviction.Unhealthy,
		},
		"IfHealthyNot": {
			"an unready pod while too few others are healthy",
			eviction.Pod{},
			budgets{status(0, 1, 2, 3)},
			eviction.WaitsFor,
			eviction.TooFewHealthy,
		},
		"DesiredZero": {
			"desiredHealthy 0 frees no unready pod",
			eviction.Pod{},
			budgets{status(0, 0, 0, 0)},
			eviction.Never,
			eviction.Unmanaged,
		},
		"Stale": {
			"the status is not that of the spec", ready,
			budgets{status(1, 3, 2, 3, func(b *eviction.Budget) { b.Stale = true })},
			eviction.Unknown, eviction.StaleBudget,
		},
		"Negative": {"another program wrote the status", ready, budgets{status(-1, 3, 2, 3)}, eviction.Never, eviction.NegativeBudget},
		"TooMany": {
			"more than 2000 pods are being evicted", ready,
			budgets{status(1, 3, 2, 3, func(b *eviction.Budget) { b.Disrupted = 2001 })},
			eviction.WaitsFor, eviction.TooManyDisrupted,
		},
		"SyncFailed": {
			"the status cannot be computed", ready,
			budgets{status(0, 3, 2, 3, func(b *eviction.Budget) { b.Failure = "no scale" })},
			eviction.Never, eviction.SyncFailed,
		},
		"RequiresAll": {"all pods are required", ready, budgets{status(0, 3, 3, 3)}, eviction.Never, eviction.RequiresAll},
		"Unmanaged":   {"the number of expected pods is unknown", ready, budgets{status(0, 1, 0, 0)}, eviction.Never, eviction.Unmanaged},
		"TooFew":      {"a sibling is not ready", ready, budgets{status(0, 2, 2, 3)}, eviction.WaitsFor, eviction.TooFewHealthy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := eviction.Of(tc.pod, tc.budgets)
			if got.Outcome != tc.outcome || got.Cause != tc.cause {
				t.Errorf("%s: got %+v, want %s %s", tc.reason, got, tc.outcome, tc.cause)
			}
		})
	}
}

func TestBudgetIsCountedAsByItsController(t *testing.T) {
	t.Parallel()
	budget := &eviction.Budget{Allowed: 1, Healthy: 3, Desired: 2, Expected: 3}
	if budget.Evict(); budget.Allowed != 0 {
		t.Errorf("after an eviction %+v, want none allowed", *budget)
	}
	if budget.Recover(); budget.Allowed != 1 {
		t.Errorf("after a replacement is ready %+v, want one allowed", *budget)
	}
	failed := &eviction.Budget{Healthy: 3, Desired: 2, Expected: 3, Failure: "no scale"}
	if failed.Recover(); failed.Allowed != 0 {
		t.Errorf("a status that cannot be computed allows %d, want 0", failed.Allowed)
	}
}

func TestPodOf(t *testing.T) {
	t.Parallel()
	owned := func(kind string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "p",
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "owner", Controller: new(true)}},
		}}
	}
	none := func(string, string) bool { return false }
	mirror := owned("Node")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	ended := owned("DaemonSet")
	ended.Status.Phase = corev1.PodFailed
	ready := owned("ReplicaSet")
	ready.Status = corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	for name, tc := range map[string]struct {
		reason    string
		pod       *corev1.Pod
		daemonSet func(namespace, name string) bool
		want      eviction.Pod
	}{
		"DaemonSet":      {"its DaemonSet exists", owned("DaemonSet"), nil, eviction.Pod{Kept: eviction.KeptDaemonSet}},
		"Orphan":         {"MCO's drain deletes the pods of a DaemonSet that is gone", owned("DaemonSet"), none, eviction.Pod{}},
		"EndedDaemonSet": {"ended pods are deleted, whatever their owner", ended, nil, eviction.Pod{Ended: true}},
		"Mirror":         {"the annotation makes a mirror", mirror, nil, eviction.Pod{Kept: eviction.KeptMirror}},
		"Ready":          {"a pod that runs", ready, nil, eviction.Pod{Ready: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, eviction.PodOf(tc.pod, tc.daemonSet)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBudgetsOfAPod(t *testing.T) {
	t.Parallel()
	selecting := func(namespace, name string, selector *metav1.LabelSelector) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector},
		}
	}
	index := eviction.NewBudgets([]policyv1.PodDisruptionBudget{
		selecting("shop", "all", &metav1.LabelSelector{}),
		selecting("shop", "cart", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}}),
		selecting("shop", "nothing", nil),
		selecting("shop", "invalid", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}),
		selecting("other", "cart", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}}),
		selecting("shop", "exists", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key:      "tier",
			Operator: metav1.LabelSelectorOpExists,
		}}}),
	})
	for name, tc := range map[string]struct {
		reason, namespace string
		labels            map[string]string
		want              []int
	}{
		"Labels":     {"the empty selector, and the one with its label", "shop", map[string]string{"app": "cart", "x": "y"}, []int{0, 1}},
		"Expression": {"a selector without labels", "shop", map[string]string{"tier": "web"}, []int{0, 5}},
		"Other":      {"budgets of another namespace do not count", "other", map[string]string{"app": "cart"}, []int{4}},
		"None":       {"a namespace without budgets", "none", map[string]string{"app": "cart"}, nil},
	} {
		if diff := cmp.Diff(tc.want, index.Of(tc.namespace, tc.labels)); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s", name, tc.reason, diff)
		}
	}
	if diff := cmp.Diff([]string{"shop/invalid"}, index.Invalid); diff != "" {
		t.Errorf("invalid selectors: -want +got:\n%s", diff)
	}
}
