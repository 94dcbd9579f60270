package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/user"
)

// printed are the roles that "auth" prints.
type printed struct {
	roles []rbacv1.Role
	// optional is the text about the permissions that the command can do without.
	optional string
}

// auth calls "auth" and parses its output.
func auth(t *testing.T, args ...string) printed {
	t.Helper()
	got := call(t, append([]string{"auth"}, args...)...)
	if got.Code != exit.Ready {
		t.Fatalf("auth %v: exit code %d\n%s", args, got.Code, got.Stderr)
	}
	comment := strings.Join(strings.Fields(strings.ReplaceAll(got.Stdout, "\n#", " ")), " ")
	_, optional, _ := strings.Cut(comment, "Optional permissions, ")
	optional, _, _ = strings.Cut(optional, ". ")
	return printed{roles: user.Roles(t, got.Stdout), optional: optional}
}

// rule is one rule of a role.
type rule struct {
	rbacv1.PolicyRule
	// role and index are its place.
	role, index int
	namespace   string
}

func (r rule) String() string {
	return fmt.Sprintf("%s %s in %q", strings.Join(r.Verbs, ","), strings.Join(r.Resources, ","), r.namespace)
}

// in reports whether a text names a resource of the rule.
func (r rule) in(text string) bool {
	return slices.ContainsFunc(r.Resources, func(resource string) bool { return strings.Contains(text, resource) })
}

func (p printed) rules() []rule {
	var all []rule
	for i, role := range p.roles {
		for j, each := range role.Rules {
			all = append(all, rule{PolicyRule: each, role: i, index: j, namespace: role.Namespace})
		}
	}
	return all
}

// names returns the texts of the rules.
func (p printed) names() []string {
	var all []string
	for _, each := range p.rules() {
		all = append(all, each.String())
	}
	return all
}

// user returns a new user with the roles, without these rules.
func (p printed) user(t *testing.T, missing ...rule) string {
	t.Helper()
	roles := slices.Clone(p.roles)
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
