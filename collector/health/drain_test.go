package health_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	budgetsPath = "/apis/policy/v1/poddisruptionbudgets"
	podsPath    = "/api/v1/namespaces/shop/pods"
	allPodsPath = "/api/v1/pods"
)

// budget selects the pods with the label app=<name> in namespace "shop"; its status
// has these numbers of expected, desired and healthy pods.
func budget(name string, expected, desired, current int32, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 2},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(desired)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: expected, DesiredHealthy: desired, CurrentHealthy: current},
	}
	if expected > 0 {
		budget.Status.DisruptionsAllowed = max(current-desired, 0)
	}
	for _, change := range changes {
		change(budget)
	}
	return budget
}

func in(namespace string) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) { budget.Namespace = namespace }
}

func maxUnavailable(value string) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, new(intstr.Parse(value))
	}
}

func alwaysAllow(budget *policyv1.PodDisruptionBudget) {
	budget.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
}

func observed(generation int64) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) { budget.Status.ObservedGeneration = generation }
}

func notSynced(message string) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) {
		budget.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: message,
		}}
	}
}

// selecting replaces the selector.
func selecting(pairs ...string) func(*policyv1.PodDisruptionBudget) {
	return func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(pairs...)}
	}
}

func labelsOf(pairs ...string) map[string]string {
	labels := map[string]string{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		labels[key] = value
	}
	return labels
}

// pod has these labels.
func pod(name string, pairs ...string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labelsOf(pairs...)}}
}

// with is the server with these budgets and pods. A real server would overwrite the
// status of the budgets.
func with(t *testing.T, budgets []*policyv1.PodDisruptionBudget, pods ...*metav1.PartialObjectMetadata) checktest.Server {
	t.Helper()
	return server.Responding(map[string]checktest.Response{
		budgetsPath: checktest.Pages(t, "policy/v1", "PodDisruptionBudgetList", budgets),
		podsPath:    checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList", pods),
	})
}

func TestDrain(t *testing.T) {
	type budgets = []*policyv1.PodDisruptionBudget
	one := func(reason string, outcome preflight.Outcome) results {
		return results{"PodDisruptionBudget-shop.cart": result(outcome, reason)}
	}
	fine := results{"Drain": result(preflight.Pass, "AsExpected")}
	for name, tc := range map[string]struct {
		reason  string
		budgets budgets
		message string // a part of it
		want    results
	}{
		"None": {reason: "no budget prevents an eviction", want: fine},
		"Fine": {
			reason: "one pod can be evicted", budgets: budgets{budget("cart", 3, 2, 3), budget("shelf", 3, 2, 3, in("openshift-shelf"))}, message: "none of 2", want: fine,
		},
		"MaxUnavailable0": {
			reason: "no pod can ever be evicted", budgets: budgets{budget("cart", 3, 3, 3, maxUnavailable("0"))},
			message: "requires 3 healthy pods of 3 expected (maxUnavailable: 0), so none of them can ever be evicted",
			want:    one("NeverSatisfied", preflight.Fail),
		},
		"MinAvailableIsReplicas": {
			reason: "minAvailable is the number of replicas, which MUO accepts", budgets: budgets{budget("cart", 1, 1, 1)}, message: "(minAvailable: 1)", want: one("NeverSatisfied", preflight.Fail),
		},
		"MinAvailableBeyondReplicas": {reason: "minAvailable is more than the number of replicas", budgets: budgets{budget("cart", 2, 5, 2)}, want: one("NeverSatisfied", preflight.Fail)},
		"MinAvailableRoundedUp": {
			reason: "80% of 3 is rounded up to 3", want: one("NeverSatisfied", preflight.Fail), message: "(minAvailable: 80%)",
			budgets: budgets{budget("cart", 3, 3, 3, func(budget *policyv1.PodDisruptionBudget) { budget.Spec.MinAvailable = new(intstr.FromString("80%")) })},
		},
		"NeverThoughUnhealthyMayGo": {
			reason: "once the pods are healthy none can be evicted", budgets: budgets{budget("cart", 1, 1, 0, alwaysAllow)}, want: one("NeverSatisfied", preflight.Fail),
		},
		"NotNow": {
			reason: "with two more healthy pods one can be evicted", budgets: budgets{budget("cart", 4, 3, 2)},
			message: "requires 3 healthy pods (minAvailable: 3), and 2 of 4 are healthy, so no healthy pod can be evicted now; nor can an unhealthy pod that runs",
			want:    one("NotSatisfiedNow", preflight.Fail),
		},
		"NotNowByOne": {
			reason: "unhealthy pods can be evicted while enough others are healthy", budgets: budgets{budget("cart", 4, 3, 3)},
			message: "unhealthy pods can, while the others stay healthy (unhealthyPodEvictionPolicy: IfHealthyBudget)", want: one("NotSatisfiedNow", preflight.Fail),
		},
		"NotNowButAlwaysAllow": {
			reason: "unhealthy pods can be evicted", budgets: budgets{budget("cart", 4, 3, 2, alwaysAllow)},
			message: "unhealthy pods can (unhealthyPodEvictionPolicy: AlwaysAllow)", want: one("NotSatisfiedNow", preflight.Fail),
		},
		"AllUnhealthyAndAlwaysAllow": {reason: "all pods can be evicted", budgets: budgets{budget("cart", 4, 3, 0, alwaysAllow)}, want: fine},
		"AllUnhealthyOfAnyNumber": {
			reason: "a budget that requires no healthy pod protects unhealthy pods", budgets: budgets{budget("cart", 2, 0, 0)}, want: one("NotSatisfiedNow", preflight.Fail),
		},
		"SelectsNothing": {
			reason: "there is no pod to evict", budgets: budgets{budget("cart", 0, 1, 0), budget("shelf", 0, 1, 0)}, message: "none of 2",
			want: results{"Drain": result(preflight.Pass, "AsExpected"), "PodDisruptionBudgetsUnused": result(preflight.Warn, "SelectsNothing")},
		},
		"OpenShiftSelectsNothing": {
			reason: "unused budgets of OpenShift are no warning", budgets: budgets{budget("a", 0, 1, 0, in("openshift-a")), budget("b", 0, 1, 0, in("kube-b"))},
			want: fine,
		},
		"OpenShiftNotNow": {
			reason: "budgets of OpenShift block a drain too", budgets: budgets{budget("etcd", 3, 2, 2, in("openshift-etcd"))},
			want: results{"PodDisruptionBudget-openshift-etcd.etcd": result(preflight.Fail, "NotSatisfiedNow")},
		},
		"UnmanagedPods": {
			reason: "a percentage of pods without a controller", budgets: budgets{budget("cart", 0, 0, 2, maxUnavailable("50%"))},
			message: "selects 2 healthy pods without a controller, and with maxUnavailable: 50%", want: one("UnmanagedPods", preflight.Fail),
		},
		"SyncFailed": {
			reason: "without a status no pod can be evicted", budgets: budgets{budget("cart", 0, 0, 0, observed(0), notSynced("found no controllers for pod \"x\""))},
			message: `found no controllers for pod "x"`, want: one("SyncFailed", preflight.Fail),
		},
		"Stale": {
			reason: "the status is older than the spec", budgets: budgets{budget("cart", 3, 1, 3, observed(1))},
			message: "of generation 1, but its spec is of generation 2", want: one("StaleStatus", preflight.Unknown),
		},
		"New": {reason: "the controller has not computed the status yet", budgets: budgets{budget("cart", 0, 0, 0, observed(0))}, want: one("StaleStatus", preflight.Unknown)},
		"Negative": {
			reason: "a negative number is invalid", budgets: budgets{budget("cart", 3, -1, 3)}, message: "desiredHealthy -1", want: one("InvalidStatus", preflight.Unknown),
		},
		"WithoutSpec": {
			reason: "a budget without a spec is reported", want: one("NeverSatisfied", preflight.Fail), message: "neither minAvailable nor maxUnavailable",
			budgets: budgets{budget("cart", 3, 3, 3, func(budget *policyv1.PodDisruptionBudget) { budget.Spec = policyv1.PodDisruptionBudgetSpec{} })},
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := checktest.Run(t, health.Drain(), with(t, tc.budgets).Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.message)
			}
		})
	}
}

func TestDrainWithSeveralBudgets(t *testing.T) {
	type budgets = []*policyv1.PodDisruptionBudget
	type pods = []*metav1.PartialObjectMetadata
	fine := results{"Drain": result(preflight.Pass, "AsExpected")}
	contended := results{"PodDisruptionBudgets-shop.a": result(preflight.Fail, "SeveralBudgets")}
	mirror, deleting, daemon := pod("p", "app=a", "tier=b"), pod("p", "app=a", "tier=b"), pod("p", "app=a", "tier=b")
	mirror.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"}
	deleting.DeletionTimestamp = new(metav1.Now())
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
	crossing := budgets{budget("a", 3, 1, 3), budget("b", 3, 1, 3, selecting("tier=b"))}
	expressed := func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
	}
	unreadable := func(budget *policyv1.PodDisruptionBudget) {
		budget.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
	}
	for name, tc := range map[string]struct {
		reason  string
		budgets budgets
		pods    pods
		message string // a part of it
		listed  bool   // whether pods are listed
		want    results
	}{
		"Apart": {
			reason: "each requires another value of one label", budgets: budgets{budget("a", 3, 1, 3), budget("b", 3, 1, 3), budget("c", 3, 1, 3)}, want: fine,
		},
		"OneAlone": {reason: "there is no other budget", budgets: budgets{budget("a", 3, 1, 3)}, want: fine},
		"OtherUnused": {reason: "the other budget has no pods", budgets: budgets{budget("a", 3, 1, 3), budget("b", 0, 1, 0, selecting())}, want: results{
			"Drain": result(preflight.Pass, "AsExpected"), "PodDisruptionBudgetsUnused": result(preflight.Warn, "SelectsNothing"),
		}},
		"Crossing": {
			reason: "two pods have the labels of both", budgets: crossing, pods: pods{pod("p", "app=a", "tier=b"), pod("q", "app=a"), pod("r", "tier=b"), pod("s", "tier=b", "app=a")}, listed: true,
			message: `the PodDisruptionBudgets a, b in namespace "shop" select the same pods, 2 of them, such as "p"`, want: contended,
		},
		"NotCrossing": {reason: "no pod has the labels of both", budgets: crossing, pods: pods{pod("q", "app=a"), pod("r", "tier=b")}, listed: true, want: fine},
		"Same": {
			reason: "a copy of a budget", budgets: budgets{budget("a", 3, 1, 3), budget("b", 3, 1, 3, selecting("app=a"))}, pods: pods{pod("p", "app=a")}, listed: true,
			want: contended,
		},
		"Everything": {
			reason: "an empty selector selects all", budgets: budgets{budget("a", 3, 1, 3), budget("b", 3, 1, 3, selecting())}, pods: pods{pod("p", "app=a")}, listed: true,
			want: contended,
		},
		"Expression": {
			reason: "a selector may have an expression only", budgets: budgets{budget("a", 3, 1, 3), budget("b", 3, 1, 3, expressed)}, pods: pods{pod("p", "app=a")}, listed: true,
			want: contended,
		},
		"NotDrained": {reason: "a drain does not evict these pods", budgets: crossing, pods: pods{mirror, deleting, daemon}, listed: true, want: fine},
		"Many": {
			reason: "the message names the first five", message: "a, b, c, d, e in namespace", listed: true, pods: pods{pod("p", "app=a")}, want: contended,
			budgets: budgets{
				budget("c", 3, 1, 3, selecting("app=a")), budget("f", 3, 1, 3, selecting("app=a")), budget("b", 3, 1, 3, selecting("app=a")),
				budget("a", 3, 1, 3), budget("e", 3, 1, 3, selecting("app=a")), budget("d", 3, 1, 3, selecting("app=a")),
			},
		},
		"Unreadable": {
			reason: "a selector that cannot be parsed is inconclusive, and the others are reported", budgets: budgets{budget("a", 1, 1, 1), budget("b", 3, 1, 3, selecting(), unreadable)},
			message: "shop/a requires 1 healthy",
			want:    results{"PodDisruptionBudget-shop.a": result(preflight.Fail, "NeverSatisfied"), "Drain": result(preflight.Unknown, "Error")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var listed atomic.Bool
			list := checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList", tc.pods)
			counted := with(t, tc.budgets).Responding(map[string]checktest.Response{podsPath: func(request *http.Request) (int, []byte) {
				listed.Store(true)
				if fields := request.URL.Query().Get("fieldSelector"); !strings.Contains(fields, "status.phase!=Pending") {
					t.Errorf("pods without a phase that needs a budget are listed: %q", fields)
				}
				return list(request)
			}})
			findings := checktest.Run(t, health.Drain(), counted.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.message)
			}
			if listed.Load() != tc.listed {
				t.Errorf("%s: pods were listed: %t, want %t", tc.reason, listed.Load(), tc.listed)
			}
		})
	}
}

func TestDrainTopology(t *testing.T) {
	never := []*policyv1.PodDisruptionBudget{budget("cart", 1, 1, 1)}
	blocked := results{"PodDisruptionBudget-shop.cart": result(preflight.Fail, "NeverSatisfied")}
	for name, tc := range map[string]struct {
		reason   string
		topology configv1.TopologyMode
		want     results
	}{
		"SingleNode": {"a single node is not drained", configv1.SingleReplicaTopologyMode, results{"Drain": result(preflight.Skipped, "SingleNode")}},
		"HyperShift": {"nodes of NodePools are drained", configv1.ExternalTopologyMode, blocked},
		"Several":    {"nodes are drained", configv1.HighlyAvailableTopologyMode, blocked},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, checktest.Infrastructure(tc.topology))
			got := checktest.Results(checktest.Run(t, health.Drain(), with(t, never).Snapshot(t), patch(t)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDrainUnread(t *testing.T) {
	crossing := []*policyv1.PodDisruptionBudget{budget("a", 1, 1, 1), budget("b", 3, 1, 3, selecting("tier=b"))}
	budgets := checktest.Pages(t, "policy/v1", "PodDisruptionBudgetList", crossing)
	infrastructure := checktest.Body(`{"apiVersion":"config.openshift.io/v1","kind":"Infrastructure","metadata":{"name":"cluster"}}`)
	const infrastructurePath = "/apis/config.openshift.io/v1/infrastructures/cluster"
	partly := results{"PodDisruptionBudget-shop.a": result(preflight.Fail, "NeverSatisfied"), "Drain": result(preflight.Unknown, "Forbidden")}
	for name, tc := range map[string]struct {
		reason string
		paths  map[string]checktest.Response
		want   results
	}{
		"Forbidden": {
			"without permission the check is inconclusive", map[string]checktest.Response{infrastructurePath: infrastructure}, results{"Drain": result(preflight.Unknown, "Forbidden")},
		},
		"PodsForbidden": {
			"the other findings are reported", map[string]checktest.Response{infrastructurePath: infrastructure, budgetsPath: budgets}, partly,
		},
		"TopologyForbidden": {
			"without the topology the check is inconclusive", map[string]checktest.Response{
				budgetsPath: budgets, podsPath: checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList", []*metav1.PartialObjectMetadata{}),
			}, partly,
		},
		"Malformed": {
			"an object that cannot be decoded is inconclusive",
			map[string]checktest.Response{infrastructurePath: infrastructure, budgetsPath: checktest.Body(`{"items":[{"spec":1}]}`)},
			results{"Drain": result(preflight.Unknown, "Error")},
		},
		"PodsMalformed": {
			"an object that cannot be decoded is inconclusive",
			map[string]checktest.Response{infrastructurePath: infrastructure, budgetsPath: budgets, podsPath: checktest.Body(`{"items":[{"metadata":1}]}`)},
			results{"PodDisruptionBudget-shop.a": result(preflight.Fail, "NeverSatisfied"), "Drain": result(preflight.Unknown, "Error")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := checktest.Results(checktest.Run(t, health.Drain(), server.Unprivileged().Responding(tc.paths).Snapshot(t), patch(t)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDrainWithMany(t *testing.T) {
	var budgets []*policyv1.PodDisruptionBudget
	var pods []*metav1.PartialObjectMetadata
	for i := range 5000 {
		name := fmt.Sprintf("b%04d", i)
		budgets = append(budgets, budget(name, 10, 10, 10, in(fmt.Sprintf("n%02d", i%20))))
		for j := range 10 {
			pod := pod(fmt.Sprintf("%s-%d", name, j), "app="+name)
			pod.Namespace = fmt.Sprintf("n%02d", i%20)
			pods = append(pods, pod)
		}
	}
	budgets[4999].Status.DisruptionsAllowed = 1
	for i := range 20 { // so that pods are listed, in too many namespaces for a list each
		budgets = append(budgets, budget("other", 10, 9, 10, in(fmt.Sprintf("n%02d", i)), selecting("tier=x")))
	}
	pods[0].Labels["tier"] = "x"
	var requests atomic.Int32
	list := checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList", pods)
	many := with(t, budgets).Responding(map[string]checktest.Response{allPodsPath: func(request *http.Request) (int, []byte) {
		requests.Add(1)
		return list(request)
	}})
	snapshot := many.Snapshot(t)
	for _, to := range []string{"4.18.4", "4.18.5"} {
		findings := checktest.Run(t, health.Drain(), snapshot, checktest.Update(t, "4.18.3", to))
		if rest := findings[len(findings)-1]; len(findings) != 51 || !strings.Contains(rest.Message, "4950 more findings") {
			t.Errorf("got %d findings, the last %q; want 50 and the count of the rest", len(findings), rest.Message)
		}
	}
	contentions, err := snapshot.Contentions(t.Context())
	if err != nil || len(contentions) != 1 || contentions[0].Pods != 1 {
		t.Errorf("one of 50000 pods has two budgets; got %+v, %v", contentions, err)
	}
	if requests.Load() != 100 {
		t.Errorf("50000 pods were read in %d requests, want 100 for all updates", requests.Load())
	}
}

// TestDrainOnAServer checks statuses of the disruption controller of a real
// Kubernetes.
func TestDrainOnAServer(t *testing.T) {
	stored := func(name string, labels string, spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
		spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(labels)}
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "real", Name: name}, Spec: spec}
	}
	running := func(name string, labels ...string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "real", Name: name, Labels: labelsOf(labels...)},
			Spec:       corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			}},
		}
	}
	broken := running("broken", "app=some")
	broken.Status.Conditions[0].Status = corev1.ConditionFalse
	server.Create(t, running("one", "app=one"), running("some-1", "app=some"), running("some-2", "app=some"), broken,
		running("bare", "app=bare"), running("both", "app=x", "tier=y"),
		stored("one", "app=one", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))}),
		stored("some", "app=some", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2))}),
		stored("bare", "app=bare", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}),
		stored("none", "app=none", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}),
		stored("x", "app=x", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(0))}),
		stored("y", "tier=y", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(0))}))
	want := results{
		"PodDisruptionBudget-real.one":  result(preflight.Fail, "NeverSatisfied"),
		"PodDisruptionBudget-real.some": result(preflight.Fail, "NotSatisfiedNow"),
		"PodDisruptionBudget-real.bare": result(preflight.Fail, "UnmanagedPods"),
		"PodDisruptionBudgets-real.x":   result(preflight.Fail, "SeveralBudgets"),
		"PodDisruptionBudgetsUnused":    result(preflight.Warn, "SelectsNothing"),
	}
	var diff string
	settled := eventually(t, func() bool {
		diff = cmp.Diff(want, checktest.Results(checktest.Run(t, health.Drain(), server.Snapshot(t), patch(t))))
		return diff == ""
	})
	if !settled {
		t.Errorf("the status of a real controller (-want +got):\n%s", diff)
	}
}

// eventually reports whether the condition becomes true within a minute.
func eventually(t *testing.T, condition func() bool) bool {
	t.Helper()
	return wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return condition(), nil
	}) == nil
}

// What prolongs the drain of nodes: the budgets of which no pod can be evicted at present.
func TestUndrainable(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		budget *policyv1.PodDisruptionBudget
		want   []string
	}{
		"Allows":   {reason: "a pod can be evicted", budget: budget("cart", 3, 2, 3)},
		"Selects":  {reason: "a budget without pods protects nothing", budget: budget("cart", 0, 1, 0)},
		"Never":    {reason: "all pods are required", budget: budget("cart", 1, 1, 1), want: []string{"NeverSatisfied"}},
		"NotNow":   {reason: "a pod is not healthy", budget: budget("cart", 3, 2, 2), want: []string{"NotSatisfiedNow"}},
		"Stale":    {reason: "the status is of an earlier generation", budget: budget("cart", 3, 2, 3, observed(1)), want: []string{"StaleStatus"}},
		"NoStatus": {reason: "the status could not be computed", budget: budget("cart", 3, 2, 3, notSynced("no scale")), want: []string{"SyncFailed"}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, reason := range tc.want {
				want = append(want, "PodDisruptionBudget shop/cart allows no disruption ("+reason+"): the drain of a node with one of its pods waits")
			}
			if diff := cmp.Diff(want, health.Undrainable([]policyv1.PodDisruptionBudget{*tc.budget})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
