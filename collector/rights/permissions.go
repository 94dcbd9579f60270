package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/openshift/update-preflight/collector/access"
)

// Grant is the rules that bindings grant to an account in a namespace or, without one, in the whole cluster.
type Grant struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// addGrant adds rules to the grant of their namespace. The grants are sorted, and so are those added.
func addGrant(grants []Grant, more Grant) []Grant {
	last := len(grants) - 1
	if last < 0 || grants[last].Namespace != more.Namespace {
		return append(grants, Grant{Namespace: more.Namespace, Rules: slices.Clone(more.Rules)})
	}
	grants[last].Rules = append(grants[last].Rules, more.Rules...)
	return grants
}

// permissions are what RBAC grants to a subject.
type permissions []Grant

// namespaces are own and those in which p grants something, sorted.
func (p permissions) namespaces(own string) []string {
	namespaces := []string{own}
	for _, granted := range p {
		if granted.Namespace != "" {
			namespaces = append(namespaces, granted.Namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// beyondReading are the rules of p that allow more than to read objects other than
// Secrets. A cluster may have thousands of bindings of a role that only reads.
func (p permissions) beyondReading() permissions {
	var rest permissions
	for _, granted := range p {
		rules := slices.DeleteFunc(slices.Clone(granted.Rules), func(rule rbacv1.PolicyRule) bool {
			only := []rbacv1.PolicyRule{rule}
			secret := permissions{{Rules: only}}.allowed(access.Verbs(access.Request{Resource: secrets}, "get", "list", "watch"))
			return len(Writing(only)) == 0 && len(secret) == 0
		})
		if len(rules) > 0 {
			rest = append(rest, Grant{Namespace: granted.Namespace, Rules: rules})
		}
	}
	return rest
}

// requests are the write requests of p for one object or with a verb that only an authorizer knows.
func (p permissions) requests() []access.Request {
	var requests []access.Request
	for _, granted := range p {
		for _, rule := range granted.Rules {
			for _, request := range Writing([]rbacv1.PolicyRule{rule}) {
				request.Namespace = granted.Namespace
				for _, request.Name = range rule.ResourceNames {
					requests = append(requests, request)
				}
				if len(rule.ResourceNames) == 0 && request.Verb != "*" && !slices.Contains(admitted(), request.Verb) {
					requests = append(requests, request)
				}
			}
		}
	}
	return requests
}

// allow is true for a request that the API server's RBAC authorizer allows. A rule with
// resourceNames allows no request for all objects.
func (p permissions) allow(request access.Request) bool {
	wanted := []rbacv1.PolicyRule{{
		APIGroups: []string{request.Group}, Resources: []string{access.ResourceOf(request)}, Verbs: []string{request.Verb},
	}}
	if request.Name != "" {
		wanted[0].ResourceNames = []string{request.Name}
	}
	return slices.ContainsFunc(p, func(granted Grant) bool {
		if granted.Namespace != "" && granted.Namespace != request.Namespace {
			return false
		}
		covered, _ := validation.Covers(granted.Rules, wanted)
		return covered
	})
}

// allowed returns the requests that p allows, without a namespace if it allows them in all.
func (p permissions) allowed(requests []access.Request) []access.Request {
	var allowed []access.Request
	for _, request := range requests {
		if !p.allow(request) {
			continue
		}
		allowed = append(allowed, request)
		if request.Namespace = ""; p.allow(request) {
			allowed = append(allowed, request)
		}
	}
	return access.Essential(allowed)
}

// writes returns the write requests that p allows: one request for an administrator of the cluster.
func (p permissions) writes(requests []access.Request) []access.Request {
	if p.allow(access.Everything()) {
		return []access.Request{access.Everything()}
	}
	return p.allowed(requests)
}
