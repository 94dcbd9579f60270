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
	// Author is what the release calls it.
	Author string
	// Checks are the names of the checks, sorted.
	Checks []string
	// Temporary is true for a copy that goes with the run.
	Temporary bool
	// Rules are what the roles of the plan allow it.
	Rules []rbacv1.PolicyRule
	// Known is true when nothing but Rules, and what every account may, is
	// allowed to it: a copy that is bound to roles of the plan only.
	Known bool
}

// Accounts are all identities that the checks of the plan have, each once,
// sorted by namespace and name.
func (p Plan) Accounts() []Account {
	byReference := map[reference]*Account{}
	var accounts []*Account
	for _, check := range p.Checks {
		ref := accountOf(check)
		ref.name = cmp.Or(ref.name, "default") // as the API server has it
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

// account is what the plan says of one account.
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

// rules are those of a role that the plan brings.
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
