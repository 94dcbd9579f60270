package launch

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// ruleFaults hold the rules of a role to reading, and to asking the API server
// what somebody may do. A verb is not all there is to it: "get" on pods/exec or
// nodes/proxy opens a connection that can do anything.
func ruleFaults(rules []rbacv1.PolicyRule) []fault {
	var faults []fault
	for i, rule := range rules {
		path := fmt.Sprintf("rules[%d]", i)
		if verb, ok := writingVerb(rule); ok {
			faults = append(faults, fault{ruleRBAC, path + ".verbs", fmt.Sprintf("%q is not reading: a preflight may get, list and watch", verb)})
		}
		if slices.Contains(rule.NonResourceURLs, "*") {
			faults = append(faults, fault{ruleRBAC, path + ".nonResourceURLs", `"*" is everything that the API server serves, its profiles included: name the paths to read`})
		}
		if resource, ok := connectingResource(rule); ok {
			faults = append(faults, fault{
				ruleRBAC, path + ".resources",
				fmt.Sprintf("%q in API groups %q reaches into running pods and nodes: name the resources to read", resource, rule.APIGroups),
			})
		}
	}
	return faults
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

// onlyReviews is true for the resources that are questions to the API server,
// asked by creating an object that is never stored.
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

// connectingResource finds a subresource that is a connection rather than an
// object, in whichever API group, also where a wildcard covers it: "*" means all
// resources and their subresources. The whole group of KubeVirt's is connections
// into virtual machines.
func connectingResource(rule rbacv1.PolicyRule) (string, bool) {
	connections := []string{"*", "exec", "attach", "portforward", "proxy", "console", "vnc"}
	everywhere := slices.ContainsFunc(rule.APIGroups, func(group string) bool {
		return slices.Contains([]string{"", "*", "subresources.kubevirt.io"}, group)
	})
	for _, resource := range rule.Resources {
		_, subresource, _ := strings.Cut(resource, "/")
		if everywhere && resource == "*" || slices.Contains(connections, subresource) {
			return resource, true
		}
	}
	return "", false
}

// knownRoles are the cluster roles that every cluster has, that only read, and
// that a preflight may be bound to without bringing a copy.
func knownRoles() []string { return []string{"cluster-reader", "view"} }

func readOnlyRole(ref rbacv1.RoleRef) bool {
	return ref.Kind == "ClusterRole" && slices.Contains(knownRoles(), ref.Name)
}
