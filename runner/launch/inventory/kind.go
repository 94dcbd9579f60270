// Package inventory answers: which objects does a run have in the cluster, and of which
// kinds?
//
// [New] returns the [Objects] of a cluster, which the launcher, the read-only guard and the
// cleanup share: the requests for them, and which of them this process has created, ended,
// or found to differ from the plan. The kinds are those that a run may create.
package inventory

import (
	"cmp"
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

// The kinds that are treated apart.
const (
	JobKind     = "Job"
	PodKind     = "Pod"
	PolicyKind  = "ValidatingAdmissionPolicy"
	BindingKind = "ValidatingAdmissionPolicyBinding"
	// SecretKind is the kind of Secrets, which a release may not contain.
	SecretKind = "Secret"
	// ConfigMapKind is the kind of ConfigMaps, which may have what a Secret has.
	ConfigMapKind = "ConfigMap"
)

// Kind is a kind of objects that a run creates, itself or through a controller.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
	// Guard is true for the kinds of the guard. A run works without them if the API
	// does not exist or the user has no permission.
	Guard bool
}

// Kinds returns all kinds in the order of their deletion: an object is deleted before those that it refers to.
func Kinds() []Kind {
	admission := admissionregistrationv1.SchemeGroupVersion
	return []Kind{
		{Name: JobKind, Resource: batchv1.SchemeGroupVersion.WithResource("jobs")},
		{Name: PodKind, Resource: corev1.SchemeGroupVersion.WithResource("pods")},
		{Name: "RoleBinding", Resource: rbacv1.SchemeGroupVersion.WithResource("rolebindings")},
		{Name: "ClusterRoleBinding", Resource: rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")},
		{Name: "Role", Resource: rbacv1.SchemeGroupVersion.WithResource("roles")},
		{Name: "ClusterRole", Resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles")},
		{Name: "ServiceAccount", Resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts")},
		{Name: BindingKind, Resource: admission.WithResource("validatingadmissionpolicybindings"), Guard: true},
		{Name: PolicyKind, Resource: admission.WithResource("validatingadmissionpolicies"), Guard: true},
		{Name: ConfigMapKind, Resource: corev1.SchemeGroupVersion.WithResource("configmaps")},
	}
}

// Namespaced is true for a kind whose objects are in a namespace.
func (k Kind) Namespaced() bool {
	return !k.Guard && k.Name != "ClusterRole" && k.Name != "ClusterRoleBinding"
}

// KindOf returns the kind of a planned object.
func KindOf(object payload.Object) (Kind, error) {
	name := object.GetObjectKind().GroupVersionKind().Kind
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("a preflight creates no objects of kind %q", name)
}

// Request is the kind in a request for access.
func (k Kind) Request() access.Request {
	return access.Request{Group: k.Resource.Group, Resource: k.Resource.Resource}
}

// Object names an object of the kind.
func (k Kind) Object(object metav1.Object) preflight.Object {
	return preflight.Object{
		APIVersion: k.Resource.GroupVersion().String(), Kind: k.Name, Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// Reference identifies an object. Namespace is empty for cluster roles and their bindings.
type Reference struct {
	Kind, Namespace, Name string
}

// Refer returns the reference to an object.
func Refer(kind, namespace, name string) Reference {
	return Reference{Kind: kind, Namespace: namespace, Name: name}
}

func (r Reference) String() string {
	if r.Namespace == "" {
		return fmt.Sprintf("%s %q", r.Kind, r.Name)
	}
	return fmt.Sprintf("%s %q in namespace %q", r.Kind, r.Name, r.Namespace)
}

// ReferenceTo returns the reference to a planned object, which has its kind.
func ReferenceTo(object payload.Object) Reference {
	return Reference{object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName()}
}

// CompareReferences orders bindings last, since the API server requires the objects that they refer to.
func CompareReferences(a, b Reference) int {
	return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func rank(kind string) int {
	if IsBinding(kind) {
		return 1
	}
	return 0
}

// IsBinding is true for a kind whose objects refer to a role and to accounts.
func IsBinding(kind string) bool { return kind == "RoleBinding" || kind == "ClusterRoleBinding" }
