package launch

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/runner/payload"
)

// Account is a ServiceAccount that checks of a plan run as: a temporary copy of one of
// the release or, in a plan of CopyAccounts, of one of the cluster.
type Account struct {
	Namespace, Name string
	// Author is its name in the release or the cluster.
	Author string
	// Checks are the names of the checks, sorted.
	Checks []string
	// Copied is true for the copy of a ServiceAccount of the cluster.
	Copied bool
	// Rules are those of the roles that are bound to it.
	Rules []rbacv1.PolicyRule
	// Omitted describes read access of the original that a copy lacks, sorted.
	Omitted []string
	// Unread is the error of reading the roles of the cluster, without which Rules is
	// incomplete for an account of the release, and empty for a copy.
	Unread error
}

// Accounts returns the ServiceAccounts of the plan's checks, sorted by namespace
// and name.
func (p Plan) Accounts() []Account {
	byReference := map[reference]*Account{}
	var accounts []*Account
	for _, check := range p.Checks {
		ref := accountOf(check)
		found := byReference[ref]
		if found == nil {
			found = p.account(ref)
			byReference[ref] = found
			accounts = append(accounts, found)
		}
		found.Checks = append(found.Checks, check.Name)
	}
	sorted := make([]Account, 0, len(accounts))
	for _, account := range accounts {
		slices.Sort(account.Checks)
		sorted = append(sorted, *account)
	}
	slices.SortFunc(sorted, func(a, b Account) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return sorted
}

// account returns one ServiceAccount with its checks left out.
func (p Plan) account(ref reference) *Account {
	account := &Account{Namespace: ref.namespace, Name: ref.name, Author: strings.TrimSuffix(ref.name, "-"+p.Run.Suffix())}
	if copied, found := p.copies[ref]; found {
		account.Copied, account.Author, account.Omitted, account.Unread = true, copied.original.name, copied.omitted, copied.unread
	}
	for _, bound := range p.bound(ref) {
		if !bound.found {
			account.Unread = p.unreadRoles
		}
		account.Rules = append(account.Rules, bound.rules...)
	}
	return account
}

// boundRules are the rules of a role that a binding of the plan binds to an account.
type boundRules struct {
	// namespace is that of the binding; empty for the whole cluster.
	namespace string
	rules     []rbacv1.PolicyRule
	// found is false for a role that could not be read.
	found bool
}

func (p Plan) bound(account reference) []boundRules {
	var all []boundRules
	for _, object := range p.Supporting {
		subjects, role := bindingOf(object)
		if !slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool { return accountOfSubject(subject) == account }) {
			continue
		}
		bound := boundRules{namespace: object.GetNamespace()}
		if bound.rules, bound.found = p.rules(role, bound.namespace); !bound.found {
			bound.rules, bound.found = p.clusterRoles[role.Name]
		}
		all = append(all, bound)
	}
	return all
}

// bindingOf are the subjects and the role of a binding; none for another object.
func bindingOf(object payload.Object) ([]rbacv1.Subject, rbacv1.RoleRef) {
	switch binding := object.(type) {
	case *rbacv1.RoleBinding:
		return binding.Subjects, binding.RoleRef
	case *rbacv1.ClusterRoleBinding:
		return binding.Subjects, binding.RoleRef
	}
	return nil, rbacv1.RoleRef{}
}

// rules returns the rules of a role of the plan; false for another role.
func (p Plan) rules(role rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	for _, object := range p.Supporting {
		switch object := object.(type) {
		case *rbacv1.Role:
			if role.Kind == "Role" && role.Name == object.Name && namespace == object.Namespace {
				return object.Rules, true
			}
		case *rbacv1.ClusterRole:
			if role.Kind == "ClusterRole" && role.Name == object.Name {
				return object.Rules, true
			}
		}
	}
	return nil, false
}
