package launch

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/payload"
)

// reference names an object as other manifests do. Namespace is empty for
// cluster roles and their bindings.
type reference struct {
	kind, namespace, name string
}

func (r reference) String() string {
	if r.namespace == "" {
		return fmt.Sprintf("%s %q", r.kind, r.name)
	}
	return fmt.Sprintf("%s %q in namespace %q", r.kind, r.name, r.namespace)
}

// entry is one supporting manifest of the release.
type entry struct {
	manifest payload.Supporting
	// needs are what else must exist for it to take effect.
	needs  []reference
	faults []fault
}

// catalog holds the supporting manifests of a release by the author's names.
type catalog struct{ entries map[reference]*entry }

// newCatalog finds the references between the supporting objects, and what they
// violate.
func newCatalog(supporting []payload.Supporting) catalog {
	c := catalog{entries: map[reference]*entry{}}
	for _, manifest := range supporting {
		c.add(manifest)
	}
	for _, ref := range c.references() {
		c.connect(ref, c.entries[ref])
	}
	return c
}

func (c catalog) add(manifest payload.Supporting) {
	ref, known := referenceOf(manifest.Object)
	added := &entry{manifest: manifest}
	if !known {
		added.faults = []fault{{ruleManifest, "kind", fmt.Sprintf("%s is not a kind that a preflight may bring", ref.kind)}}
	}
	if ref.namespace == "" && namespaced(ref.kind) {
		added.faults = append(added.faults, fault{ruleManifest, "metadata.namespace", "is required: a preflight has no namespace of its own"})
	}
	if first, ok := c.entries[ref]; ok {
		first.faults = append(first.faults, fault{ruleManifest, "metadata.name", fmt.Sprintf("the release has it twice, also in %s", manifest.File)})
		return
	}
	c.entries[ref] = added
}

// references are the keys of the catalog in a fixed order.
func (c catalog) references() []reference {
	refs := make([]reference, 0, len(c.entries))
	for ref := range c.entries {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, compareReferences)
	return refs
}

// compareReferences puts what is bound before the bindings, which the API
// server wants to look up.
func compareReferences(a, b reference) int {
	return cmp.Or(cmp.Compare(rank(a.kind), rank(b.kind)), cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

func rank(kind string) int {
	if kind == "RoleBinding" || kind == "ClusterRoleBinding" {
		return 1
	}
	return 0
}

func namespaced(kind string) bool {
	return kind != "ClusterRole" && kind != "ClusterRoleBinding"
}

// referenceOf names a supporting object; false for a kind that is none.
func referenceOf(object payload.Object) (reference, bool) {
	kind, known := "", true
	switch object.(type) {
	case *corev1.ServiceAccount:
		kind = "ServiceAccount"
	case *corev1.ConfigMap:
		kind = "ConfigMap"
	case *rbacv1.Role:
		kind = "Role"
	case *rbacv1.ClusterRole:
		kind = "ClusterRole"
	case *rbacv1.RoleBinding:
		kind = "RoleBinding"
	case *rbacv1.ClusterRoleBinding:
		kind = "ClusterRoleBinding"
	default:
		kind, known = fmt.Sprintf("%T", object), false
	}
	return reference{kind, object.GetNamespace(), object.GetName()}, known
}

const rbacVersion = "rbac.authorization.k8s.io/v1"

func typeMeta(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

// connect finds what an object refers to and what it violates.
func (c catalog) connect(ref reference, e *entry) {
	switch object := e.manifest.Object.(type) {
	case *rbacv1.Role:
		e.faults = append(e.faults, ruleFaults(object.Rules)...)
	case *rbacv1.ClusterRole:
		e.faults = append(e.faults, ruleFaults(object.Rules)...)
		if object.AggregationRule != nil {
			e.faults = append(e.faults, fault{ruleRBAC, "aggregationRule", "would gather rules that the release does not show"})
		}
	case *rbacv1.RoleBinding:
		c.bind(ref, e, object.Subjects, object.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		c.bind(ref, e, object.Subjects, object.RoleRef)
	}
}

// bind connects a binding. It needs its role, and each of its accounts needs the
// binding.
func (c catalog) bind(binding reference, e *entry, subjects []rbacv1.Subject, role rbacv1.RoleRef) {
	for i, subject := range subjects {
		account := accountOfSubject(subject)
		if subject.Kind != rbacv1.ServiceAccountKind || c.entries[account] == nil {
			e.faults = append(e.faults, fault{
				ruleRBAC, fmt.Sprintf("subjects[%d]", i),
				fmt.Sprintf("%s is not an annotated ServiceAccount of the release", account),
			})
			continue
		}
		c.entries[account].needs = append(c.entries[account].needs, binding)
	}
	bound := roleOf(role, binding.namespace)
	switch {
	case c.entries[bound] != nil:
		e.needs = append(e.needs, bound)
	case !readOnlyRole(role):
		e.faults = append(e.faults, fault{
			ruleRBAC, "roleRef",
			fmt.Sprintf("%s is neither an annotated role of the release, nor ClusterRole cluster-reader or view", bound),
		})
	}
}

func accountOfSubject(subject rbacv1.Subject) reference {
	return reference{subject.Kind, subject.Namespace, subject.Name}
}

// roleOf is the role that a binding in a namespace refers to.
func roleOf(role rbacv1.RoleRef, namespace string) reference {
	if role.Kind == "Role" {
		return reference{role.Kind, namespace, role.Name}
	}
	return reference{role.Kind, "", role.Name}
}

// closure is everything that refs need, themselves included, in a fixed order.
func (c catalog) closure(refs []reference) []reference {
	seen := map[reference]bool{}
	var visit func([]reference)
	visit = func(refs []reference) {
		for _, ref := range refs {
			if !seen[ref] {
				seen[ref] = true
				visit(c.entries[ref].needs)
			}
		}
	}
	visit(refs)
	all := make([]reference, 0, len(seen))
	for ref := range seen {
		all = append(all, ref)
	}
	slices.SortFunc(all, compareReferences)
	return all
}
