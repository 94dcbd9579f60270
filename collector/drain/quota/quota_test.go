package quota_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/quota"
)

func list(name corev1.ResourceName, quantity string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(quantity)}
}

func of(hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) *quota.Quotas {
	return quota.New([]corev1.ResourceQuota{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "compute"}, Spec: corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes},
		Status: corev1.ResourceQuotaStatus{Used: used},
	}}, nil)
}

func pod(cpu string) *corev1.Pod {
	found := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	if cpu != "" {
		found.Spec.Containers[0].Resources.Requests = list("cpu", cpu)
	}
	return found
}

// TestAdmit replaces a pod with one processor by another.
func TestAdmit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		hard, used corev1.ResourceList
		scope      corev1.ResourceQuotaScope
		next       string
		why        string
	}{
		"AtLimit": {reason: "the pod that is gone makes room", hard: list("requests.cpu", "10"), used: list("requests.cpu", "10"), next: "1"},
		"Grown": {
			reason: "the next one requests more", hard: list("requests.cpu", "10"), used: list("requests.cpu", "10"), next: "1100m",
			why: "needs more requests.cpu than is left of 10",
		},
		"Lowered": {
			reason: "the quota was lowered below its use", hard: list("pods", "3"), used: list("pods", "4"), next: "1",
			why: "needs more pods than is left of 3",
		},
		"OtherScope": {
			reason: "a quota for pods of best effort does not count it", hard: list("pods", "0"), used: list("pods", "0"),
			scope: corev1.ResourceQuotaScopeBestEffort, next: "1",
		},
		"Uncounted": {
			reason: "a resource that the status does not count yet", hard: list("requests.cpu", "0"), used: corev1.ResourceList{},
			next: "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var scopes []corev1.ResourceQuotaScope
			if tc.scope != "" {
				scopes = append(scopes, tc.scope)
			}
			quotas := of(tc.hard, tc.used, scopes...)
			used := quotas.Used()
			used.Release(quotas.Of(pod("1")))
			by, why, admitted := used.Admit(quotas.Of(pod(tc.next)))
			if admitted != (tc.why == "") || why != tc.why || admitted != (by == "") {
				t.Errorf("%s: got %t, %q by %q, want %q", tc.reason, admitted, why, by, tc.why)
			}
		})
	}
}

// TestRefusedChangesNothing admits a smaller pod after one that was refused.
func TestRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	quotas := of(list("requests.cpu", "2"), list("requests.cpu", "1"))
	used := quotas.Used()
	if _, _, admitted := used.Admit(quotas.Of(pod("2"))); admitted {
		t.Error("admitted 3 of 2 processors")
	}
	if by, why, admitted := used.Admit(quotas.Of(pod("1"))); !admitted {
		t.Errorf("%s refuses a pod that has room: %s", by, why)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	quotas := of(list("requests.cpu", "10"), list("requests.cpu", "0"))
	if by, why := quotas.Refuses(pod("")); by != `ResourceQuota "compute"` || why != "does not specify requests.cpu" {
		t.Errorf("got %q by %q for a pod without requests", why, by)
	}
	if by, why := quotas.Refuses(pod("1")); by != "" {
		t.Errorf("got %q by %q for a pod with requests", why, by)
	}
}
