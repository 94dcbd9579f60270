package recreation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"
)

// created is the pod that a controller creates in place of one, before admission. Where that pod
// was made of the same template, it is the pod itself, which shows what admission changes.
func (c *controller) created(pod *corev1.Pod, namespace *metav1.PartialObjectMetadata) (made *corev1.Pod, same bool) {
	if c.template == nil {
		return pod, true
	}
	if c.madeOf(pod) && !resized(pod) || !c.changed(pod, namespace) {
		return c.restored(pod, namespace), true
	}
	return c.make(pod), false
}

// make is a pod of the template with the name, the owner and the labels of one that the controller gives to each.
func (c *controller) make(pod *corev1.Pod) *corev1.Pod {
	made := &corev1.Pod{ObjectMeta: *c.template.ObjectMeta.DeepCopy(), Spec: *c.template.Spec.DeepCopy()}
	made.Namespace, made.Name, made.OwnerReferences = pod.Namespace, pod.Name, pod.OwnerReferences
	if made.Labels == nil {
		made.Labels = map[string]string{}
	}
	for _, name := range []string{appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel} {
		if value, ok := pod.Labels[name]; ok {
			made.Labels[name] = value
		}
	}
	for _, claim := range c.claims {
		made.Spec.Volumes = append(made.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim + "-" + pod.Name},
		}})
	}
	return made
}

// restored is a pod with what its template has and was removed from it after its creation: gates and finalizers come
// again, and with them what has to remove them. Its namespace may select other nodes since.
func (c *controller) restored(pod *corev1.Pod, namespace *metav1.PartialObjectMetadata) *corev1.Pod {
	gates, finalizers := c.template.Spec.SchedulingGates, lacking(c.template.Finalizers, pod.Finalizers)
	selected := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: maps.Clone(pod.Spec.NodeSelector)}}
	if err := addSelector(selected, namespace); err != nil {
		selected.Spec.NodeSelector = pod.Spec.NodeSelector // which admit answers
	}
	if len(gates)+len(finalizers) == 0 && maps.Equal(selected.Spec.NodeSelector, pod.Spec.NodeSelector) {
		return pod
	}
	made := pod.DeepCopy()
	made.Spec.SchedulingGates, made.Finalizers = gates, append(made.Finalizers, finalizers...)
	made.Spec.NodeSelector = selected.Spec.NodeSelector
	return made
}

const revisionLabel = "controller-revision-hash"

// madeOf reports whether a pod is known to be of the template from which its controller creates the
// next: a Deployment has a ReplicaSet for each template, and the template of a Job does not change.
// A StatefulSet creates the pods below its partition from the revision before
// (kubernetes pkg/controller/statefulset, newVersionedStatefulSetPod).
func (c *controller) madeOf(pod *corev1.Pod) bool {
	if c.fixed {
		return true
	}
	revision := pod.Labels[revisionLabel]
	if revision == "" || c.revisions.updated == "" {
		return false
	}
	return revision == c.revisions.updated || c.revisions.current == revision && Ordinal(pod) < c.revisions.partition
}

// resized reports whether the resources of a running pod may have been changed in place: the API
// server counts the changes of a pod's spec.
func resized(pod *corev1.Pod) bool { return pod.Generation > 1 }

// changed reports whether the template asks for something else than what a pod has, of what decides where it runs.
func (c *controller) changed(pod *corev1.Pod, namespace *metav1.PartialObjectMetadata) bool {
	of, has := &c.template.Spec, &pod.Spec
	selected := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: maps.Clone(of.NodeSelector)}}
	if err := addSelector(selected, namespace); err != nil || !maps.Equal(selected.Spec.NodeSelector, has.NodeSelector) {
		return true
	}
	return !equality.Semantic.DeepEqual(requirementsOf(of), requirementsOf(has)) || !within(c.template.Labels, pod.Labels) ||
		missing(of.Tolerations, has.Tolerations) || missing(c.template.Finalizers, pod.Finalizers) || missing(claims(of), claims(has)) ||
		!requested(of.Containers, has.Containers) || !requested(of.InitContainers, has.InitContainers)
}

// requirements are the parts that a template and its pods have in common, without the additions of admission. The
// API server merges matchLabelKeys into the selectors of a pod, so a selector with keys is omitted.
type requirements struct {
	HostNetwork bool
	Node        *corev1.NodeSelector
	Near, Apart []corev1.PodAffinityTerm
	Spread      []corev1.TopologySpreadConstraint
	Scheduler   string
}

func requirementsOf(spec *corev1.PodSpec) requirements {
	found := requirements{HostNetwork: spec.HostNetwork, Scheduler: cmp.Or(spec.SchedulerName, corev1.DefaultSchedulerName)}
	for _, each := range spec.TopologySpreadConstraints {
		found.Spread = append(found.Spread, corev1.TopologySpreadConstraint{
			MaxSkew: each.MaxSkew, TopologyKey: each.TopologyKey,
			WhenUnsatisfiable: each.WhenUnsatisfiable,
		})
	}
	if spec.Affinity == nil {
		return found
	}
	if of := spec.Affinity.NodeAffinity; of != nil {
		found.Node = of.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if of := spec.Affinity.PodAffinity; of != nil {
		found.Near = withoutKeys(of.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if of := spec.Affinity.PodAntiAffinity; of != nil {
		found.Apart = withoutKeys(of.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return found
}

func withoutKeys(terms []corev1.PodAffinityTerm) []corev1.PodAffinityTerm {
	var found []corev1.PodAffinityTerm
	for _, term := range terms {
		if len(term.MatchLabelKeys)+len(term.MismatchLabelKeys) > 0 {
			term.LabelSelector = nil
		}
		found = append(found, term)
	}
	return found
}

func within(some, all map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}

func claims(spec *corev1.PodSpec) []string {
	var found []string
	for i := range spec.Volumes {
		if claim := spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			found = append(found, claim.ClaimName)
		}
	}
	return found
}

// missing reports whether one of some is not among all.
func missing[T any](some, all []T) bool { return len(lacking(some, all)) > 0 }

// lacking returns the elements of some that all does not have.
func lacking[T any](some, all []T) []T {
	return slices.DeleteFunc(slices.Clone(some), func(one T) bool {
		return slices.ContainsFunc(all, func(other T) bool { return equality.Semantic.DeepEqual(one, other) })
	})
}

// requested reports whether a pod has the containers of its template, with their requests and ports of the host.
func requested(of, has []corev1.Container) bool {
	for i := range of {
		at := slices.IndexFunc(has, func(c corev1.Container) bool { return c.Name == of[i].Name })
		if at < 0 || missing(hostPorts(of[i].Ports), hostPorts(has[at].Ports)) {
			return false
		}
		for name, quantity := range of[i].Resources.Requests {
			if got, ok := has[at].Resources.Requests[name]; !ok || got.Cmp(quantity) != 0 {
				return false
			}
		}
	}
	return true
}

// hostPorts are the ports of the host, without their names.
func hostPorts(all []corev1.ContainerPort) []corev1.ContainerPort {
	var found []corev1.ContainerPort
	for _, port := range all {
		if port.HostPort != 0 {
			found = append(found, corev1.ContainerPort{
				HostPort: port.HostPort, HostIP: port.HostIP,
				Protocol: cmp.Or(port.Protocol, corev1.ProtocolTCP),
			})
		}
	}
	return found
}

// Ordinal is the number at the end of the name of a StatefulSet's pod; 0 without one.
func Ordinal(pod *corev1.Pod) int {
	number, err := strconv.Atoi(pod.Name[strings.LastIndexByte(pod.Name, '-')+1:])
	if err != nil {
		return 0
	}
	return number
}

// selectorAnnotations are the annotations of a namespace with the node selector of its pods (OpenShift's project
// node selector, and the admission plugin PodNodeSelector).
func selectorAnnotations() []string {
	return []string{"openshift.io/node-selector", "scheduler.alpha.kubernetes.io/node-selector"}
}

// addSelector adds the node selector of the namespace to a pod, as admission does.
func addSelector(pod *corev1.Pod, namespace *metav1.PartialObjectMetadata) error {
	if namespace == nil {
		return nil
	}
	for _, name := range selectorAnnotations() {
		text := namespace.Annotations[name]
		if text == "" {
			continue
		}
		selector, err := metav1.ParseToLabelSelector(text)
		if err != nil || len(selector.MatchExpressions) > 0 {
			return fmt.Errorf("annotation %s of namespace %q is not a node selector", name, namespace.Name)
		}
		for key, value := range selector.MatchLabels {
			if pod.Spec.NodeSelector == nil {
				pod.Spec.NodeSelector = map[string]string{}
			}
			pod.Spec.NodeSelector[key] = value
		}
	}
	return nil
}

// admit returns the API server's response to the creation of a pod, to which it adds its defaults. Quotas are
// checked for values that the pod does not specify; the rehearsal checks their room.
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
		switch item.Type { //nolint:exhaustive // other types do not limit pods
		case corev1.LimitTypeContainer:
			for _, container := range containers(pod) {
				if why := outside(container.Resources, item); why != "" {
					return fmt.Sprintf("has a container %q %s", container.Name, why)
				}
			}
		case corev1.LimitTypePod:
			of := corev1.ResourceRequirements{
				Requests: helpers.PodRequests(pod, helpers.PodResourcesOptions{}),
				Limits:   helpers.PodLimits(pod, helpers.PodResourcesOptions{}),
			}
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
