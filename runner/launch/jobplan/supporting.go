package jobplan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
	"github.com/openshift/update-preflight/runner/payload"
)

type supportingManifest struct {
	manifest payload.Supporting
	// needs are the other objects that it requires.
	needs      []inventory.Reference
	violations []manifestpolicy.Violation
}

type catalog struct {
	manifests map[inventory.Reference]*supportingManifest
}

// newCatalog finds the references between the supporting objects of one cluster, and their violations.
func newCatalog(supporting []payload.Supporting, side check.Side) catalog {
	c := catalog{manifests: map[inventory.Reference]*supportingManifest{}}
	for _, manifest := range supporting {
		if manifest.Management == (side == check.Management) {
			c.add(manifest)
		}
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
		added.violations = []manifestpolicy.Violation{{Reason: manifestpolicy.ReasonRefusedManifest, Path: "kind", Text: fmt.Sprintf("a preflight may not contain objects of kind %s", ref.Kind)}}
	}
	if ref.Namespace == "" && namespaced(ref.Kind) {
		added.violations = append(added.violations, manifestpolicy.Violation{Reason: manifestpolicy.ReasonRefusedManifest, Path: "metadata.namespace", Text: "is required: a preflight has no default namespace"})
	}
	if first, ok := c.manifests[ref]; ok {
		first.violations = append(first.violations, manifestpolicy.Violation{Reason: manifestpolicy.ReasonRefusedManifest, Path: "metadata.name", Text: fmt.Sprintf("is a duplicate of the object in %s", manifest.File)})
		return
	}
	c.manifests[ref] = added
}

func (c catalog) references() []inventory.Reference {
	refs := make([]inventory.Reference, 0, len(c.manifests))
	for ref := range c.manifests {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, inventory.CompareReferences)
	return refs
}

func namespaced(kind string) bool {
	return kind != "ClusterRole" && kind != "ClusterRoleBinding"
}

// referenceOf identifies a supporting object; false for another kind.
func referenceOf(object payload.Object) (inventory.Reference, bool) {
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
	return inventory.Refer(kind, object.GetNamespace(), object.GetName()), known
}

// connect finds the references and violations of an object.
func (c catalog) connect(ref inventory.Reference, e *supportingManifest) {
	if e.manifest.Management {
		e.violations = append(e.violations, manifestpolicy.ControlPlane(e.manifest.Object)...)
	}
	switch object := e.manifest.Object.(type) {
	case *rbacv1.Role:
		e.violations = append(e.violations, manifestpolicy.Rules(object.Rules)...)
	case *rbacv1.ClusterRole:
		e.violations = append(e.violations, manifestpolicy.Rules(object.Rules)...)
		if object.AggregationRule != nil {
			e.violations = append(e.violations, manifestpolicy.Violation{Reason: manifestpolicy.ReasonRefusedRBAC, Path: "aggregationRule", Text: "would aggregate rules that are not in the release"})
		}
	case *rbacv1.RoleBinding:
		c.bind(ref, e, object.Subjects, object.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		c.bind(ref, e, object.Subjects, object.RoleRef)
	}
}

// bind connects a binding: it needs its role, and each of its ServiceAccounts needs the binding.
func (c catalog) bind(binding inventory.Reference, e *supportingManifest, subjects []rbacv1.Subject, role rbacv1.RoleRef) {
	for i, subject := range subjects {
		account := AccountOfSubject(subject)
		if subject.Kind != rbacv1.ServiceAccountKind || c.manifests[account] == nil {
			e.violations = append(e.violations, manifestpolicy.Violation{
				Reason: manifestpolicy.ReasonRefusedRBAC, Path: fmt.Sprintf("subjects[%d]", i),
				Text: fmt.Sprintf("%s is not an annotated ServiceAccount of the release", account),
			})
			continue
		}
		c.manifests[account].needs = append(c.manifests[account].needs, binding)
	}
	bound := roleOf(role, binding.Namespace)
	switch {
	case c.manifests[bound] != nil:
		e.needs = append(e.needs, bound)
	case !manifestpolicy.ReadOnlyRole(role):
		e.violations = append(e.violations, manifestpolicy.Violation{
			Reason: manifestpolicy.ReasonRefusedRBAC, Path: "roleRef",
			Text: fmt.Sprintf("%s is neither an annotated role of the release, nor ClusterRole cluster-reader or view", bound),
		})
	}
}

// BindingOf are the subjects and the role of a binding; none for another object.
func BindingOf(object payload.Object) ([]rbacv1.Subject, rbacv1.RoleRef) {
	switch binding := object.(type) {
	case *rbacv1.RoleBinding:
		return binding.Subjects, binding.RoleRef
	case *rbacv1.ClusterRoleBinding:
		return binding.Subjects, binding.RoleRef
	}
	return nil, rbacv1.RoleRef{}
}

// AccountOfSubject returns the reference to the subject of a binding.
func AccountOfSubject(subject rbacv1.Subject) inventory.Reference {
	return inventory.Refer(subject.Kind, subject.Namespace, subject.Name)
}

func roleOf(role rbacv1.RoleRef, namespace string) inventory.Reference {
	if role.Kind == "Role" {
		return inventory.Refer(role.Kind, namespace, role.Name)
	}
	return inventory.Refer(role.Kind, "", role.Name)
}

// closure is refs with all that they need, sorted.
func (c catalog) closure(refs []inventory.Reference) []inventory.Reference {
	seen := map[inventory.Reference]bool{}
	var visit func([]inventory.Reference)
	visit = func(refs []inventory.Reference) {
		for _, ref := range refs {
			if !seen[ref] {
				seen[ref] = true
				visit(c.manifests[ref].needs)
			}
		}
	}
	visit(refs)
	all := make([]inventory.Reference, 0, len(seen))
	for ref := range seen {
		all = append(all, ref)
	}
	slices.SortFunc(all, inventory.CompareReferences)
	return all
}
