package launch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// namespaceQuotas are the quotas and the limit ranges of one namespace.
//
// They are evaluated as the API server does when a pod is created (Kubernetes pkg/quota/v1/evaluator/core and
// plugin/pkg/admission/limitranger), with the defaults of the LimitRanges. A quota whose status.hard is empty, or whose
// scope depends on the PriorityClass that admission chooses, does not count; nor do webhooks and policies that change
// the pod.
type namespaceQuotas struct {
	quotas      []corev1.ResourceQuota
	limitRanges []corev1.LimitRange
}

// unspecified describes the requests and limits that a quota requires of the containers of a pod, and that neither the
// containers nor a LimitRange specify; it is empty for none. The API server rejects the pod however much of the quota is
// free.
func (n namespaceQuotas) unspecified(spec corev1.PodSpec) string {
	if spec.Resources != nil {
		return "" // no container need specify any, where the cluster supports it
	}
	spec = n.defaulted(spec)
	var texts []string
	for _, each := range n.applying(spec) {
		var missing []string
		for _, name := range required() {
			if _, limited := each.Status.Hard[name]; !limited {
				continue
			}
			if lacking := without(name, spec); len(lacking) > 0 {
				missing = append(missing, fmt.Sprintf("%s for: %s", name, strings.Join(lacking, ",")))
			}
		}
		if len(missing) > 0 {
			texts = append(texts, fmt.Sprintf("%s: must specify %s", each.Name, strings.Join(missing, "; ")))
		}
	}
	return strings.Join(texts, "; ")
}

// exceeded describes the amounts that a pod requests and that a quota does not have left; it is empty for none. Other
// objects may free them.
func (n namespaceQuotas) exceeded(spec corev1.PodSpec) string {
	spec = n.defaulted(spec)
	asked := n.asked(spec)
	var texts []string
	for _, each := range n.applying(spec) {
		var exceeded []string
		for _, name := range slices.Sorted(maps.Keys(asked)) {
			hard, limited := each.Status.Hard[name]
			used, counted := each.Status.Used[name]
			amount := asked[name]
			if !limited || !counted || amount.IsZero() {
				continue
			}
			sum := used.DeepCopy()
			sum.Add(amount)
			if sum.Cmp(hard) > 0 {
				exceeded = append(exceeded, fmt.Sprintf("%s: requested %s, used %s, limited %s", name, amount.String(), used.String(), hard.String()))
			}
		}
		if len(exceeded) > 0 {
			texts = append(texts, fmt.Sprintf("%s (%s)", each.Name, strings.Join(exceeded, "; ")))
		}
	}
	return strings.Join(texts, "; ")
}

// required are the resources that each container must specify where a quota has them
// (Kubernetes pkg/quota/v1/evaluator/core, validationSet).
func required() []corev1.ResourceName {
	return []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
		corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	}
}

// without are the names of the containers that do not specify a resource.
func without(name corev1.ResourceName, spec corev1.PodSpec) []string {
	var names []string
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if _, specified := counted(container.Resources.Requests, container.Resources.Limits)[name]; !specified {
			names = append(names, container.Name)
		}
	}
	slices.Sort(names)
	return names
}

// asked is the amount that a quota counts for a pod. Which of several LimitRanges supplies a default depends on the API
// server, and the meaning of amounts for the whole pod on its version: in these cases only objects are counted.
func (n namespaceQuotas) asked(spec corev1.PodSpec) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	if len(n.limitRanges) <= 1 && spec.Resources == nil {
		pod, options := &corev1.Pod{Spec: spec}, helpers.PodResourcesOptions{}
		amounts = counted(helpers.PodRequests(pod, options), helpers.PodLimits(pod, options))
	}
	one := *resource.NewQuantity(1, resource.DecimalSI)
	amounts[corev1.ResourcePods], amounts["count/pods"] = one, one
	return amounts
}

// counted are requests and limits under the names that a quota has for them.
func counted(requests, limits corev1.ResourceList) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if request, found := requests[name]; found {
			amounts[name], amounts["requests."+name] = request, request
		}
		if limit, found := limits[name]; found {
			amounts["limits."+name] = limit
		}
	}
	return amounts
}

// defaulted is the pod with the requests and limits that the API server adds: a limit is
// the default of its request, and the LimitRanges have the defaults of containers.
func (n namespaceQuotas) defaulted(spec corev1.PodSpec) corev1.PodSpec {
	spec = *spec.DeepCopy()
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			resources.Requests = supplemented(resources.Requests, resources.Limits)
			for _, each := range n.limitRanges {
				requests, limits := defaults(each)
				resources.Requests = supplemented(resources.Requests, requests)
				resources.Limits = supplemented(resources.Limits, limits)
			}
		}
	}
	return spec
}

func defaults(limitRange corev1.LimitRange) (requests, limits corev1.ResourceList) {
	requests, limits = corev1.ResourceList{}, corev1.ResourceList{}
	for _, each := range limitRange.Spec.Limits {
		if each.Type == corev1.LimitTypeContainer {
			maps.Copy(requests, each.DefaultRequest)
			maps.Copy(limits, each.Default)
		}
	}
	return requests, limits
}

// supplemented returns amounts, with missing ones taken from others.
func supplemented(amounts, others corev1.ResourceList) corev1.ResourceList {
	all := maps.Clone(others)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, amounts)
	return all
}

// applying are the quotas that certainly count a pod, by name.
func (n namespaceQuotas) applying(spec corev1.PodSpec) []corev1.ResourceQuota {
	var quotas []corev1.ResourceQuota
	for _, each := range n.quotas {
		if !slices.ContainsFunc(scopes(each.Spec), func(scope corev1.ResourceQuotaScope) bool { return !inScope(spec, scope) }) {
			quotas = append(quotas, each)
		}
	}
	slices.SortFunc(quotas, func(a, b corev1.ResourceQuota) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
	return quotas
}

// scopes are the scopes of a quota, all of which a pod must be in.
func scopes(spec corev1.ResourceQuotaSpec) []corev1.ResourceQuotaScope {
	all := slices.Clone(spec.Scopes)
	if spec.ScopeSelector != nil {
		for _, each := range spec.ScopeSelector.MatchExpressions {
			all = append(all, each.ScopeName)
		}
	}
	return all
}

// inScope is true for a pod that is certainly in a scope. Admission sets the PriorityClass
// of a pod that names none, and a check names none.
func inScope(spec corev1.PodSpec, scope corev1.ResourceQuotaScope) bool {
	switch scope {
	case corev1.ResourceQuotaScopeTerminating:
		return spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return spec.Resources == nil && bestEffort(spec)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(spec)
	case corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
		corev1.ResourceQuotaScopeVolumeAttributesClass:
	}
	return false
}

// bestEffort is true for a pod whose containers have no requests and limits of CPU and memory, or zero.
func bestEffort(spec corev1.PodSpec) bool {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, amount := range counted(container.Resources.Requests, container.Resources.Limits) {
			if amount.Sign() > 0 {
				return false
			}
		}
	}
	return true
}
