package launch

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
)

// Needs are the permissions to validate, create and delete what is drafted, but
// for the guard. A run needs all of ListNeeds besides.
func (d Draft) Needs() access.Needs {
	var needs access.Needs
	used := map[reference]bool{}
	for _, check := range d.Checks {
		namespace := check.Job.Namespace
		needs.Required = append(needs.Required, JobNeeds(namespace).Required...)
		if accountName(check.Job.Spec.Template.Spec) != "" {
			needs.Required = append(needs.Required, access.Request{Verb: "get", Resource: "serviceaccounts", Namespace: namespace})
		}
		for _, ref := range check.needs {
			used[ref] = true
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(used), compareReferences) {
		needs.Required = append(needs.Required, making(ref.kind, ref.namespace)...)
		needs.Given = append(needs.Given, d.given(ref)...)
	}
	return needs
}

// JobNeeds are the permissions to create a Job in a namespace, to follow it and
// to delete it.
func JobNeeds(namespace string) access.Needs {
	return access.Needs{Required: slices.Concat(making(jobKind, namespace), making(podKind, namespace))}
}

// given is what a supporting object grants: the rules of a role, or the right to
// bind a role of the cluster.
func (d Draft) given(ref reference) []access.Given {
	switch object := d.catalog.entries[ref].manifest.Object.(type) {
	case *rbacv1.Role:
		return given(ref.namespace, object.Rules)
	case *rbacv1.ClusterRole:
		return given("", object.Rules)
	case *rbacv1.RoleBinding:
		return d.binding(ref.namespace, object.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		return d.binding("", object.RoleRef)
	}
	return nil
}

// AnyNeeds is Plan.Needs for every plan that there may be: it is not known in
// which namespaces the Jobs of a release are. What the roles of a release allow
// is not known either.
func AnyNeeds() access.Needs {
	needs := access.Needs{
		Required: []access.Request{{Verb: "get", Resource: "serviceaccounts"}},
		Given: []access.Given{{Rule: rbacv1.PolicyRule{
			Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: knownRoles(),
		}}},
	}
	for _, k := range kindsOf(nil) {
		if !k.guard {
			needs.Required = append(needs.Required, making(k.name, "")...)
		}
	}
	return needs
}

// ListNeeds is what it takes to find what runs have in the cluster: Launcher.Runs
// lists everything, and so does the end of each run.
func ListNeeds() access.Needs { return everyKind("list") }

// CleanupNeeds is what it takes to clean up after any run.
func CleanupNeeds() access.Needs { return everyKind("list", "watch", "deletecollection") }

// GuardNeeds is what Launcher.Guard takes, and to delete it again.
func GuardNeeds() access.Needs {
	var needs access.Needs
	for _, k := range kindsOf(nil) {
		if k.guard {
			needs.Optional = append(needs.Optional, access.Verbs(k.about(), "create", "get", "list", "watch", "deletecollection")...)
		}
	}
	return needs
}

// everyKind is these verbs about all kinds, of which a user may go without those
// of the guard.
func everyKind(verbs ...string) access.Needs {
	var needs access.Needs
	for _, k := range kindsOf(nil) {
		requests := access.Verbs(k.about(), verbs...)
		if k.guard {
			needs.Optional = append(needs.Optional, requests...)
			continue
		}
		needs.Required = append(needs.Required, requests...)
	}
	return needs
}

// making is what it takes to create objects of a kind in a namespace, to find
// out whose an object is that is there already, and to delete them and wait
// until they are gone. Pods are made by others.
func making(name, namespace string) []access.Request {
	var requests []access.Request
	for _, k := range kindsOf(nil) {
		if k.name != name {
			continue
		}
		requests = append(requests, access.Verbs(k.about(), "watch")...) // in all namespaces at once
		in := k.about()
		in.Namespace = namespace
		requests = append(requests, access.Verbs(in, "deletecollection")...)
		if name != podKind {
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

// binding is the right to bind a role of the cluster. A role of the release may be
// bound by a user who has its rules.
func (d Draft) binding(namespace string, role rbacv1.RoleRef) []access.Given {
	if d.catalog.entries[roleOf(role, namespace)] != nil || role.Kind != "ClusterRole" || !slices.Contains(knownRoles(), role.Name) {
		return nil
	}
	return []access.Given{{Namespace: namespace, Rule: rbacv1.PolicyRule{
		Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{role.Name},
	}}}
}
