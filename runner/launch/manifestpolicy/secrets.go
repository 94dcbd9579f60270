package manifestpolicy

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
)

// Named returns the names of the objects of a resource, such as "secrets", that rules allow an account to read by their names.
func Named(rules []rbacv1.PolicyRule, resource string) []string {
	var names []string
	reads := access.Verbs(access.Request{Resource: resource}, "get", "list", "watch")
	for _, rule := range rules {
		if slices.ContainsFunc(reads, func(read access.Request) bool { return covers(rule, read) }) {
			names = append(names, rule.ResourceNames...)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// SecretReads returns the requests by which rules read Secrets of any name, sorted. The
// requests have no namespace. An ImageStream of OpenShift has a subresource with all Secrets of the
// namespace that have the credential of a registry.
func SecretReads(rules []rbacv1.PolicyRule) []access.Request {
	var reads []access.Request
	for _, read := range access.Verbs(access.Request{Resource: "secrets"}, "get", "list", "watch") {
		if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return grants(rule, read) }) {
			reads = append(reads, read)
		}
	}
	ofStream := access.Request{Verb: "get", Group: "image.openshift.io", Resource: "imagestreams", Subresource: "secrets"}
	if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return covers(rule, ofStream) }) {
		reads = append(reads, ofStream)
	}
	return reads
}

// grants is true for a rule that allows a request for objects of any name: an empty one of resourceNames is that of
// a list or watch without a name (k8s.io/kubernetes/pkg/apis/rbac/v1, ResourceNameMatches).
func grants(rule rbacv1.PolicyRule, request access.Request) bool {
	unnamed := request.Verb != "get" && slices.Contains(rule.ResourceNames, "")
	return (len(rule.ResourceNames) == 0 || unnamed) && covers(rule, request)
}

// covers is true for a rule that allows a request, whatever the names of its objects.
func covers(rule rbacv1.PolicyRule, request access.Request) bool {
	return includes(rule.Verbs, request.Verb) && includes(rule.APIGroups, request.Group) &&
		(includes(rule.Resources, access.ResourceOf(request)) || request.Subresource != "" && slices.Contains(rule.Resources, "*/"+request.Subresource))
}

// includes is true for values of a rule that have this one, or all.
func includes(values []string, value string) bool {
	return slices.Contains(values, value) || slices.Contains(values, "*")
}
