package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/tools/pager"
	"k8s.io/component-helpers/auth/rbac/validation"

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

// Granted contains the permissions that RBAC grants to one account.
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
func Grants(ctx context.Context, client rbacv1client.RbacV1Interface,
	accounts []types.NamespacedName,
) (map[types.NamespacedName]Granted, error) {
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

// ClusterRoleRules reads the rules of ClusterRoles by name. A missing ClusterRole has none.
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

// permissions are the permissions that RBAC grants to a subject.
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

// User is the name of a ServiceAccount as a user of the API server.
func User(account types.NamespacedName) string {
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// includes is true for the subjects of a binding that include an account, except those that include every account.
func includes(subject rbacv1.Subject, account types.NamespacedName) bool {
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		return subject.Namespace == account.Namespace && subject.Name == account.Name
	case rbacv1.UserKind:
		return subject.Name == User(account)
	case rbacv1.GroupKind:
		return subject.Name == "system:serviceaccounts:"+account.Namespace
	}
	return false
}

// boundRole is a role with the namespace in which it is bound.
type boundRole struct{ in, kind, name string }

// roleBindings are the roles that are bound to accounts, sorted, without duplicates.
func roleBindings(ctx context.Context, client rbacv1client.RbacV1Interface,
	accounts []types.NamespacedName,
) (map[types.NamespacedName][]boundRole, error) {
	var bound map[types.NamespacedName][]boundRole
	note := func(namespace string, subjects []rbacv1.Subject, role rbacv1.RoleRef) {
		for _, account := range accounts {
			if slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool { return includes(subject, account) }) {
				bound[account] = append(bound[account], boundRole{namespace, role.Kind, role.Name})
			}
		}
	}
	err := retry.Do(ctx, func(ctx context.Context) error {
		bound = map[types.NamespacedName][]boundRole{}
		return eachBinding(ctx, client, note)
	})
	if err != nil {
		return nil, err
	}
	for account, roles := range bound {
		slices.SortFunc(roles, compareBoundRoles)
		bound[account] = slices.Compact(roles)
	}
	return bound, nil
}

func compareBoundRoles(a, b boundRole) int {
	return cmp.Or(strings.Compare(a.in, b.in), strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
}

func eachBinding(ctx context.Context, client rbacv1client.RbacV1Interface,
	note func(namespace string, subjects []rbacv1.Subject, role rbacv1.RoleRef),
) error {
	inNamespaces := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.RoleBindings(metav1.NamespaceAll).List(ctx, options)
	})
	inCluster := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.ClusterRoleBindings().List(ctx, options)
	})
	for _, pages := range []*pager.ListPager{inNamespaces, inCluster} {
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			switch binding := item.(type) {
			case *rbacv1.RoleBinding:
				note(binding.Namespace, binding.Subjects, binding.RoleRef)
			case *rbacv1.ClusterRoleBinding:
				note("", binding.Subjects, binding.RoleRef)
			default:
				return fmt.Errorf("the list contains a %T", item)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("could not list the bindings of roles: %w", err)
		}
	}
	return nil
}
