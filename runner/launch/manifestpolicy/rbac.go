package manifestpolicy

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
)

// Rules reject rules that grant more than read access and reviews of
// permissions. The verbs do not suffice: "get" on pods/exec or nodes/proxy opens a
// connection that can execute commands.
func Rules(rules []rbacv1.PolicyRule) []Violation {
	var violations []Violation
	for i, rule := range rules {
		path := fmt.Sprintf("rules[%d]", i)
		if verb, ok := writingVerb(rule); ok {
			violations = append(violations, Violation{ReasonRefusedRBAC, path + ".verbs", fmt.Sprintf("%q is not read access: a preflight may get, list and watch", verb)})
		}
		if url, ok := everyPath(rule); ok {
			violations = append(violations, Violation{ReasonRefusedRBAC, path + ".nonResourceURLs", fmt.Sprintf("%q includes all paths of the API server, such as its profiles: name the paths to read", url)})
		}
		if resource, ok := connectingResource(rule); ok {
			violations = append(violations, Violation{
				ReasonRefusedRBAC, path + ".resources",
				fmt.Sprintf("%q in API groups %q includes connections to pods and nodes: name the resources to read", resource, rule.APIGroups),
			})
		}
	}
	return violations
}

func writingVerb(rule rbacv1.PolicyRule) (string, bool) {
	for _, verb := range rule.Verbs {
		switch {
		case slices.Contains([]string{"get", "list", "watch"}, verb):
		case verb == "create" && onlyReviews(rule):
		default:
			return verb, true
		}
	}
	return "", false
}

// onlyReviews is true for review resources, which are created and never stored.
func onlyReviews(rule rbacv1.PolicyRule) bool {
	reviews := map[string][]string{
		"authorization.k8s.io":  {"selfsubjectaccessreviews", "subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectrulesreviews"},
		"authentication.k8s.io": {"tokenreviews", "selfsubjectreviews"},
	}
	var known []string
	for _, group := range rule.APIGroups {
		resources, ok := reviews[group]
		if !ok {
			return false
		}
		known = append(known, resources...)
	}
	return len(rule.NonResourceURLs) == 0 && len(rule.Resources) > 0 &&
		!slices.ContainsFunc(rule.Resources, func(resource string) bool { return !slices.Contains(known, resource) })
}

// everyPath finds a pattern that matches every path: asterisks at its end match any
// rest (k8s.io/kubernetes/pkg/apis/rbac/v1, NonResourceURLMatches).
func everyPath(rule rbacv1.PolicyRule) (string, bool) {
	for _, url := range rule.NonResourceURLs {
		if prefix := strings.TrimRight(url, "*"); prefix != url && (prefix == "" || prefix == "/") {
			return url, true
		}
	}
	return "", false
}

// connectingResource finds a resource that is a connection rather than an object, also if a wildcard includes it.
func connectingResource(rule rbacv1.PolicyRule) (string, bool) {
	for _, resource := range rule.Resources {
		if slices.ContainsFunc(rule.APIGroups, func(group string) bool { return rights.Connects(group, resource) }) {
			return resource, true
		}
	}
	return "", false
}

// KnownRoles are read-only cluster roles of every cluster, which a release may bind without a manifest of its own.
func KnownRoles() []string { return []string{"cluster-reader", "view"} }

// ReadOnlyRole reports whether a binding refers to one of [KnownRoles].
func ReadOnlyRole(ref rbacv1.RoleRef) bool {
	return ref.Kind == "ClusterRole" && slices.Contains(KnownRoles(), ref.Name)
}

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
