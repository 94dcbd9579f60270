package drain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/drain/owner"
)

const (
	// olmOwner is the label of objects that the Operator Lifecycle Manager creates from a
	// ClusterServiceVersion (operator-lifecycle-manager pkg/lib/ownerutil).
	olmOwner = "olm.owner"
	// helmRelease is the annotation of objects of a Helm release (helm pkg/action/validate.go).
	helmRelease = "meta.helm.sh/release-name"

	serviceVersion = "ClusterServiceVersion"
)

// managerOf is what creates a budget and restores it after a change, such as `Helm release
// "shop"`; empty where that is not known.
func managerOf(budget *policyv1.PodDisruptionBudget) string {
	for _, owner := range budget.OwnerReferences {
		return fmt.Sprintf("%s %q", owner.Kind, owner.Name)
	}
	if name := budget.Labels[olmOwner]; name != "" {
		return fmt.Sprintf("%s %q", serviceVersion, name)
	}
	if name := budget.Annotations[helmRelease]; name != "" {
		return fmt.Sprintf("Helm release %q", name)
	}
	return ""
}

// operated reports whether an operator other than OLM owns a budget, and may change it during a drain.
func operated(budget *policyv1.PodDisruptionBudget) bool {
	for i := range budget.OwnerReferences {
		if owner.KindOf(&budget.OwnerReferences[i]) != (schema.GroupKind{Group: "operators.coreos.com", Kind: serviceVersion}) {
			return true
		}
	}
	return false
}

// controllerOf is the name of the controller of a pod; empty without one.
func controllerOf(pod *corev1.Pod) string {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return controller.Name
	}
	return ""
}

// custom is the controller of a pod, for a message.
func custom(pod *corev1.Pod) string {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return fmt.Sprintf("%s %q", owner.KindOf(controller), controller.Name)
	}
	return "an operator"
}
