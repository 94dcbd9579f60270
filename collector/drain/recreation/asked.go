package recreation

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/openshift/update-preflight/collector/drain/owner"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Said is what the API server answered to the creation of the next pod of a controller, which was sent as a dry run.
type Said struct {
	// Admitted is the pod as it would be stored; nil where it is refused.
	Admitted *corev1.Pod
	// By refuses it, with Why as a message. Full is true where only a quota without room does, which decides after all else: its room when
	// the pod is evicted is another one than now.
	By, Why string
	Full    bool
}

// Asks is how the API server is asked about the next pods of controllers.
type Asks struct {
	// Ask returns an answer for each of the controllers about which the API server could be asked.
	Ask func(ctx context.Context, controllers []preflight.Object) (map[preflight.Object]Said, error)
	// Differs is called with each difference between its answer and that of the model.
	Differs func(difference string)
}

// ControllerOf is the controller of a pod, in a question to the API server; false for one that Kubernetes does not have, and for a
// DaemonSet, whose pods a drain leaves.
func ControllerOf(pod *corev1.Pod) (preflight.Object, bool) {
	reference := metav1.GetControllerOfNoCopy(pod)
	if reference == nil {
		return preflight.Object{}, false
	}
	switch owner.KindOf(reference) {
	case replicaSet(), statefulSet(), replicationController(), ofJob():
		return preflight.Object{APIVersion: reference.APIVersion, Kind: reference.Kind, Namespace: pod.Namespace, Name: reference.Name}, true
	}
	return preflight.Object{}, false
}

// Use has the answers of the API server count instead of the model's. Differs is called with each difference of the two, once for each
// controller. What webhooks and policies answer is not modeled here.
func (w *Workloads) Use(said map[preflight.Object]Said, differs func(difference string)) {
	w.answers = answers{said: said, differs: differs, reported: map[preflight.Object]bool{}}
}

// answers has what the API server said, by controller.
type answers struct {
	said     map[preflight.Object]Said
	differs  func(string)
	reported map[preflight.Object]bool
}

// admits reports whether the API server admits the next pod of a controller.
func (a *answers) admits(of key) bool {
	for object, said := range a.said {
		if object.Namespace == of.namespace && object.Name == of.name && object.Kind == of.Kind {
			return said.Admitted != nil
		}
	}
	return false
}

// counted is the answer of the model with what the API server said of the next pod, where it was asked. That nothing is created is not
// the API server's to answer, nor is the room of a quota when the pod is evicted. Pods below the partition of a StatefulSet are of
// another template than the one that was asked about.
func (a *answers) counted(by *controller, pod *corev1.Pod, modeled Answer, remake func(spec *corev1.PodSpec) Answer) Answer {
	object, ok := ControllerOf(pod)
	said, asked := a.said[object]
	below := by != nil && by.revisions.current != by.revisions.updated && Ordinal(pod) < by.revisions.partition
	switch {
	case !ok || !asked || below || modeled.Outcome == Lost, said.Full && strings.Contains(modeled.By, "ResourceQuota"):
		return modeled
	case said.Admitted == nil && !said.Full:
		if modeled.Outcome != Refused {
			a.report(object, said.By+" refuses it", modeled)
		}
		return Answer{Outcome: Refused, Why: "cannot be created: " + said.Why, By: said.By}
	case modeled.Outcome != Recreated:
		a.report(object, "the API server admits it", modeled)
	case said.Full || by == nil:
		return modeled
	case alike(&said.Admitted.Spec, specOf(modeled, pod)):
		modeled.Asked = true
		return modeled
	default:
		a.report(object, "the API server admits it with other requests or another choice of nodes", modeled)
	}
	if said.Admitted == nil {
		return remake(nil)
	}
	return remake(&said.Admitted.Spec)
}

func (a *answers) report(of preflight.Object, answer string, modeled Answer) {
	if a.reported[of] {
		return
	}
	a.reported[of] = true
	text := fmt.Sprintf("the next pod of %s %q in namespace %q: %s; the model: %s", of.Kind, of.Name, of.Namespace, answer, modeled.Outcome)
	if modeled.Why != "" {
		text += ", " + modeled.String()
	}
	a.differs(text)
}

// specOf is the spec of the pod that the model creates. Without a pod of its own, that is the one of the evicted pod.
func specOf(modeled Answer, pod *corev1.Pod) *corev1.PodSpec {
	if modeled.Pod != nil {
		return &modeled.Pod.Spec
	}
	return &pod.Spec
}

// alike reports whether two pods run on the same nodes and are charged the same, as far as admission decides.
func alike(x, y *corev1.PodSpec) bool {
	options := helpers.PodResourcesOptions{}
	return equality.Semantic.DeepEqual(helpers.PodRequests(&corev1.Pod{Spec: *x}, options), helpers.PodRequests(&corev1.Pod{Spec: *y}, options)) &&
		equality.Semantic.DeepEqual(requirementsOf(x), requirementsOf(y)) && maps.Equal(x.NodeSelector, y.NodeSelector) &&
		len(x.SchedulingGates) == len(y.SchedulingGates)
}

// admitted is the pod of a controller with the spec that the API server has admitted; without one, with that of its template.
func admitted(w *Workloads, by *controller, pod *corev1.Pod, spec *corev1.PodSpec) Answer {
	made, _ := by.created(pod, w.namespaces[pod.Namespace])
	made = made.DeepCopy()
	if spec != nil {
		volumes := made.Spec.Volumes
		made.Spec = *spec.DeepCopy()
		made.Spec.Volumes = volumes // with the claims of this pod
	}
	return Answer{Outcome: Recreated, Pod: made, Charges: w.quotas.Of(made), Asked: true}
}
