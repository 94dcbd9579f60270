package launch

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/runner/payload"
)

// supportingManifest is one supporting manifest of the release.
type supportingManifest struct {
	manifest payload.Supporting
	// needs are the other objects that it requires.
	needs      []reference
	violations []violation
}

// catalog has the supporting manifests of a release by the author's names.
type catalog struct {
	manifests map[reference]*supportingManifest
}

// newCatalog finds the references between the supporting objects, and their
// violations.
func newCatalog(supporting []payload.Supporting) catalog {
	c := catalog{manifests: map[reference]*supportingManifest{}}
	for _, manifest := range supporting {
		c.add(manifest)
	}
	for _, ref := range c.references() {
		c.connect(ref, c.manifests[ref])
	}
	return c
}

func (c catalog) add(manifest payload.Supporting) {
	ref, known := referenceOf(manifest.Object)
	added := &supportingManifest{manifest: manifest}
	if !known {
		added.violations = []violation{{ReasonRefusedManifest, "kind", fmt.Sprintf("a preflight may not contain objects of kind %s", ref.kind)}}
	}
	if ref.namespace == "" && namespaced(ref.kind) {
		added.violations = append(added.violations, violation{ReasonRefusedManifest, "metadata.namespace", "is required: a preflight has no default namespace"})
	}
	if first, ok := c.manifests[ref]; ok {
		first.violations = append(first.violations, violation{ReasonRefusedManifest, "metadata.name", fmt.Sprintf("is a duplicate of the object in %s", manifest.File)})
		return
	}
	c.manifests[ref] = added
}

// references are the keys of the catalog, sorted.
func (c catalog) references() []reference {
	refs := make([]reference, 0, len(c.manifests))
	for ref := range c.manifests {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, compareReferences)
	return refs
}

func namespaced(kind string) bool {
	return kind != "ClusterRole" && kind != "ClusterRoleBinding"
}

// referenceOf identifies a supporting object; false for another kind.
func referenceOf(object payload.Object) (reference, bool) {
	var kind string
	known := true
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

// connect finds the references and violations of an object.
func (c catalog) connect(ref reference, e *supportingManifest) {
	switch object := e.manifest.Object.(type) {
	case *rbacv1.Role:
		e.violations = append(e.violations, ruleViolations(object.Rules)...)
	case *rbacv1.ClusterRole:
		e.violations = append(e.violations, ruleViolations(object.Rules)...)
		if object.AggregationRule != nil {
			e.violations = append(e.violations, violation{ReasonRefusedRBAC, "aggregationRule", "would aggregate rules that are not in the release"})
		}
	case *rbacv1.RoleBinding:
		c.bind(ref, e, object.Subjects, object.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		c.bind(ref, e, object.Subjects, object.RoleRef)
	}
}

// bind connects a binding: it needs its role, and each of its ServiceAccounts needs
// the binding.
func (c catalog) bind(binding reference, e *supportingManifest, subjects []rbacv1.Subject, role rbacv1.RoleRef) {
	for i, subject := range subjects {
		account := accountOfSubject(subject)
		if subject.Kind != rbacv1.ServiceAccountKind || c.manifests[account] == nil {
			e.violations = append(e.violations, violation{
				ReasonRefusedRBAC, fmt.Sprintf("subjects[%d]", i),
				fmt.Sprintf("%s is not an annotated ServiceAccount of the release", account),
			})
			continue
		}
		c.manifests[account].needs = append(c.manifests[account].needs, binding)
	}
	bound := roleOf(role, binding.namespace)
	switch {
	case c.manifests[bound] != nil:
		e.needs = append(e.needs, bound)
	case !readOnlyRole(role):
		e.violations = append(e.violations, violation{
			ReasonRefusedRBAC, "roleRef",
			fmt.Sprintf("%s is neither an annotated role of the release, nor ClusterRole cluster-reader or view", bound),
		})
	}
}

// bindingOf are the subjects and the role of a binding; none for another object.
func bindingOf(object payload.Object) ([]rbacv1.Subject, rbacv1.RoleRef) {
	switch binding := object.(type) {
	case *rbacv1.RoleBinding:
		return binding.Subjects, binding.RoleRef
	case *rbacv1.ClusterRoleBinding:
		return binding.Subjects, binding.RoleRef
	}
	return nil, rbacv1.RoleRef{}
}

func accountOfSubject(subject rbacv1.Subject) reference {
	return reference{subject.Kind, subject.Namespace, subject.Name}
}

// roleOf is the role of a binding in a namespace.
func roleOf(role rbacv1.RoleRef, namespace string) reference {
	if role.Kind == "Role" {
		return reference{role.Kind, namespace, role.Name}
	}
	return reference{role.Kind, "", role.Name}
}

// closure is refs with all that they need, sorted.
func (c catalog) closure(refs []reference) []reference {
	seen := map[reference]bool{}
	var visit func([]reference)
	visit = func(refs []reference) {
		for _, ref := range refs {
			if !seen[ref] {
				seen[ref] = true
				visit(c.manifests[ref].needs)
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
