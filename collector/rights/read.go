package rights

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
)

// Reading is the part of some rules that only reads.
type Reading struct {
	// Rules have the verbs get, list and watch, and no wildcards.
	Rules []rbacv1.PolicyRule
	// Omitted describes the read access that Rules lack, sorted.
	Omitted []string
}

// What a Reading omits.
const (
	omittedSecrets     = "Secrets of any name"
	omittedConnections = "connections to pods, nodes and services"
	omittedPaths       = "paths with a wildcard"
)

// Reads returns the part of rules that only reads objects. Wildcards are replaced by
// the resources that the API server serves. Secrets are included with resourceNames
// only, since a Secret may have the token of another account; connections, requests for
// tokens and paths with a wildcard are not included.
func (a API) Reads(rules []rbacv1.PolicyRule) Reading {
	r := reader{api: a, omitted: map[string]bool{}}
	for _, rule := range rules {
		r.read(rule)
	}
	return Reading{Rules: access.DistinctRules(r.rules), Omitted: slices.Sorted(maps.Keys(r.omitted))}
}

type reader struct {
	api     API
	rules   []rbacv1.PolicyRule
	omitted map[string]bool
}

func (r *reader) read(rule rbacv1.PolicyRule) {
	verbs := readVerbs(rule.Verbs)
	if len(verbs) == 0 {
		return
	}
	if slices.Contains(verbs, "get") {
		r.readPaths(rule.NonResourceURLs)
	}
	byGroup := map[string]map[string]bool{}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			r.expand(byGroup, group, resource, isNamed(rule))
		}
	}
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		r.rules = append(r.rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: slices.Sorted(maps.Keys(byGroup[group])), Verbs: verbs, ResourceNames: rule.ResourceNames,
		})
	}
}

// isNamed is true for a rule that is for objects of some names only. An empty one of resourceNames allows a list without
// a name (k8s.io/kubernetes/pkg/apis/rbac/v1, ResourceNameMatches).
func isNamed(rule rbacv1.PolicyRule) bool {
	return len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, "")
}

// readPaths adds the paths that are no patterns.
func (r *reader) readPaths(paths []string) {
	var exact []string
	for _, path := range paths {
		if strings.Contains(path, "*") {
			r.omitted[omittedPaths] = true
			continue
		}
		exact = append(exact, path)
	}
	if len(exact) > 0 {
		r.rules = append(r.rules, rbacv1.PolicyRule{NonResourceURLs: exact, Verbs: []string{"get"}})
	}
}

func (r *reader) expand(byGroup map[string]map[string]bool, group, resource string, named bool) {
	if group != "*" && !isPattern(resource) {
		r.add(byGroup, group, resource, named)
		return
	}
	for served, resources := range r.api.resources {
		if group != "*" && group != served {
			continue
		}
		for _, each := range resources {
			if matchesResource(resource, each) {
				r.add(byGroup, served, each, named)
			}
		}
	}
	for _, version := range r.api.Unserved {
		if group == "*" || group == groupOf(version) {
			r.omitted["resources of "+version+", which the API server does not serve now"] = true
		}
	}
}

func (r *reader) add(byGroup map[string]map[string]bool, group, resource string, named bool) {
	_, subresource, _ := strings.Cut(resource, "/")
	switch {
	case Connects(group, resource):
		r.omitted[omittedConnections] = true
		return
	case resource == secrets && !named, subresource == secrets:
		r.omitted[omittedSecrets] = true
		return
	case subresource == "token" || resource == "":
		return
	}
	if byGroup[group] == nil {
		byGroup[group] = map[string]bool{}
	}
	byGroup[group][resource] = true
}

// secrets is the resource of Secrets, and the subresource of ImageStreams that has Secrets.
const secrets = "secrets"

// isPattern is true for the patterns of a rule: "*" and "*/SUBRESOURCE".
func isPattern(resource string) bool { return resource == "*" || strings.HasPrefix(resource, "*/") }

// matchesResource is true for a resource that the API server's authorizer matches with
// one of a rule (k8s.io/component-helpers/auth/rbac/validation).
func matchesResource(pattern, resource string) bool {
	_, subresource, found := strings.Cut(resource, "/")
	return pattern == "*" || pattern == resource || found && pattern == "*/"+subresource
}
