package rights

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/tools/pager"

	"github.com/openshift/update-preflight/collector/cluster/retry"
)

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
func roleBindings(ctx context.Context, client rbacv1client.RbacV1Interface, accounts []types.NamespacedName) (map[types.NamespacedName][]boundRole, error) {
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

func eachBinding(ctx context.Context, client rbacv1client.RbacV1Interface, note func(namespace string, subjects []rbacv1.Subject, role rbacv1.RoleRef)) error {
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
				return fmt.Errorf("the list has a %T", item)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("could not list the bindings of roles: %w", err)
		}
	}
	return nil
}
