package recreation_test

import (
	"cmp"
	"strings"
	"testing"

	quotav1 "github.com/openshift/api/quota/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/recreation"
)

func template(requests, limits corev1.ResourceList) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name:      "c",
		Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
	}}}}
}

func list(name corev1.ResourceName, quantity string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(quantity)}
}

func quota(hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuota {
	return corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "compute"}, Spec: corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes},
		Status: corev1.ResourceQuotaStatus{Used: used},
	}
}

func limits(item corev1.LimitRangeItem) []corev1.LimitRange {
	item.Type = corev1.LimitTypeContainer
	return []corev1.LimitRange{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "range"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
	}}
}

func TestOf(t *testing.T) {
	t.Parallel()
	small := template(list("cpu", "1"), nil)
	cpu := corev1.ResourceName("requests.cpu")
	type quotas = []corev1.ResourceQuota
	for name, tc := range map[string]struct {
		reason   string
		kind     string
		version  string // that of the kind in Kubernetes if empty
		template corev1.PodTemplateSpec
		input    recreation.Input
		want     recreation.Outcome
		message  string
	}{
		"ReplicaSet": {reason: "its controller creates it again", kind: "ReplicaSet", template: small, want: recreation.Recreated},
		"None":       {reason: "nothing creates it again", want: recreation.Lost, message: "has no controller"},
		"Gone":       {reason: "its controller does not exist", kind: "StatefulSet", want: recreation.Lost, message: "does not exist"},
		"GoneUnread": {
			reason: "controllers could not be read", kind: "StatefulSet", input: recreation.Input{Unread: true},
			want: recreation.Recreated,
		},
		"Custom": {
			reason: "a controller that is not one of Kubernetes", kind: "Database", version: "db.example.com/v1",
			want: recreation.Unknown, message: `Database.db.example.com "cart"`,
		},
		"OtherGroup": {
			reason: "a StatefulSet of another API group is not one of Kubernetes", kind: "StatefulSet",
			version: "apps.kruise.io/v1beta1", want: recreation.Unknown, message: `StatefulSet.apps.kruise.io "cart"`,
		},
		"SameName": {
			reason: "a Job of another API group of the same name", kind: "Job", version: "batch.volcano.sh/v1alpha1", want: recreation.Unknown,
			message: "Job.batch.volcano.sh", input: recreation.Input{Jobs: []batchv1.Job{job(0, 0)}},
		},
		"DaemonSet": {reason: "a DaemonSet creates it on its node", kind: "DaemonSet", want: recreation.Recreated},
		"Unspecified": {
			reason: "a quota on requests, and a template without", kind: "ReplicaSet", template: template(nil, nil), want: recreation.Refused,
			message: "requests.cpu",
			input:   recreation.Input{Quotas: quotas{quota(list(cpu, "10"), list(cpu, "0"))}},
		},
		"FromLimits": {
			reason: "limits are the requests where there are none", kind: "ReplicaSet", template: template(nil, list("cpu", "1")),
			want:  recreation.Recreated,
			input: recreation.Input{Quotas: quotas{quota(list(cpu, "10"), list(cpu, "1"))}},
		},
		"Defaulted": {
			reason: "a LimitRange has a default", kind: "ReplicaSet", template: template(nil, nil), want: recreation.Recreated,
			input: recreation.Input{
				Quotas: quotas{quota(list(cpu, "10"), list(cpu, "1"))},
				Limits: limits(corev1.LimitRangeItem{DefaultRequest: list("cpu", "100m")}),
			},
		},
		"AtLimit": {
			reason: "the evicted pod makes room for the new one", kind: "ReplicaSet", template: small, want: recreation.Recreated,
			input: recreation.Input{Quotas: quotas{quota(list(cpu, "10"), list(cpu, "10"))}},
		},
		"OtherScope": {
			reason: "a quota for pods of best effort", kind: "ReplicaSet", template: small, want: recreation.Recreated,
			input: recreation.Input{Quotas: quotas{quota(list("pods", "0"), list("pods", "1"), corev1.ResourceQuotaScopeBestEffort)}},
		},
		"TooLarge": {
			reason: "a LimitRange with a maximum", kind: "ReplicaSet", template: template(list("cpu", "1"), list("cpu", "4")),
			want: recreation.Refused, message: "more than 2",
			input: recreation.Input{Limits: limits(corev1.LimitRangeItem{Max: list("cpu", "2")})},
		},
		"Ratio": {
			reason: "a LimitRange bounds the limit by the request", kind: "ReplicaSet", template: template(list("cpu", "1"), list("cpu", "4")),
			want: recreation.Refused, message: "more than 2 times its request",
			input: recreation.Input{Limits: limits(corev1.LimitRangeItem{MaxLimitRequestRatio: list("cpu", "2")})},
		},
		"RatioOfAll": {
			reason: "it bounds what is absent as well", kind: "ReplicaSet", template: small, want: recreation.Refused, message: "absent",
			input: recreation.Input{Limits: limits(corev1.LimitRangeItem{MaxLimitRequestRatio: list("cpu", "2")})},
		},
		"RatioKept": {
			reason: "the limit is twice the request", kind: "ReplicaSet", template: template(list("cpu", "1"), list("cpu", "2")),
			want:  recreation.Recreated,
			input: recreation.Input{Limits: limits(corev1.LimitRangeItem{MaxLimitRequestRatio: list("cpu", "2")})},
		},
		"RuntimeClassIsGone": {
			reason: "the API server refuses a class that does not exist", kind: "ReplicaSet", template: ofRuntime("kata"), want: recreation.Refused,
			message: `RuntimeClass "kata"`,
			input:   recreation.Input{AllRuntimes: true},
		},
		"RuntimeClass": {
			reason: "its class exists", kind: "ReplicaSet", template: ofRuntime("kata"), want: recreation.Recreated,
			input: recreation.Input{AllRuntimes: true, Runtimes: []nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "kata"}}}},
		},
		"RuntimeClassUnread": {
			reason: "one that was not read may exist", kind: "ReplicaSet", template: ofRuntime("kata"),
			want: recreation.Recreated,
		},
		"ClusterQuota": {
			reason: "a quota of the cluster counts the namespace", kind: "ReplicaSet", template: template(nil, nil), want: recreation.Refused,
			message: "requests.cpu",
			input:   recreation.Input{ClusterQuotas: []quotav1.ClusterResourceQuota{clusterQuota("shop")}},
		},
		"ClusterQuotaOfOthers": {
			reason: "a quota of the cluster counts other namespaces", kind: "ReplicaSet", template: template(nil, nil), want: recreation.Recreated,
			input: recreation.Input{ClusterQuotas: []quotav1.ClusterResourceQuota{clusterQuota("bank")}},
		},
		"BeingDeleted": {
			reason: "a Job with a finalizer is being deleted", kind: "Job", want: recreation.Lost, message: "being deleted",
			input: recreation.Input{Jobs: []batchv1.Job{{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "cart",
				DeletionTimestamp: new(metav1.Now()),
			}}}},
		},
		"Priority": {
			reason: "its priority does not exist", kind: "ReplicaSet", want: recreation.Refused, message: "priority",
			template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{PriorityClassName: "gone"}},
			input:    recreation.Input{Priorities: []schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "other"}}}},
		},
		"Job": {reason: "a Job tries again", kind: "Job", want: recreation.Recreated, input: recreation.Input{Jobs: []batchv1.Job{job(6, 0)}}},
		"JobExhausted": {
			reason: "an evicted pod counts as failed", kind: "Job", want: recreation.Lost, message: "backoffLimit",
			input: recreation.Input{Jobs: []batchv1.Job{job(0, 0)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.kind == "ReplicaSet" {
				tc.input.ReplicaSets = []appsv1.ReplicaSet{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
					Spec:       appsv1.ReplicaSetSpec{Template: tc.template},
				}}
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0"}, Spec: template(list("cpu", "1"), nil).Spec}
			if tc.kind != "" {
				version := cmp.Or(tc.version, map[string]string{"Job": "batch/v1"}[tc.kind], "apps/v1")
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: tc.kind, Name: "cart", Controller: new(true)}}
			}
			got := recreation.New(tc.input).Of(pod)
			if got.Outcome != tc.want || !strings.Contains(got.Why, tc.message) {
				t.Errorf("%s: got %+v, want %s %q", tc.reason, got, tc.want, tc.message)
			}
			if (got.Outcome == recreation.Refused) != (got.By != "") {
				t.Errorf("%s: refused by %q", tc.reason, got.By)
			}
		})
	}
}

func ofRuntime(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{RuntimeClassName: &name}}
}

func clusterQuota(namespace string) quotav1.ClusterResourceQuota {
	cpu := corev1.ResourceName("requests.cpu")
	return quotav1.ClusterResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		Spec:       quotav1.ClusterResourceQuotaSpec{Quota: corev1.ResourceQuotaSpec{Hard: list(cpu, "10")}},
		Status: quotav1.ClusterResourceQuotaStatus{
			Total: corev1.ResourceQuotaStatus{Used: list(cpu, "1")}, Namespaces: quotav1.ResourceQuotasStatusByNamespace{{Namespace: namespace}},
		},
	}
}

func job(limit, failed int32) batchv1.Job {
	return batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}, Spec: batchv1.JobSpec{BackoffLimit: &limit},
		Status: batchv1.JobStatus{Failed: failed},
	}
}
