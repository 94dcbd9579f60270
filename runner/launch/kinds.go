package launch

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
)

const (
	jobKind     = "Job"
	podKind     = "Pod"
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
	// secretKind is the kind of Secrets, which a release may not contain.
	secretKind = "Secret"
)

// kind is a kind of objects that a run creates, itself or through a controller.
type kind struct {
	name     string
	resource schema.GroupVersionResource
	// guard is true for the kinds of the guard. A run works without them if the API
	// does not exist or the user has no permission.
	guard bool
}

// kinds are all kinds in the order of their deletion: an object is deleted before
// those that it refers to.
func kinds() []kind {
	admission := admissionregistrationv1.SchemeGroupVersion
	return []kind{
		{name: jobKind, resource: batchv1.SchemeGroupVersion.WithResource("jobs")},
		{name: podKind, resource: corev1.SchemeGroupVersion.WithResource("pods")},
		{name: "RoleBinding", resource: rbacv1.SchemeGroupVersion.WithResource("rolebindings")},
		{name: "ClusterRoleBinding", resource: rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")},
		{name: "Role", resource: rbacv1.SchemeGroupVersion.WithResource("roles")},
		{name: "ClusterRole", resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles")},
		{name: "ServiceAccount", resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts")},
		{name: bindingKind, resource: admission.WithResource("validatingadmissionpolicybindings"), guard: true},
		{name: policyKind, resource: admission.WithResource("validatingadmissionpolicies"), guard: true},
		{name: "ConfigMap", resource: corev1.SchemeGroupVersion.WithResource("configmaps")},
	}
}

func kindOf(object payload.Object) (kind, error) {
	name := object.GetObjectKind().GroupVersionKind().Kind
	for _, k := range kinds() {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("a preflight creates no objects of kind %q", name)
}

// request is the kind in a request for access.
func (k kind) request() access.Request {
	return access.Request{Group: k.resource.Group, Resource: k.resource.Resource}
}

// object names an object of the kind.
func (k kind) object(object metav1.Object) preflight.Object {
	return preflight.Object{
		APIVersion: k.resource.GroupVersion().String(), Kind: k.name, Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}
