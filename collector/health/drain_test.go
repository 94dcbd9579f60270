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

// budget selects what has the label app=<name> in namespace "shop", and allows
// what these numbers come to: expected, desired and current pods.
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

// with is the server, if it had these budgets and pods. The server itself would
// change the status of budgets as soon as it sees them.
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
		return results{"PodDisruptionBudget-shop.cart": said(outcome, reason)}
	}
	fine := results{"Drain": said(preflight.Pass, "AsExpected")}
	for name, tc := range map[string]struct {
		reason  string
		budgets budgets
		says    string
		want    results
	}{
		"None": {reason: "nothing keeps pods from being evicted", want: fine},
		"Fine": {
			reason: "one may go", budgets: budgets{budget("cart", 3, 2, 3), budget("shelf", 3, 2, 3, in("openshift-shelf"))}, says: "none of 2", want: fine,
		},
		"MaxUnavailable0": {
			reason: "none may ever go", budgets: budgets{budget("cart", 3, 3, 3, maxUnavailable("0"))},
			says: "wants 3 healthy pods of the 3 that there are to be (maxUnavailable: 0), so none of them can ever be evicted",
			want: one("NeverSatisfied", preflight.Fail),
		},
		"MinAvailableIsReplicas": {
			reason: "MUO misses that", budgets: budgets{budget("cart", 1, 1, 1)}, says: "(minAvailable: 1)", want: one("NeverSatisfied", preflight.Fail),
		},
		"MinAvailableBeyondReplicas": {reason: "none may ever go", budgets: budgets{budget("cart", 2, 5, 2)}, want: one("NeverSatisfied", preflight.Fail)},
		"MinAvailableRoundedUp": {
			reason: "80% of 3 is 3", want: one("NeverSatisfied", preflight.Fail), says: "(minAvailable: 80%)",
			budgets: budgets{budget("cart", 3, 3, 3, func(budget *policyv1.PodDisruptionBudget) { budget.Spec.MinAvailable = new(intstr.FromString("80%")) })},
		},
		"NeverThoughUnhealthyMayGo": {
			reason: "once they are healthy they stay", budgets: budgets{budget("cart", 1, 1, 0, alwaysAllow)}, want: one("NeverSatisfied", preflight.Fail),
		},
		"NotNow": {
			reason: "a healthy one more, and one may go", budgets: budgets{budget("cart", 4, 3, 2)},
			says: "wants 3 healthy pods (minAvailable: 3), and of 4 there are 2, so no healthy one can be evicted now; nor can an unhealthy one that runs",
			want: one("NotSatisfiedNow", preflight.Fail),
		},
		"NotNowByOne": {
			reason: "unhealthy ones may go while there are enough others", budgets: budgets{budget("cart", 4, 3, 3)},
			says: "unhealthy ones can, while the others stay healthy (unhealthyPodEvictionPolicy: IfHealthyBudget)", want: one("NotSatisfiedNow", preflight.Fail),
		},
		"NotNowButAlwaysAllow": {
			reason: "unhealthy ones may go", budgets: budgets{budget("cart", 4, 3, 2, alwaysAllow)},
			says: "unhealthy ones can (unhealthyPodEvictionPolicy: AlwaysAllow)", want: one("NotSatisfiedNow", preflight.Fail),
		},
		"AllUnhealthyAndAlwaysAllow": {reason: "all may go", budgets: budgets{budget("cart", 4, 3, 0, alwaysAllow)}, want: fine},
		"AllUnhealthyOfAnyNumber": {
			reason: "even a budget that wants none keeps unhealthy ones", budgets: budgets{budget("cart", 2, 0, 0)}, want: one("NotSatisfiedNow", preflight.Fail),
		},
		"SelectsNothing": {
			reason: "there is no pod to evict", budgets: budgets{budget("cart", 0, 1, 0), budget("shelf", 0, 1, 0)}, says: "none of 2",
			want: results{"Drain": said(preflight.Pass, "AsExpected"), "PodDisruptionBudgetsUnused": said(preflight.Warn, "SelectsNothing")},
		},
		"OpenShiftSelectsNothing": {
			reason: "what the cluster brings along is its own business", budgets: budgets{budget("a", 0, 1, 0, in("openshift-a")), budget("b", 0, 1, 0, in("kube-b"))},
			want: fine,
		},
		"OpenShiftNotNow": {
			reason: "but not where it stands in the way", budgets: budgets{budget("etcd", 3, 2, 2, in("openshift-etcd"))},
			want: results{"PodDisruptionBudget-openshift-etcd.etcd": said(preflight.Fail, "NotSatisfiedNow")},
		},
		"UnmanagedPods": {
			reason: "a percentage of what no controller counts", budgets: budgets{budget("cart", 0, 0, 2, maxUnavailable("50%"))},
			says: "selects 2 healthy pods that no controller made, and with maxUnavailable: 50%", want: one("UnmanagedPods", preflight.Fail),
		},
		"SyncFailed": {
			reason: "until then none may go", budgets: budgets{budget("cart", 0, 0, 0, observed(0), notSynced("found no controllers for pod \"x\""))},
			says: `found no controllers for pod "x"`, want: one("SyncFailed", preflight.Fail),
		},
		"Stale": {
			reason: "a status of an earlier spec says nothing of this one", budgets: budgets{budget("cart", 3, 1, 3, observed(1))},
			says: "of generation 1, but its spec is of generation 2", want: one("StaleStatus", preflight.Unknown),
		},
		"New": {reason: "nobody has looked at it yet", budgets: budgets{budget("cart", 0, 0, 0, observed(0))}, want: one("StaleStatus", preflight.Unknown)},
		"Negative": {
			reason: "there are no such numbers", budgets: budgets{budget("cart", 3, -1, 3)}, says: "desiredHealthy -1", want: one("InvalidStatus", preflight.Unknown),
		},
		"WithoutSpec": {
			reason: "it is still told", want: one("NeverSatisfied", preflight.Fail), says: "neither minAvailable nor maxUnavailable",
			budgets: budgets{budget("cart", 3, 3, 3, func(budget *policyv1.PodDisruptionBudget) { budget.Spec = policyv1.PodDisruptionBudgetSpec{} })},
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := checktest.Run(t, health.Drain(), with(t, tc.budgets).Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("%s: %q does not say %q", tc.reason, findings[0].Message, tc.says)
			}
		})
	}
}

func TestDrainWithSeveralBudgets(t *testing.T) {
	type budgets = []*policyv1.PodDisruptionBudget
	type pods = []*metav1.PartialObjectMetadata
	fine := results{"Drain": said(preflight.Pass, "AsExpected")}
	contended := results{"PodDisruptionBudgets-shop.a": said(preflight.Fail, "SeveralBudgets")}
	mirror, leaving, daemon := pod("p", "app=a", "tier=b"), pod("p", "app=a", "tier=b"), pod("p", "app=a", "tier=b")
	mirror.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"}
	leaving.DeletionTimestamp = new(metav1.Now())
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
		says    string
		asked   bool
		want    results
	}{
		"Apart": {
			reason: "each wants another value of one label", budgets: budgets{budget("a", 3, 1, 3), budget("b", 3, 1, 3), budget("c", 3, 1, 3)}, want: fine,
		},
		"OneAlone": {reason: "there is no other", budgets: budgets{budget("a", 3, 1, 3)}, want: fine},
		"OtherUnused": {reason: "the other has no pods", budgets: budgets{budget("a", 3, 1, 3), budget("b", 0, 1, 0, selecting())}, want: results{
			"Drain": said(preflight.Pass, "AsExpected"), "PodDisruptionBudgetsUnused": said(preflight.Warn, "SelectsNothing"),
		}},
		"Crossing": {
			reason: "the pods tell", budgets: crossing, pods: pods{pod("p", "app=a", "tier=b"), pod("q", "app=a"), pod("r", "tier=b"), pod("s", "tier=b", "app=a")}, asked: true,
			says: `the PodDisruptionBudgets a, b in namespace "shop" select the same pods, 2 of them, such as "p"`, want: contended,
		},
		"NotCrossing": {reason: "the pods tell", budgets: crossing, pods: pods{pod("q", "app=a"), pod("r", "tier=b")}, asked: true, want: fine},
		"Same": {
			reason: "a copy of a budget", budgets: budgets{budget("a", 3, 1, 3), budget("b", 3, 1, 3, selecting("app=a"))}, pods: pods{pod("p", "app=a")}, asked: true,
			want: contended,
		},
		"Everything": {
			reason: "an empty selector selects all", budgets: budgets{budget("a", 3, 1, 3), budget("b", 3, 1, 3, selecting())}, pods: pods{pod("p", "app=a")}, asked: true,
			want: contended,
		},
		"Expression": {
			reason: "a selector need not name a value", budgets: budgets{budget("a", 3, 1, 3), budget("b", 3, 1, 3, expressed)}, pods: pods{pod("p", "app=a")}, asked: true,
			want: contended,
		},
		"NotDrained": {reason: "a drain leaves these alone", budgets: crossing, pods: pods{mirror, leaving, daemon}, asked: true, want: fine},
		"Many": {
			reason: "the first five are named", says: "a, b, c, d, e in namespace", asked: true, pods: pods{pod("p", "app=a")}, want: contended,
			budgets: budgets{
				budget("c", 3, 1, 3, selecting("app=a")), budget("f", 3, 1, 3, selecting("app=a")), budget("b", 3, 1, 3, selecting("app=a")),
				budget("a", 3, 1, 3), budget("e", 3, 1, 3, selecting("app=a")), budget("d", 3, 1, 3, selecting("app=a")),
			},
		},
		"Unreadable": {
			reason: "what cannot be read cannot be compared, and the rest is told", budgets: budgets{budget("a", 1, 1, 1), budget("b", 3, 1, 3, selecting(), unreadable)},
			says: "shop/a wants 1 healthy",
			want: results{"PodDisruptionBudget-shop.a": said(preflight.Fail, "NeverSatisfied"), "Drain": said(preflight.Unknown, "Error")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Bool
			list := checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList", tc.pods)
			counted := with(t, tc.budgets).Responding(map[string]checktest.Response{podsPath: func(request *http.Request) (int, []byte) {
				asked.Store(true)
				if fields := request.URL.Query().Get("fieldSelector"); !strings.Contains(fields, "status.phase!=Pending") {
					t.Errorf("pods that need no budget are listed: %q", fields)
				}
				return list(request)
			}})
			findings := checktest.Run(t, health.Drain(), counted.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("%s: %q does not say %q", tc.reason, findings[0].Message, tc.says)
			}
			if asked.Load() != tc.asked {
				t.Errorf("%s: pods were listed: %t, want %t", tc.reason, asked.Load(), tc.asked)
			}
		})
	}
}

func TestDrainTopology(t *testing.T) {
	never := []*policyv1.PodDisruptionBudget{budget("cart", 1, 1, 1)}
	blocked := results{"PodDisruptionBudget-shop.cart": said(preflight.Fail, "NeverSatisfied")}
	for name, tc := range map[string]struct {
		reason   string
		topology configv1.TopologyMode
		want     results
	}{
		"SingleNode": {"such a cluster is not drained", configv1.SingleReplicaTopologyMode, results{"Drain": said(preflight.Skipped, "SingleNode")}},
		"HyperShift": {"NodePools are drained too", configv1.ExternalTopologyMode, blocked},
		"Several":    {"one node is drained after the other", configv1.HighlyAvailableTopologyMode, blocked},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, infrastructure(tc.topology))
			got := checktest.Results(checktest.Run(t, health.Drain(), with(t, never).Snapshot(t), patch(t)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDrainUnreadable(t *testing.T) {
	crossing := []*policyv1.PodDisruptionBudget{budget("a", 1, 1, 1), budget("b", 3, 1, 3, selecting("tier=b"))}
	budgets := checktest.Pages(t, "policy/v1", "PodDisruptionBudgetList", crossing)
	infrastructure := checktest.Body(`{"apiVersion":"config.openshift.io/v1","kind":"Infrastructure","metadata":{"name":"cluster"}}`)
	const infrastructurePath = "/apis/config.openshift.io/v1/infrastructures/cluster"
	partly := results{"PodDisruptionBudget-shop.a": said(preflight.Fail, "NeverSatisfied"), "Drain": said(preflight.Unknown, "Forbidden")}
	for name, tc := range map[string]struct {
		reason string
		paths  map[string]checktest.Response
		want   results
	}{
		"Forbidden": {
			"who may not look cannot tell", map[string]checktest.Response{infrastructurePath: infrastructure}, results{"Drain": said(preflight.Unknown, "Forbidden")},
		},
		"PodsForbidden": {
			"what can be told is told", map[string]checktest.Response{infrastructurePath: infrastructure, budgetsPath: budgets}, partly,
		},
		"TopologyForbidden": {
			"whether nodes are drained cannot be told", map[string]checktest.Response{
				budgetsPath: budgets, podsPath: checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList", []*metav1.PartialObjectMetadata{}),
			}, partly,
		},
		"Malformed": {
			"what cannot be read cannot be judged",
			map[string]checktest.Response{infrastructurePath: infrastructure, budgetsPath: checktest.Body(`{"items":[{"spec":1}]}`)},
			results{"Drain": said(preflight.Unknown, "Error")},
		},
		"PodsMalformed": {
			"what cannot be read cannot be judged",
			map[string]checktest.Response{infrastructurePath: infrastructure, budgetsPath: budgets, podsPath: checktest.Body(`{"items":[{"metadata":1}]}`)},
			results{"PodDisruptionBudget-shop.a": said(preflight.Fail, "NeverSatisfied"), "Drain": said(preflight.Unknown, "Error")},
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

func TestDrainInMasses(t *testing.T) {
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
	for i := range 20 { // so that the pods have to be looked at, in too many namespaces for one at a time
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
		if rest := findings[len(findings)-1]; len(findings) != 51 || !strings.Contains(rest.Message, "there are 4950 more findings") {
			t.Errorf("got %d findings, the last %q; want 50 and the count of the rest", len(findings), rest.Message)
		}
	}
	contentions, err := snapshot.Contentions(t.Context())
	if err != nil || len(contentions) != 1 || contentions[0].Pods != 1 {
		t.Errorf("of 50000 pods one has two budgets; got %+v, %v", contentions, err)
	}
	if requests.Load() != 100 {
		t.Errorf("50000 pods were read in %d requests, want 100 for all updates", requests.Load())
	}
}

// TestDrainOfAServer has the disruption controller of a real Kubernetes write
// the status.
func TestDrainOfAServer(t *testing.T) {
	held := func(name string, labels string, spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
		spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(labels)}
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "real", Name: name}, Spec: spec}
	}
	running := func(name string, labels ...string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "real", Name: name, Labels: labelsOf(labels...)},
			Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			}},
		}
	}
	broken := running("broken", "app=some")
	broken.Status.Conditions[0].Status = corev1.ConditionFalse
	server.Create(t, running("one", "app=one"), running("some-1", "app=some"), running("some-2", "app=some"), broken,
		running("bare", "app=bare"), running("both", "app=x", "tier=y"),
		held("one", "app=one", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))}),
		held("some", "app=some", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2))}),
		held("bare", "app=bare", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}),
		held("none", "app=none", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}),
		held("x", "app=x", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(0))}),
		held("y", "tier=y", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(0))}))
	want := results{
		"PodDisruptionBudget-real.one":  said(preflight.Fail, "NeverSatisfied"),
		"PodDisruptionBudget-real.some": said(preflight.Fail, "NotSatisfiedNow"),
		"PodDisruptionBudget-real.bare": said(preflight.Fail, "UnmanagedPods"),
		"PodDisruptionBudgets-real.x":   said(preflight.Fail, "SeveralBudgets"),
		"PodDisruptionBudgetsUnused":    said(preflight.Warn, "SelectsNothing"),
	}
	var diff string
	settled := eventually(t, func() bool {
		diff = cmp.Diff(want, checktest.Results(checktest.Run(t, health.Drain(), server.Snapshot(t), patch(t))))
		return diff == ""
	})
	if !settled {
		t.Errorf("the status as Kubernetes writes it (-want +got):\n%s", diff)
	}
}

// eventually says whether the condition comes true within a minute.
func eventually(t *testing.T, condition func() bool) bool {
	t.Helper()
	return wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return condition(), nil
	}) == nil
}
