package recreation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// admit is whether the API server admits a pod of the template in place of pod.
func (w *Workloads) admit(pod *corev1.Pod, template *corev1.PodTemplateSpec) Answer {
	if name := template.Spec.PriorityClassName; name != "" && len(w.priorities) > 0 && !w.priorities[name] {
		return Answer{Refused, "has a priority that does not exist", fmt.Sprintf("PriorityClass %q", name)}
	}
	created := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	created.Namespace = pod.Namespace
	setRequests(created)
	for _, limit := range w.limits[pod.Namespace] {
		setDefaults(created, limit)
	}
	setRequests(created)
	for _, limit := range w.limits[pod.Namespace] {
		if why := exceeds(created, limit); why != "" {
			return Answer{Refused, why, fmt.Sprintf("LimitRange %q", limit.Name)}
		}
	}
	for _, quota := range w.quotas[pod.Namespace] {
		if answer := charge(pod, created, quota); answer.Outcome != Recreated {
			return answer
		}
	}
	return Answer{Outcome: Recreated}
}

// containers are all containers of a pod.
func containers(pod *corev1.Pod) []*corev1.Container {
	var found []*corev1.Container
	for _, of := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range of {
			found = append(found, &of[i])
		}
	}
	return found
}

// setRequests makes limits the requests where there are none, as the API server does.
func setRequests(pod *corev1.Pod) {
	for _, container := range containers(pod) {
		for name, limit := range container.Resources.Limits {
			if _, ok := container.Resources.Requests[name]; !ok {
				container.Resources.Requests = with(container.Resources.Requests, name, limit)
			}
		}
	}
}

// withDefaults is the list with the quantities that it lacks.
func withDefaults(list, defaults corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range defaults {
		if _, ok := list[name]; !ok {
			list = with(list, name, quantity)
		}
	}
	return list
}

func with(list corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[name] = quantity
	return list
}

// setDefaults sets the default limits and requests of containers.
func setDefaults(pod *corev1.Pod, limit *corev1.LimitRange) {
	for _, item := range limit.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for _, container := range containers(pod) {
			container.Resources.Limits = withDefaults(container.Resources.Limits, item.Default)
			container.Resources.Requests = withDefaults(container.Resources.Requests, item.DefaultRequest)
		}
	}
}

// exceeds is what of a pod a LimitRange refuses.
func exceeds(pod *corev1.Pod, limit *corev1.LimitRange) string {
	for _, item := range limit.Spec.Limits {
		switch item.Type { //nolint:exhaustive // the others do not concern pods
		case corev1.LimitTypeContainer:
			for _, container := range containers(pod) {
				if why := outside(container.Resources, item); why != "" {
					return fmt.Sprintf("has a container %q %s", container.Name, why)
				}
			}
		case corev1.LimitTypePod:
			of := corev1.ResourceRequirements{Requests: helpers.PodRequests(pod, helpers.PodResourcesOptions{}), Limits: helpers.PodLimits(pod, helpers.PodResourcesOptions{})}
			if why := outside(of, item); why != "" {
				return "is a pod " + why
			}
		default:
		}
	}
	return ""
}

func outside(of corev1.ResourceRequirements, item corev1.LimitRangeItem) string {
	for name, most := range item.Max {
		if limit, ok := of.Limits[name]; !ok || limit.Cmp(most) > 0 {
			return fmt.Sprintf("whose limit of %s is absent or more than %s", name, most.String())
		}
	}
	for name, least := range item.Min {
		if request, ok := of.Requests[name]; !ok || request.Cmp(least) < 0 {
			return fmt.Sprintf("whose request of %s is absent or less than %s", name, least.String())
		}
	}
	return ""
}

// charge is whether a quota has room for the created pod once the evicted one is gone
// (kubernetes pkg/quota/v1/evaluator/core/pods.go).
func charge(evicted, created *corev1.Pod, quota *corev1.ResourceQuota) Answer {
	by := fmt.Sprintf("ResourceQuota %q", quota.Name)
	if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
		if !scoped(created, quota) {
			return Answer{Outcome: Recreated}
		}
	}
	if missing := unspecified(created, quota.Spec.Hard); len(missing) > 0 {
		return Answer{Refused, "does not specify " + strings.Join(missing, ", "), by}
	}
	before, after := usage(evicted), usage(created)
	for name, hard := range quota.Spec.Hard {
		used, ok := quota.Status.Used[name]
		if !ok {
			continue
		}
		total := used.DeepCopy()
		total.Sub(before[name])
		total.Add(after[name])
		if after[name] != (resource.Quantity{}) && total.Cmp(hard) > 0 {
			return Answer{Refused, fmt.Sprintf("needs more %s than is left of %s", name, hard.String()), by}
		}
	}
	return Answer{Outcome: Recreated}
}

// unspecified are the processors and memory of a quota that a container does not specify,
// sorted. A pod with resources of its own need not specify those of its containers.
func unspecified(pod *corev1.Pod, hard corev1.ResourceList) []string {
	missing := map[string]bool{}
	if helpers.IsPodLevelResourcesSet(pod) {
		return nil
	}
	for _, container := range containers(pod) {
		for name := range hard {
			list, of := container.Resources.Requests, strings.TrimPrefix(string(name), "requests.")
			if limited, ok := strings.CutPrefix(string(name), "limits."); ok {
				list, of = container.Resources.Limits, limited
			}
			if of != string(corev1.ResourceCPU) && of != string(corev1.ResourceMemory) {
				continue
			}
			if _, ok := list[corev1.ResourceName(of)]; !ok {
				missing[string(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// usage is what a pod counts in a quota.
func usage(pod *corev1.Pod) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	used := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	for name, quantity := range helpers.PodRequests(pod, helpers.PodResourcesOptions{}) {
		used[name], used["requests."+name] = quantity, quantity
	}
	for name, quantity := range helpers.PodLimits(pod, helpers.PodResourcesOptions{}) {
		used["limits."+name] = quantity
	}
	return used
}

// scoped reports whether a quota with scopes counts a pod.
func scoped(pod *corev1.Pod, quota *corev1.ResourceQuota) bool {
	bestEffort := len(helpers.PodRequests(pod, helpers.PodResourcesOptions{}))+len(helpers.PodLimits(pod, helpers.PodResourcesOptions{})) == 0
	terminating := pod.Spec.ActiveDeadlineSeconds != nil
	matches := func(scope corev1.ResourceQuotaScope) bool {
		switch scope { //nolint:exhaustive // the others are unknown
		case corev1.ResourceQuotaScopeBestEffort:
			return bestEffort
		case corev1.ResourceQuotaScopeNotBestEffort:
			return !bestEffort
		case corev1.ResourceQuotaScopeTerminating:
			return terminating
		case corev1.ResourceQuotaScopeNotTerminating:
			return !terminating
		default:
			return true // priority classes and others are taken for a match below
		}
	}
	for _, scope := range quota.Spec.Scopes {
		if !matches(scope) {
			return false
		}
	}
	if quota.Spec.ScopeSelector == nil {
		return true
	}
	for _, requirement := range quota.Spec.ScopeSelector.MatchExpressions {
		if !matches(requirement.ScopeName) || !matchesPriority(pod, requirement) {
			return false
		}
	}
	return true
}

func matchesPriority(pod *corev1.Pod, requirement corev1.ScopedResourceSelectorRequirement) bool {
	if requirement.ScopeName != corev1.ResourceQuotaScopePriorityClass {
		return true
	}
	name := pod.Spec.PriorityClassName
	switch requirement.Operator {
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(requirement.Values, name)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(requirement.Values, name)
	case corev1.ScopeSelectorOpExists:
		return name != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return name == ""
	}
	return true
}
