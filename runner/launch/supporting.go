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
	file   string
	lines  payload.Lines
	object payload.Object
	// needs are what else must be there for it to do its work.
	needs  []reference
	faults []fault
}

// catalog holds the supporting manifests of a release by the author's names.
type catalog struct {
	run     Run
	entries map[reference]*entry
}

// newCatalog makes the temporary copies of the supporting objects and has their
// references follow.
func newCatalog(run Run, supporting []payload.Supporting) catalog {
	c := catalog{run: run, entries: map[reference]*entry{}}
	for _, manifest := range supporting {
		c.add(manifest)
	}
	for _, ref := range c.references() {
		c.connect(ref, c.entries[ref])
	}
	return c
}

func (c catalog) add(manifest payload.Supporting) {
	ref, object := c.copyOf(manifest)
	added := &entry{file: manifest.File, lines: manifest.Lines, object: object}
	if object == nil {
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

// copyOf is the temporary copy of a supporting object: what the author says in
// it and nothing that only a server may say. References are still the author's.
func (c catalog) copyOf(manifest payload.Supporting) (reference, payload.Object) {
	meta := func(object metav1.Object) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: c.run.suffixed(object.GetName()), Namespace: object.GetNamespace(),
			Labels:      c.run.labels(object.GetLabels(), manifest.Component),
			Annotations: c.run.annotations(object.GetAnnotations(), manifest.File),
		}
	}
	refer := func(kind string, object metav1.Object) reference {
		return reference{kind, object.GetNamespace(), object.GetName()}
	}
	switch object := manifest.Object.(type) {
	case *corev1.ServiceAccount:
		return refer("ServiceAccount", object), &corev1.ServiceAccount{
			TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: meta(object),
			ImagePullSecrets: object.ImagePullSecrets, AutomountServiceAccountToken: object.AutomountServiceAccountToken,
		}
	case *corev1.ConfigMap:
		return refer("ConfigMap", object), &corev1.ConfigMap{
			TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: meta(object), Data: object.Data, BinaryData: object.BinaryData,
		}
	case *rbacv1.Role:
		return refer("Role", object), &rbacv1.Role{TypeMeta: typeMeta(rbacVersion, "Role"), ObjectMeta: meta(object), Rules: object.Rules}
	case *rbacv1.ClusterRole:
		return refer("ClusterRole", object), &rbacv1.ClusterRole{
			TypeMeta: typeMeta(rbacVersion, "ClusterRole"), ObjectMeta: meta(object),
			Rules: object.Rules, AggregationRule: object.AggregationRule,
		}
	case *rbacv1.RoleBinding:
		return refer("RoleBinding", object), &rbacv1.RoleBinding{
			TypeMeta: typeMeta(rbacVersion, "RoleBinding"), ObjectMeta: meta(object),
			Subjects: slices.Clone(object.Subjects), RoleRef: object.RoleRef,
		}
	case *rbacv1.ClusterRoleBinding:
		return refer("ClusterRoleBinding", object), &rbacv1.ClusterRoleBinding{
			TypeMeta: typeMeta(rbacVersion, "ClusterRoleBinding"), ObjectMeta: meta(object),
			Subjects: slices.Clone(object.Subjects), RoleRef: object.RoleRef,
		}
	}
	return refer(fmt.Sprintf("%T", manifest.Object), manifest.Object), nil
}

const rbacVersion = "rbac.authorization.k8s.io/v1"

func typeMeta(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

// connect has the references of a copy follow, and finds its faults.
func (c catalog) connect(ref reference, e *entry) {
	switch object := e.object.(type) {
	case *rbacv1.Role:
		e.faults = append(e.faults, ruleFaults(object.Rules)...)
	case *rbacv1.ClusterRole:
		e.faults = append(e.faults, ruleFaults(object.Rules)...)
		if object.AggregationRule != nil {
			e.faults = append(e.faults, fault{ruleRBAC, "aggregationRule", "would gather rules that the release does not show"})
		}
	case *rbacv1.RoleBinding:
		c.bind(ref, e, object.Subjects, &object.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		c.bind(ref, e, object.Subjects, &object.RoleRef)
	}
}

// bind has a binding lead from copies to a copy. A binding needs its role, and
// each of its accounts needs the binding.
func (c catalog) bind(binding reference, e *entry, subjects []rbacv1.Subject, role *rbacv1.RoleRef) {
	for i := range subjects {
		subject := &subjects[i]
		account := reference{subject.Kind, subject.Namespace, subject.Name}
		if subject.Kind != rbacv1.ServiceAccountKind || c.entries[account] == nil {
			e.faults = append(e.faults, fault{
				ruleRBAC, fmt.Sprintf("subjects[%d]", i),
				fmt.Sprintf("%s is not an annotated ServiceAccount of the release", account),
			})
			continue
		}
		subject.Name = c.run.suffixed(subject.Name)
		c.entries[account].needs = append(c.entries[account].needs, binding)
	}
	bound := reference{role.Kind, "", role.Name}
	if role.Kind == "Role" {
		bound.namespace = binding.namespace
	}
	switch {
	case c.entries[bound] != nil:
		role.Name = c.run.suffixed(role.Name)
		e.needs = append(e.needs, bound)
	case !readOnlyRole(*role):
		e.faults = append(e.faults, fault{
			ruleRBAC, "roleRef",
			fmt.Sprintf("%s is neither an annotated role of the release, nor ClusterRole cluster-reader or view", bound),
		})
	}
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
