package launch

import (
	"cmp"
	"fmt"

	"github.com/openshift/update-preflight/runner/payload"
)

// reference identifies an object. Namespace is empty for cluster roles and their
// bindings.
type reference struct {
	kind, namespace, name string
}

func (r reference) String() string {
	if r.namespace == "" {
		return fmt.Sprintf("%s %q", r.kind, r.name)
	}
	return fmt.Sprintf("%s %q in namespace %q", r.kind, r.name, r.namespace)
}

func referenceTo(object payload.Object) reference {
	return reference{object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName()}
}

// compareReferences orders bindings last, since the API server requires the objects
// that they refer to.
func compareReferences(a, b reference) int {
	return cmp.Or(cmp.Compare(rank(a.kind), rank(b.kind)), cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

func rank(kind string) int {
	if isBinding(kind) {
		return 1
	}
	return 0
}

// isBinding is true for a kind whose objects refer to a role and to accounts.
func isBinding(kind string) bool { return kind == "RoleBinding" || kind == "ClusterRoleBinding" }
