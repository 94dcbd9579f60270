// Package recreation answers: is an evicted pod recreated, and as which pod?
//
// [New] indexes the controllers that create pods and the objects that may reject them, and [Workloads.Of] returns
// the answer for one pod: what its controller creates from its current template, as the API server admits it.
// Decisions of webhooks and policies are not read here.
package recreation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	quotav1 "github.com/openshift/api/quota/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	helpers "k8s.io/component-helpers/resource"

	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/quota"
)

// Input contains the objects that the answer depends on. With Unread, a list may be incomplete, so a controller
// that is not in it is not considered missing.
type Input struct {
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet
	Controllers  []corev1.ReplicationController
	Jobs         []batchv1.Job
	Quotas       []corev1.ResourceQuota
	Limits       []corev1.LimitRange
	Priorities   []schedulingv1.PriorityClass
	// ClusterQuotas are the ClusterResourceQuotas of OpenShift.
	ClusterQuotas []quotav1.ClusterResourceQuota
	// Runtimes are the RuntimeClasses. Without AllRuntimes, one that is not there may exist.
	Runtimes    []nodev1.RuntimeClass
	AllRuntimes bool
	// Namespaces have the node selectors of projects, and the levels of Pod Security.
	Namespaces []metav1.PartialObjectMetadata
	// Accounts are all ServiceAccounts. In a namespace without any, where their controller is not running, and if they
	// are unknown, all exist.
	Accounts []metav1.PartialObjectMetadata
	Unread   bool
}

// Outcome is the fate of a pod after its eviction.
type Outcome string

// The outcomes.
const (
	// Recreated is a pod that its controller creates again.
	Recreated Outcome = "Recreated"
	// Lost is a pod that nothing creates again.
	Lost Outcome = "Lost"
	// Refused is a pod that its controller tries to create, and that the API server refuses.
	Refused Outcome = "Refused"
	// Unknown is a pod of a controller that is not one of Kubernetes.
	Unknown Outcome = "Unknown"
)

// Answer is the fate of a pod, with its cause.
type Answer struct {
	Outcome Outcome
	// Pod is the new pod; nil if it runs on the same nodes as the evicted one.
	Pod *corev1.Pod
	// Charges are the amounts that quotas count for it.
	Charges []quota.Charge
	// Why is a clause without a subject, such as "has no controller"; empty for Recreated.
	Why string
	// By is the object that refuses the pod, such as ResourceQuota "compute".
	By string
	// Asked is true if the API server itself has admitted the pod.
	Asked bool
}

// String is why no pod is created, as a clause with a subject.
func (a Answer) String() string {
	if a.By != "" {
		return a.By + " refuses it: it " + a.Why
	}
	return "it " + a.Why
}

// Workloads creates pods.
type Workloads struct {
	controllers map[key]*controller
	quotas      *quota.Quotas
	limits      map[string][]*corev1.LimitRange
	priorities  map[string]*schedulingv1.PriorityClass
	byDefault   *schedulingv1.PriorityClass
	runtimes    map[string]*nodev1.RuntimeClass // nil where they are not known
	namespaces  map[string]*metav1.PartialObjectMetadata
	accounts    map[string]map[string]bool
	unread      bool
	answers     answers
}

type key struct {
	schema.GroupKind

	namespace, name string
}

// Kinds of the controllers of Kubernetes. Other API groups have kinds of the same names.
func replicaSet() schema.GroupKind {
	return appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind()
}

func statefulSet() schema.GroupKind {
	return appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind()
}

func daemonSet() schema.GroupKind { return appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind() }

func replicationController() schema.GroupKind {
	return corev1.SchemeGroupVersion.WithKind("ReplicationController").GroupKind()
}

func ofJob() schema.GroupKind { return batchv1.SchemeGroupVersion.WithKind("Job").GroupKind() }

func keyOf(namespace string, reference *metav1.OwnerReference) key {
	return key{owner.KindOf(reference), namespace, reference.Name}
}

// New indexes what creates pods.
func New(input Input) *Workloads {
	w := &Workloads{
		controllers: map[key]*controller{}, accounts: map[string]map[string]bool{}, quotas: quota.New(input.Quotas, input.ClusterQuotas),
		limits:     map[string][]*corev1.LimitRange{},
		priorities: map[string]*schedulingv1.PriorityClass{}, namespaces: map[string]*metav1.PartialObjectMetadata{}, unread: input.Unread,
	}
	w.addControllers(&input)
	for i := range input.Limits {
		w.limits[input.Limits[i].Namespace] = append(w.limits[input.Limits[i].Namespace], &input.Limits[i])
	}
	for i := range input.Priorities {
		w.priorities[input.Priorities[i].Name] = &input.Priorities[i]
		if input.Priorities[i].GlobalDefault {
			w.byDefault = &input.Priorities[i]
		}
	}
	if input.AllRuntimes {
		w.runtimes = map[string]*nodev1.RuntimeClass{}
	}
	for i := range input.Runtimes {
		if w.runtimes != nil {
			w.runtimes[input.Runtimes[i].Name] = &input.Runtimes[i]
		}
	}
	for i := range input.Namespaces {
		w.namespaces[input.Namespaces[i].Name] = &input.Namespaces[i]
	}
	for i := range input.Accounts {
		of := &input.Accounts[i]
		if w.accounts[of.Namespace] == nil {
			w.accounts[of.Namespace] = map[string]bool{}
		}
		w.accounts[of.Namespace][of.Name] = true
	}
	return w
}

func (w *Workloads) addControllers(input *Input) {
	for i := range input.ReplicaSets {
		of := fromReplicaSet(&input.ReplicaSets[i])
		w.controllers[key{replicaSet(), input.ReplicaSets[i].Namespace, input.ReplicaSets[i].Name}] = &of
	}
	for i := range input.StatefulSets {
		of := fromStatefulSet(&input.StatefulSets[i])
		w.controllers[key{statefulSet(), input.StatefulSets[i].Namespace, input.StatefulSets[i].Name}] = &of
	}
	for i := range input.Controllers {
		of := fromReplicationController(&input.Controllers[i])
		w.controllers[key{replicationController(), input.Controllers[i].Namespace, input.Controllers[i].Name}] = &of
	}
	for i := range input.Jobs {
		of := fromJob(&input.Jobs[i])
		w.controllers[key{ofJob(), input.Jobs[i].Namespace, input.Jobs[i].Name}] = &of
	}
}

// Quotas are the quotas of the input.
func (w *Workloads) Quotas() *quota.Quotas { return w.quotas }

// Controller returns how the controller of a pod creates pods; false if unknown.
func (w *Workloads) Controller(pod *corev1.Pod) (Controller, bool) {
	reference := metav1.GetControllerOfNoCopy(pod)
	if reference == nil {
		return Controller{}, false
	}
	found, ok := w.controllers[keyOf(pod.Namespace, reference)]
	if !ok {
		return Controller{}, false
	}
	return found.of, true
}

// maxMissing bounds the pods that Missing has of one controller.
const maxMissing = 100

// Missing are the pods that controllers are to have and that do not exist, made from their templates, at most a hundred of each
// controller. The pods of a StatefulSet have their future names; others have the name of their controller.
func (w *Workloads) Missing(pods []corev1.Pod) []corev1.Pod {
	counts, exists := present(pods)
	compare := func(a, b key) int {
		return cmp.Compare(a.String()+a.namespace+"/"+a.name, b.String()+b.namespace+"/"+b.name)
	}
	var missing []corev1.Pod
	for _, of := range slices.SortedFunc(maps.Keys(w.controllers), compare) {
		by := w.controllers[of]
		if by.template == nil || by.lost != "" || by.failure != "" && !w.answers.admits(of) || by.of.Unscaled {
			continue
		}
		names := slices.Repeat([]string{of.name}, min(maxMissing, max(0, by.of.Replicas-counts[of])))
		if of.GroupKind == statefulSet() {
			by.ordinals(names, of, exists)
		}
		for _, name := range names {
			missing = append(missing, by.fresh(of, name))
		}
	}
	return missing
}

// present counts the pods of each controller that have not ended, and has the names of all pods.
func present(pods []corev1.Pod) (counts map[key]int, exists map[string]bool) {
	counts, exists = map[key]int{}, map[string]bool{}
	for i := range pods {
		phase := pods[i].Status.Phase
		if by := metav1.GetControllerOfNoCopy(&pods[i]); by != nil && phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			counts[keyOf(pods[i].Namespace, by)]++
		}
		exists[pods[i].Namespace+"/"+pods[i].Name] = true
	}
	return counts, exists
}

// ordinals names the pods that a StatefulSet lacks.
func (c *controller) ordinals(names []string, of key, exists map[string]bool) {
	at := 0
	for ordinal := c.of.First; at < len(names) && ordinal < c.of.First+c.of.Replicas; ordinal++ {
		if name := fmt.Sprintf("%s-%d", of.name, ordinal); !exists[of.namespace+"/"+name] {
			names[at], at = name, at+1
		}
	}
}

// fresh is a pod that a controller has not created yet, with that name.
func (c *controller) fresh(of key, name string) corev1.Pod {
	version, kind := appsv1.SchemeGroupVersion.String(), of.Kind
	if of.GroupKind == replicationController() {
		version = corev1.SchemeGroupVersion.String()
	}
	stub := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: of.namespace, Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: version, Kind: kind, Name: of.name,
			Controller: new(true),
		}},
	}}
	if of.GroupKind == statefulSet() {
		stub.Labels = map[string]string{appsv1.StatefulSetPodNameLabel: name, appsv1.PodIndexLabel: fmt.Sprint(Ordinal(stub))}
	}
	return *c.make(stub)
}

// Of returns the fate of a pod after its eviction.
func (w *Workloads) Of(pod *corev1.Pod) Answer {
	reference := metav1.GetControllerOfNoCopy(pod)
	if reference == nil && len(pod.OwnerReferences) > 0 {
		reference = &pod.OwnerReferences[0] // such as a CatalogSource, whose operator creates its pods
	}
	if reference == nil {
		return Answer{Outcome: Lost, Why: "has no controller"}
	}
	found, ok := w.controllers[keyOf(pod.Namespace, reference)]
	switch {
	case !ok:
		return w.answers.counted(nil, pod, w.unlisted(reference), nil)
	case found.lost != "":
		return Answer{Outcome: Lost, Why: found.lost}
	case found.failsIndex(pod):
		return Answer{Outcome: Lost, Why: fmt.Sprintf("is the last attempt "+
			"for index %s of %s", pod.Annotations[batchv1.JobCompletionIndexAnnotation],
			found.name)}
	case found.failure != "":
		return asked(w, found, pod, Answer{Outcome: Refused, Why: "cannot be created now either: " + found.failure, By: found.name})
	case found.template == nil:
		return Answer{Outcome: Recreated}
	}
	return asked(w, found, pod, w.create(found, pod))
}

// asked returns the answer of the model, or of the API server.
func asked(w *Workloads, by *controller, pod *corev1.Pod, modeled Answer) Answer {
	return w.answers.counted(by, pod, modeled, func(spec *corev1.PodSpec) Answer { return admitted(w, by, pod, spec) })
}

// create returns the answer for a pod that a controller recreates. Defaults and limits concern the template: they
// may be newer than the pod.
func (w *Workloads) create(by *controller, pod *corev1.Pod) Answer {
	made, same := by.created(pod, w.namespaces[pod.Namespace])
	if !same {
		return w.createOther(made)
	}
	if by.admitted == nil {
		answer := w.createLike(by, pod)
		by.admitted = &answer
	}
	answer := *by.admitted
	if answer.Pod != nil {
		// Its defaults may have changed; the pod has the other requirements.
		answer.Pod = withResources(made, answer.Pod)
	}
	if answer.Pod == nil && made != pod {
		answer.Pod = made
	}
	return answer
}

// createLike creates a pod of the template of which pod is, too.
func (w *Workloads) createLike(by *controller, pod *corev1.Pod) Answer {
	created := &corev1.Pod{ObjectMeta: *by.template.ObjectMeta.DeepCopy(), Spec: *by.template.Spec.DeepCopy()}
	created.Namespace = pod.Namespace
	answer := w.admit(created)
	if answer.Outcome != Recreated {
		return answer
	}
	if by, why := w.secure(pod); why != "" {
		return Answer{Outcome: Refused, Why: why, By: by}
	}
	answer.Charges = w.quotas.Of(created)
	if len(w.limits[pod.Namespace]) > 0 {
		answer.Pod = created
	}
	return answer
}

// createOther creates a pod from a template that differs from the evicted pod's. Changes by admission are known as
// far as they depend on no webhook.
func (w *Workloads) createOther(made *corev1.Pod) Answer {
	answer := w.admit(made)
	if answer.Outcome != Recreated {
		return answer
	}
	if by, why := w.secure(made); why != "" {
		// A SecurityContextConstraints may set what the level requires.
		return Answer{Outcome: Unknown, Why: "may not be created: it " + why + " (" + by + ")"}
	}
	answer.Charges, answer.Pod = w.quotas.Of(made), made
	return answer
}

// withResources is a pod with the resources that admission gives to the containers of its template; nil
// where it has them.
func withResources(pod, admitted *corev1.Pod) *corev1.Pod {
	options := helpers.PodResourcesOptions{}
	if equality.Semantic.DeepEqual(helpers.PodRequests(pod, options), helpers.PodRequests(admitted, options)) {
		return nil
	}
	made := pod.DeepCopy()
	for _, container := range containers(made) {
		for _, of := range containers(admitted) {
			if of.Name == container.Name {
				container.Resources = of.Resources
			}
		}
	}
	return made
}

// Like returns the fate of a pod whose operator creates a similar one.
func (w *Workloads) Like(pod *corev1.Pod) Answer {
	created := pod.DeepCopy()
	answer := w.admit(created)
	if answer.Outcome != Recreated {
		return answer
	}
	if by, why := w.secure(pod); why != "" {
		return Answer{Outcome: Refused, Why: why, By: by}
	}
	answer.Charges = w.quotas.Of(created)
	return answer
}

func (w *Workloads) unlisted(reference *metav1.OwnerReference) Answer {
	kind := owner.KindOf(reference)
	switch kind {
	case daemonSet():
		return Answer{Outcome: Recreated}
	case replicaSet(), statefulSet(), replicationController(), ofJob():
		if w.unread {
			return Answer{Outcome: Recreated}
		}
		return Answer{Outcome: Lost, Why: fmt.Sprintf("belongs to %s %q, which does not exist", reference.Kind, reference.Name)}
	}
	return Answer{Outcome: Unknown, Why: fmt.Sprintf("belongs to %s %q, whose controller is not a Kubernetes one", kind, reference.Name)}
}
