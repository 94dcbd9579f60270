package jobplan

import (
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/runner/launch/credential"
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
		added.violations = []manifestpolicy.Violation{{
			Reason: manifestpolicy.ReasonRefusedManifest, Path: "kind",
			Text: fmt.Sprintf("a preflight may not contain objects of kind %s", ref.Kind),
		}}
	}
	if ref.Namespace == "" && namespaced(ref.Kind) {
		added.violations = append(added.violations, manifestpolicy.Violation{
			Reason: manifestpolicy.ReasonRefusedManifest,
			Path:   "metadata.namespace", Text: "is required: a preflight has no default namespace",
		})
	}
	if first, ok := c.manifests[ref]; ok {
		first.violations = append(first.violations, manifestpolicy.Violation{
			Reason: manifestpolicy.ReasonRefusedManifest, Path: "metadata.name",
			Text: fmt.Sprintf("is a duplicate of the object in %s", manifest.File),
		})
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
			e.violations = append(e.violations, manifestpolicy.Violation{
				Reason: manifestpolicy.ReasonRefusedRBAC, Path: "aggregationRule",
				Text: "would aggregate rules that are not in the release",
			})
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

// Needs are the permissions to validate, create and delete the objects of the draft, without the guard. Those
// for one cluster of a hosted cluster are of [Draft.On]. A run needs ListNeeds in addition. The types and the
// content of the Secrets and ConfigMaps that the checks read are optional, and so are the quotas of their namespaces, and copying
// the permissions of existing ServiceAccounts. A check with a Secret whose type is unknown does not run.
func (d Draft) Needs() access.Needs {
	var needs access.Needs
	used := map[inventory.Reference]catalog{}
	copies := false
	for _, check := range d.Checks {
		namespace := check.Job.Namespace
		needs.Required = append(needs.Required, JobNeeds(namespace).Required...)
		needs.Optional = append(needs.Optional, quotaNeeds(namespace)...)
		if d.catalogOf(check).manifests[check.Account()] == nil {
			needs.Required = append(needs.Required, creating("ServiceAccount", namespace)...)
			copies = true
		}
		needs.Optional = append(needs.Optional, d.readNeeds(check)...)
		for _, ref := range check.Needs {
			used[ref] = d.catalogOf(check)
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(used), inventory.CompareReferences) {
		needs.Required = append(needs.Required, creating(ref.Kind, ref.Namespace)...)
		needs.Given = append(needs.Given, used[ref].given(ref)...)
		for _, secret := range used[ref].namedSecrets(ref) {
			needs.Optional = append(needs.Optional, credential.Needs(secret)...)
		}
	}
	if copies {
		needs = needs.And(copyNeeds())
	}
	for _, each := range needs.Given {
		if slices.Contains(each.Rule.Verbs, "bind") {
			needs.Optional = append(needs.Optional, access.Request{
				Verb: "get", Group: rbacv1.GroupName, Resource: "clusterroles",
				Name: each.Rule.ResourceNames[0],
			})
		}
	}
	return needs
}

// readNeeds are the permissions to read the Secrets and ConfigMaps of a check that are not of the release.
func (d Draft) readNeeds(check Check) []access.Request {
	var needs []access.Request
	for _, ref := range Secrets(check.Job) {
		if d.catalogOf(check).manifests[ref] == nil {
			needs = append(needs, credential.Needs(ref)...)
		}
	}
	return needs
}

func (c catalog) namedSecrets(ref inventory.Reference) []inventory.Reference {
	switch object := c.manifests[ref].manifest.Object.(type) {
	case *rbacv1.Role:
		return NamedSecrets(ref.Namespace, object.Rules)
	case *rbacv1.ClusterRole:
		return NamedSecrets("", object.Rules)
	}
	return nil
}

// JobNeeds are the permissions to create a Job in a namespace, to follow it and to delete it.
func JobNeeds(namespace string) access.Needs {
	return access.Needs{Required: slices.Concat(creating(inventory.JobKind, namespace), creating(inventory.PodKind, namespace))}
}

// quotaNeeds are the permissions to predict that a quota rejects the pods in a namespace. Without them, the rejection
// appears once the Job exists.
func quotaNeeds(namespace string) []access.Request {
	return []access.Request{
		{Verb: "list", Resource: "resourcequotas", Namespace: namespace},
		{Verb: "list", Resource: "limitranges", Namespace: namespace},
		{Verb: "list", Group: admissionregistrationv1.GroupName, Resource: "mutatingwebhookconfigurations"},
		{Verb: "list", Group: admissionregistrationv1.GroupName, Resource: "mutatingadmissionpolicies"},
	}
}

// copyNeeds are the permissions to read the permissions of existing ServiceAccounts, and
// to create roles and bindings in any namespace. A copy without them has no permissions.
func copyNeeds() access.Needs {
	needs := access.Needs{Optional: rights.GrantsNeeds()}
	for _, name := range []string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} {
		needs.Optional = append(needs.Optional, creating(name, "")...)
	}
	return needs
}

// given are the permissions that a supporting object grants: the rules of a role,
// or the permission to bind a role of the cluster.
func (c catalog) given(ref inventory.Reference) []access.Given {
	switch object := c.manifests[ref].manifest.Object.(type) {
	case *rbacv1.Role:
		return given(ref.Namespace, object.Rules)
	case *rbacv1.ClusterRole:
		return given("", object.Rules)
	case *rbacv1.RoleBinding:
		return c.binding(ref.Namespace, object.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		return c.binding("", object.RoleRef)
	}
	return nil
}

// AnyNeeds are the Needs of any draft, for all namespaces. The permissions that the
// roles of a release grant are not included, since they are unknown.
func AnyNeeds() access.Needs {
	needs := access.Needs{
		Optional: append(rights.GrantsNeeds(), quotaNeeds("")...),
		Given: []access.Given{{Rule: rbacv1.PolicyRule{
			Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
			ResourceNames: manifestpolicy.KnownRoles(),
		}}},
	}
	for _, k := range inventory.Kinds() {
		if !k.Guard {
			needs.Required = append(needs.Required, creating(k.Name, "")...)
		}
	}
	return needs
}

// creating are the permissions to create objects of a kind in a namespace, to adopt
// existing ones, and to delete them and wait until they are gone. Pods are created
// by Kubernetes.
func creating(name, namespace string) []access.Request {
	var requests []access.Request
	for _, k := range inventory.Kinds() {
		if k.Name != name {
			continue
		}
		requests = append(requests, access.Verbs(k.Request(), "watch")...) // in all namespaces at once
		in := k.Request()
		in.Namespace = namespace
		requests = append(requests, access.Verbs(in, "delete")...)
		if name != inventory.PodKind {
			requests = append(requests, access.Verbs(in, "create", "get")...)
		}
	}
	return requests
}

func given(namespace string, rules []rbacv1.PolicyRule) []access.Given {
	var all []access.Given
	for _, rule := range rules {
		all = append(all, access.Given{Namespace: namespace, Rule: rule})
	}
	return all
}

// binding is the permission to bind a role of the cluster. A role of the release
// may be bound by a user who has its rules.
func (c catalog) binding(namespace string, role rbacv1.RoleRef) []access.Given {
	if c.manifests[roleOf(role, namespace)] != nil || role.Kind != "ClusterRole" || !slices.Contains(manifestpolicy.KnownRoles(), role.Name) {
		return nil
	}
	return []access.Given{{Namespace: namespace, Rule: rbacv1.PolicyRule{
		Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{role.Name},
	}}}
}
