package launch

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Account is a ServiceAccount that checks of a plan run as.
type Account struct {
	Namespace, Name string
	// Author is its name in the release.
	Author string
	// Checks are the names of the checks, sorted.
	Checks []string
	// Temporary is true for a copy that is deleted with the run.
	Temporary bool
	// Rules are those of the plan's roles that are bound to it.
	Rules []rbacv1.PolicyRule
	// Known is true when Rules and the permissions of every ServiceAccount are all
	// its permissions: for a copy that is bound to roles of the plan only.
	Known bool
}

// Accounts returns the ServiceAccounts of the plan's checks, sorted by namespace
// and name.
func (p Plan) Accounts() []Account {
	byReference := map[reference]*Account{}
	var accounts []*Account
	for _, check := range p.Checks {
		ref := accountOf(check)
		ref.name = cmp.Or(ref.name, "default") // the default of the API server
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
	for _, object := range p.Supporting {
		if referenceTo(object) == ref {
			account.Temporary, account.Known = true, true
		}
	}
	for _, object := range p.Supporting {
		var subjects []rbacv1.Subject
		var role rbacv1.RoleRef
		switch binding := object.(type) {
		case *rbacv1.RoleBinding:
			subjects, role = binding.Subjects, binding.RoleRef
		case *rbacv1.ClusterRoleBinding:
			subjects, role = binding.Subjects, binding.RoleRef
		}
		if !slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool {
			return reference{"ServiceAccount", subject.Namespace, subject.Name} == ref
		}) {
			continue
		}
		rules, found := p.rules(role, object.GetNamespace())
		account.Rules = append(account.Rules, rules...)
		account.Known = account.Known && found
	}
	return account
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
