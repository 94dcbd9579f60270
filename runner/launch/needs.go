package launch

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
)

// Needs is what it takes to validate the plan, to make its objects and to delete
// them, but not the guard. A run needs all of ListNeeds besides.
func (p Plan) Needs() access.Needs {
	var needs access.Needs
	for _, check := range p.Checks {
		namespace := check.Job.Namespace
		needs.Required = append(needs.Required, making("Job", namespace)...)
		needs.Required = append(needs.Required, making(podKind, namespace)...)
		if account := accountOf(check); account.name != "" {
			needs.Required = append(needs.Required, access.Request{Verb: "get", Resource: "serviceaccounts", Namespace: namespace})
		}
	}
	for _, object := range p.Supporting {
		ref := referenceTo(object)
		needs.Required = append(needs.Required, making(ref.kind, ref.namespace)...)
		switch object := object.(type) {
		case *rbacv1.Role:
			needs.Given = append(needs.Given, given(ref.namespace, object.Rules)...)
		case *rbacv1.ClusterRole:
			needs.Given = append(needs.Given, given("", object.Rules)...)
		case *rbacv1.RoleBinding:
			needs.Given = append(needs.Given, binding(ref.namespace, object.RoleRef)...)
		case *rbacv1.ClusterRoleBinding:
			needs.Given = append(needs.Given, binding("", object.RoleRef)...)
		}
	}
	return needs
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

// binding is what it takes to bind a role of the cluster. One of the plan is
// bound by whoever has what it allows.
func binding(namespace string, role rbacv1.RoleRef) []access.Given {
	if role.Kind == "ClusterRole" && slices.Contains(knownRoles(), role.Name) {
		return []access.Given{{Namespace: namespace, Rule: rbacv1.PolicyRule{
			Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{role.Name},
		}}}
	}
	return nil
}
