package recreation

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// admit is what the API server answers to the creation of a pod, to which it adds its defaults. Quotas
// are asked for what the pod does not specify, and for their room by the rehearsal.
func (w *Workloads) admit(created *corev1.Pod) Answer {
	if err := addSelector(created, w.namespaces[created.Namespace]); err != nil {
		return Answer{Outcome: Unknown, Why: "may not be created: " + err.Error()}
	}
	if by := w.prioritize(created); by != "" {
		return Answer{Outcome: Refused, Why: "has a priority that does not exist", By: by}
	}
	if missing := w.runtime(created); missing != "" {
		return Answer{Outcome: Refused, Why: "has RuntimeClass " + missing + ", which does not exist", By: "the API server"}
	}
	setRequests(created)
	for _, limit := range w.limits[created.Namespace] {
		setDefaults(created, limit)
	}
	setRequests(created)
	for _, limit := range w.limits[created.Namespace] {
		if why := exceeds(created, limit); why != "" {
			return Answer{Outcome: Refused, Why: why, By: fmt.Sprintf("LimitRange %q", limit.Name)}
		}
	}
	if by, why := w.quotas.Refuses(created); by != "" {
		return Answer{Outcome: Refused, Why: why, By: by}
	}
	return Answer{Outcome: Recreated}
}

// prioritize sets the priority of a pod by its class, or by the default of the cluster. It returns the
// class that does not exist; empty if there is none.
func (w *Workloads) prioritize(created *corev1.Pod) (missing string) {
	name := created.Spec.PriorityClassName
	if len(w.priorities) == 0 {
		return ""
	}
	class, ok := w.priorities[name]
	switch {
	case name == "" && w.byDefault == nil:
		return ""
	case name == "":
		class = w.byDefault
	case !ok:
		return fmt.Sprintf("PriorityClass %q", name)
	}
	created.Spec.PriorityClassName, created.Spec.Priority, created.Spec.PreemptionPolicy = class.Name, &class.Value, class.PreemptionPolicy
	return ""
}

// runtime adds what its RuntimeClass prescribes to a pod, and returns the quoted name of a class that does not exist; empty
// if there is none (kubernetes plugin/pkg/admission/runtimeclass).
func (w *Workloads) runtime(created *corev1.Pod) (missing string) {
	name := created.Spec.RuntimeClassName
	if name == nil || w.runtimes == nil {
		return ""
	}
	class, ok := w.runtimes[*name]
	if !ok {
		return strconv.Quote(*name)
	}
	if class.Overhead != nil && created.Spec.Overhead == nil {
		created.Spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return ""
	}
	for key, value := range class.Scheduling.NodeSelector {
		if created.Spec.NodeSelector == nil {
			created.Spec.NodeSelector = map[string]string{}
		}
		created.Spec.NodeSelector[key] = value
	}
	created.Spec.Tolerations = append(created.Spec.Tolerations, class.Scheduling.Tolerations...)
	return ""
}

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
	for name, most := range item.MaxLimitRequestRatio {
		request, limit := of.Requests[name], of.Limits[name]
		if request.IsZero() || limit.IsZero() || limit.AsApproximateFloat64()/request.AsApproximateFloat64() > most.AsApproximateFloat64() {
			return fmt.Sprintf("whose limit of %s is absent or more than %s times its request", name, most.String())
		}
	}
	return ""
}
