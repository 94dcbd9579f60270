package rights

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster/retry"
)

// maxBindings bounds the roles that are bound to one account.
const maxBindings = 200

// GrantsNeeds are the requests of Grants to the API server.
func GrantsNeeds() []access.Request {
	return []access.Request{
		{Verb: "list", Group: rbacv1.GroupName, Resource: "rolebindings"},
		{Verb: "list", Group: rbacv1.GroupName, Resource: "clusterrolebindings"},
		{Verb: "get", Group: rbacv1.GroupName, Resource: "roles"},
		{Verb: "get", Group: rbacv1.GroupName, Resource: "clusterroles"},
	}
}

// Granted has what RBAC grants to one account.
type Granted struct {
	// Grants are sorted by namespace, at most one each.
	Grants []Grant
	// Err is set, and Grants is empty, when more than 200 roles are bound to the account.
	Err error
}

// Grants reads what RBAC grants to ServiceAccounts: the rules of the roles that are
// bound to an account by its name, its user name, or the group of its namespace's
// accounts. Bindings for the groups of all accounts are not included. An account
// without a binding is not in the result. A role that does not exist grants nothing.
func Grants(ctx context.Context, client rbacv1client.RbacV1Interface, accounts []types.NamespacedName) (map[types.NamespacedName]Granted, error) {
	bound, err := roleBindings(ctx, client, accounts)
	if err != nil {
		return nil, err
	}
	read := newRoleReader(client, maxBindings)
	all := map[types.NamespacedName]Granted{}
	for account, roles := range bound {
		granted, err := read.permissions(ctx, "ServiceAccount "+account.String(), roles)
		if tooMany, ok := errors.AsType[*tooManyRolesError](err); ok {
			all[account] = Granted{Err: tooMany}
			continue
		}
		if err != nil {
			return nil, err
		}
		all[account] = Granted{Grants: granted}
	}
	return all, nil
}

// tooManyRolesError is the error for a subject with more roles than a roleReader reads.
type tooManyRolesError struct {
	subject     string
	roles, most int
}

func (e *tooManyRolesError) Error() string {
	return fmt.Sprintf("%d roles are bound to %s, more than %d", e.roles, e.subject, e.most)
}

type roleReader struct {
	client rbacv1client.RbacV1Interface
	// most bounds the bindings of one subject.
	most  int
	known map[boundRole][]rbacv1.PolicyRule
}

func newRoleReader(client rbacv1client.RbacV1Interface, most int) roleReader {
	return roleReader{client: client, most: most, known: map[boundRole][]rbacv1.PolicyRule{}}
}

// permissions are the rules of roles that are bound to a subject; the roles are sorted by namespace.
func (r roleReader) permissions(ctx context.Context, subject string, roles []boundRole) (permissions, error) {
	if len(roles) > r.most {
		return nil, &tooManyRolesError{subject: subject, roles: len(roles), most: r.most}
	}
	var granted permissions
	for _, role := range roles {
		rules, err := r.rules(ctx, role)
		if err != nil {
			return nil, err
		}
		granted = addGrant(granted, Grant{Namespace: role.in, Rules: rules})
	}
	return granted, nil
}

// rules are the rules of a role; the controller resolves an aggregated ClusterRole.
func (r roleReader) rules(ctx context.Context, role boundRole) ([]rbacv1.PolicyRule, error) {
	if role.kind == "ClusterRole" {
		role.in = ""
	}
	if rules, known := r.known[role]; known {
		return rules, nil
	}
	rules, err := retry.Get(ctx, func(ctx context.Context) ([]rbacv1.PolicyRule, error) {
		if role.kind == "Role" {
			found, err := r.client.Roles(role.in).Get(ctx, role.name, metav1.GetOptions{})
			return found.Rules, err
		}
		found, err := r.client.ClusterRoles().Get(ctx, role.name, metav1.GetOptions{})
		return found.Rules, err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("could not read %s %q: %w", role.kind, role.name, err)
	}
	r.known[role] = rules
	return rules, nil
}

// ClusterRoleRules reads the rules of ClusterRoles by name. A ClusterRole that does not exist has none.
func ClusterRoleRules(ctx context.Context, client rbacv1client.RbacV1Interface, names []string) (map[string][]rbacv1.PolicyRule, error) {
	read := newRoleReader(client, maxBindings)
	found := map[string][]rbacv1.PolicyRule{}
	for _, name := range names {
		rules, err := read.rules(ctx, boundRole{kind: "ClusterRole", name: name})
		if err != nil {
			return nil, err
		}
		found[name] = rules
	}
	return found, nil
}
