package quota

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// applying are the quotas that certainly count a pod, by name.
func (n Namespace) applying(spec corev1.PodSpec) []corev1.ResourceQuota {
	var quotas []corev1.ResourceQuota
	for _, each := range n.Quotas {
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
	case corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ResourceQuotaScopeVolumeAttributesClass:
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
