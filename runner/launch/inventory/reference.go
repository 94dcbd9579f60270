package inventory

import (
	"cmp"
	"fmt"

	"github.com/openshift/update-preflight/runner/payload"
)

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
