package launch_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/launch"
)

// amounts are pairs of a name and a quantity.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// limited is a quota of which an amount is used.
func limited(hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) launch.NamespaceQuotas {
	return launch.NamespaceQuotas{Quotas: []corev1.ResourceQuota{{
		ObjectMeta: metav1.ObjectMeta{Name: "compute"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes},
		Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: used},
	}}}
}

// with adds a LimitRange.
func with(n launch.NamespaceQuotas, item corev1.LimitRangeItem) launch.NamespaceQuotas {
	n.LimitRanges = append(n.LimitRanges, corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}})
	return n
}

// selecting has the quota select pods of scopes by its scopeSelector.
func selecting(n launch.NamespaceQuotas, scope corev1.ResourceQuotaScope) launch.NamespaceQuotas {
	n.Quotas[0].Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists},
	}}
	return n
}

func pod(requests, limits corev1.ResourceList) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name:      "check",
		Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
	}}}
}

func changed(spec corev1.PodSpec, change func(*corev1.PodSpec)) corev1.PodSpec {
	change(&spec)
	return spec
}

func TestUnspecified(t *testing.T) {
	requires := limited(amounts("limits.cpu", "4"), amounts("limits.cpu", "0"))
	const lacks = "compute: must specify limits.cpu for: check"
	for name, tc := range map[string]struct {
		reason    string
		namespace launch.NamespaceQuotas
		pod       corev1.PodSpec
		want      string
	}{
		"NoQuota":   {reason: "nothing is required without a quota", pod: pod(nil, nil)},
		"Missing":   {reason: "a quota for limits requires them", namespace: requires, pod: pod(amounts("cpu", "1"), nil), want: lacks},
		"Specified": {reason: "the limit is specified", namespace: requires, pod: pod(nil, amounts("cpu", "1"))},
		"Zero":      {reason: "zero is specified", namespace: requires, pod: pod(nil, amounts("cpu", "0"))},
		"Several": {
			reason: "every resource and container is named", namespace: limited(amounts("cpu", "4", "requests.memory", "1Gi"), nil),
			pod:  changed(pod(nil, nil), func(spec *corev1.PodSpec) { spec.InitContainers = []corev1.Container{{Name: "init"}} }),
			want: "compute: must specify cpu for: check,init; requests.memory for: check,init",
		},
		"LimitIsRequest": {
			reason: "the API server takes the limit as the request", namespace: limited(amounts("requests.cpu", "4"), nil),
			pod: pod(nil, amounts("cpu", "1")),
		},
		"Objects": {
			reason:    "pods and storage need not be specified",
			namespace: limited(amounts("pods", "4", "requests.ephemeral-storage", "1Gi"), nil), pod: pod(nil, nil),
		},
		"Default": {
			reason: "a LimitRange supplies the limit", pod: pod(nil, nil),
			namespace: with(requires, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: amounts("cpu", "1")}),
		},
		"OtherDefault": {
			reason: "a LimitRange supplies the limit of memory only", pod: pod(nil, nil), want: lacks,
			namespace: with(requires, corev1.LimitRangeItem{
				Type: corev1.LimitTypeContainer, Default: amounts("memory", "1Gi"),
				DefaultRequest: amounts("cpu", "1"),
			}),
		},
		"DefaultOfPods": {
			reason: "only defaults of containers are supplied", pod: pod(nil, nil), want: lacks,
			namespace: with(requires, corev1.LimitRangeItem{Type: corev1.LimitTypePod, Default: amounts("cpu", "1")}),
		},
		"NoStatus": {
			reason: "a quota is in force when its status has it", pod: pod(nil, nil),
			namespace: launch.NamespaceQuotas{Quotas: []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{Hard: amounts("limits.cpu", "4")}}}},
		},
		"PodResources": {
			reason: "resources of the whole pod may replace those of its containers", namespace: requires,
			pod: changed(pod(nil, nil), func(spec *corev1.PodSpec) {
				spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", "1")}
			}),
		},
		"Terminating": {
			reason: "the deadline of the Job is not that of the pod", pod: pod(nil, nil),
			namespace: limited(amounts("limits.cpu", "4"), nil, corev1.ResourceQuotaScopeTerminating),
		},
		"TerminatingPod": {
			reason: "a pod with a deadline is terminating", want: lacks,
			namespace: limited(amounts("limits.cpu", "4"), nil, corev1.ResourceQuotaScopeTerminating),
			pod:       changed(pod(nil, nil), func(spec *corev1.PodSpec) { spec.ActiveDeadlineSeconds = new(int64(60)) }),
		},
		"NotTerminating": {
			reason: "a pod without a deadline is not terminating", pod: pod(nil, nil), want: lacks,
			namespace: limited(amounts("limits.cpu", "4"), nil, corev1.ResourceQuotaScopeNotTerminating),
		},
		"NotBestEffort": {
			reason: "a pod without requests is best effort", pod: pod(nil, nil),
			namespace: limited(amounts("limits.cpu", "4"), nil, corev1.ResourceQuotaScopeNotBestEffort),
		},
		"NotBestEffortByDefault": {
			reason: "a pod with the default request of a LimitRange is not best effort", pod: pod(nil, nil), want: lacks,
			namespace: with(limited(amounts("limits.cpu", "4"), nil, corev1.ResourceQuotaScopeNotBestEffort),
				corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("memory", "1Mi")}),
		},
		"Selector": {
			reason: "a pod must be in all scopes", pod: pod(amounts("cpu", "1"), nil),
			namespace: selecting(limited(amounts("limits.cpu", "4"), nil, corev1.ResourceQuotaScopeNotTerminating),
				corev1.ResourceQuotaScopeTerminating),
		},
		"PriorityClass": {
			reason: "the cluster may have a default PriorityClass", pod: pod(nil, nil),
			namespace: selecting(limited(amounts("limits.cpu", "4"), nil), corev1.ResourceQuotaScopePriorityClass),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.namespace.Unspecified(tc.pod); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestExceeded(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		namespace launch.NamespaceQuotas
		pod       corev1.PodSpec
		want      string
	}{
		"NoQuota": {reason: "nothing is limited without a quota", pod: pod(nil, nil)},
		"Free":    {reason: "the last pod is admitted", namespace: limited(amounts("pods", "2"), amounts("pods", "1")), pod: pod(nil, nil)},
		"Pods": {
			reason: "all pods are used", namespace: limited(amounts("pods", "2", "count/pods", "9"), amounts("pods", "2", "count/pods", "2")),
			pod:  pod(nil, nil),
			want: "compute (pods: requested 1, used 2, limited 2)",
		},
		"CPU": {
			reason:    "less is left than the pod asks",
			namespace: limited(amounts("requests.cpu", "1", "limits.memory", "2Gi"), amounts("requests.cpu", "800m", "limits.memory", "2Gi")),
			pod:       pod(amounts("cpu", "300m"), amounts("memory", "1Gi")),
			want:      "compute (limits.memory: requested 1Gi, used 2Gi, limited 2Gi; requests.cpu: requested 300m, used 800m, limited 1)",
		},
		"Default": {
			reason: "the default of a LimitRange counts", pod: pod(nil, nil),
			namespace: with(limited(amounts("cpu", "1"), amounts("cpu", "1")),
				corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("cpu", "100m")}),
			want: "compute (cpu: requested 100m, used 1, limited 1)",
		},
		"SeveralLimitRanges": {
			reason: "which default counts is not known", pod: pod(nil, nil),
			namespace: with(with(limited(amounts("cpu", "1"), amounts("cpu", "1")),
				corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("cpu", "100m")}),
				corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: amounts("cpu", "0")}),
		},
		"Unspecified": {
			reason: "what the pod does not ask is not exceeded", namespace: limited(amounts("cpu", "1"), amounts("cpu", "2")),
			pod: pod(nil, nil),
		},
		"NotCounted": {reason: "what is used is not known yet", namespace: limited(amounts("pods", "0"), nil), pod: pod(nil, nil)},
		"BestEffort": {
			reason: "a pod with requests is not best effort", pod: pod(amounts("cpu", "1"), nil),
			namespace: limited(amounts("pods", "0"), amounts("pods", "0"), corev1.ResourceQuotaScopeBestEffort),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.namespace.Exceeded(tc.pod); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
