package commands_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/user"
)

// printed are the roles that "auth" prints.
type printed []rbacv1.Role

// auth calls "auth" and parses its output.
func auth(t *testing.T, args ...string) printed {
	t.Helper()
	got := call(t, append([]string{"auth"}, args...)...)
	if got.Code != exit.Ready {
		t.Fatalf("auth %v: exit code %d\n%s", args, got.Code, got.Stderr)
	}
	return user.Roles(t, got.Stdout)
}

// rule is one rule of a role.
type rule struct {
	rbacv1.PolicyRule
	// role and index are its place.
	role, index int
	namespace   string
}

func (r rule) String() string {
	text := strings.Join(r.Verbs, ",") + " " + strings.Join(r.Resources, ",")
	if len(r.ResourceNames) > 0 {
		text += " " + strings.Join(r.ResourceNames, ",")
	}
	if r.namespace != "" {
		text += " in " + r.namespace
	}
	return text
}

// writes reports whether the rule allows more than to read.
func (r rule) writes() bool {
	return slices.ContainsFunc(r.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
}

// grants reports whether a request creates a role with a part of the rule, or binds the role that the rule permits to
// bind: the API server requires that of who creates it.
func (r rule) grants(each recorded) bool {
	if r.namespace != "" && r.namespace != each.Namespace {
		return false
	}
	if r.Verbs[0] == "bind" {
		return slices.Contains(r.ResourceNames, each.refers)
	}
	granted, _ := validation.Covers(each.granted, []rbacv1.PolicyRule{r.PolicyRule})
	return granted
}

func (p printed) rules() []rule {
	var all []rule
	for i, role := range p {
		for j, each := range role.Rules {
			all = append(all, rule{PolicyRule: each, role: i, index: j, namespace: role.Namespace})
		}
	}
	return all
}

// atoms returns the rules with one verb of one resource, or of one object, each.
func (p printed) atoms() []rule {
	var all []rule
	for _, each := range p.rules() {
		for _, atom := range validation.BreakdownRule(each.PolicyRule) {
			each.PolicyRule = atom
			all = append(all, each)
		}
	}
	return all
}

// allows reports whether the rule allows a request.
func (r rule) allows(each recorded) bool {
	if r.namespace != "" && r.namespace != each.Namespace {
		return false
	}
	allowed, _ := validation.Covers([]rbacv1.PolicyRule{r.PolicyRule}, []rbacv1.PolicyRule{each.rule()})
	return allowed
}

// user returns a new user with the roles, without these rules.
func (p printed) user(t *testing.T, missing ...rule) string {
	t.Helper()
	roles := slices.Clone(p)
	for i := range roles {
		var kept []rbacv1.PolicyRule
		for j, each := range roles[i].Rules {
			if !slices.ContainsFunc(missing, func(m rule) bool { return m.role == i && m.index == j }) {
				kept = append(kept, each)
			}
		}
		roles[i].Rules = kept
	}
	return user.Bound(t, byDefault.Config, roles...)
}
