// Package accountcopy answers: as which ServiceAccounts do the checks run, and what may
// these read?
//
// [Make] replaces the existing ServiceAccounts of a plan by temporary copies with read
// access only, and [Of] returns the accounts of a plan with their permissions. A check never
// runs as an existing ServiceAccount, which may have write access.
package accountcopy

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/launch/credential"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
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
	// Rules are the rules of the roles that are bound to it.
	Rules []rbacv1.PolicyRule
	// Omitted describes read access of the original that a copy lacks, sorted.
	Omitted []string
	// Unread is the error of reading the roles of the cluster, without which Rules is
	// incomplete for an account of the release, and empty for a copy.
	Unread error
	// Secrets that its checks read, in their containers or by a role that names them, and such ConfigMaps whose content is
	// unknown, sorted.
	Secrets []ReadSecret
}

// ReadSecret is a Secret or ConfigMap that checks read, with what the user may know of it.
type ReadSecret struct {
	inventory.Reference
	credential.Review

	// Checks are the names of the checks, sorted.
	Checks []string
}

// Of returns the ServiceAccounts of the plan's checks, sorted by namespace and name.
func Of(p jobplan.Plan) []Account {
	byReference := map[inventory.Reference]*Account{}
	var accounts []*Account
	for _, check := range p.Checks {
		ref := check.Account()
		found := byReference[ref]
		if found == nil {
			found = accountOf(p, ref)
			byReference[ref] = found
			accounts = append(accounts, found)
		}
		found.Checks = append(found.Checks, check.Name)
		for _, secret := range Secrets(p, check) {
			if review := p.Secrets[secret]; secret.Kind == inventory.SecretKind || review.Content != nil || review.Type != nil {
				found.note(ReadSecret{Reference: secret, Review: review, Checks: []string{check.Name}})
			}
		}
	}
	sorted := make([]Account, 0, len(accounts))
	for _, account := range accounts {
		slices.Sort(account.Checks)
		slices.SortFunc(account.Secrets, func(a, b ReadSecret) int { return inventory.CompareReferences(a.Reference, b.Reference) })
		for _, secret := range account.Secrets {
			slices.Sort(secret.Checks)
		}
		sorted = append(sorted, *account)
	}
	slices.SortFunc(sorted, func(a, b Account) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return sorted
}

// note adds a Secret, or its check to one that is known.
func (a *Account) note(secret ReadSecret) {
	at := slices.IndexFunc(a.Secrets, func(other ReadSecret) bool { return other.Reference == secret.Reference })
	if at < 0 {
		a.Secrets = append(a.Secrets, secret)
		return
	}
	if known := &a.Secrets[at]; !slices.Contains(known.Checks, secret.Checks[0]) {
		known.Checks = append(known.Checks, secret.Checks...)
	}
}

func accountOf(p jobplan.Plan, ref inventory.Reference) *Account {
	account := &Account{Namespace: ref.Namespace, Name: ref.Name, Author: strings.TrimSuffix(ref.Name, "-"+p.Run.Suffix())}
	if copied, found := p.Copies[ref]; found {
		account.Copied, account.Author, account.Omitted, account.Unread = true, copied.Original.Name, copied.Omitted, copied.Unread
	}
	for _, bound := range boundTo(p, ref) {
		if !bound.found {
			account.Unread = p.UnreadRoles
		}
		account.Rules = append(account.Rules, bound.rules...)
	}
	return account
}

type boundRules struct {
	// namespace is the namespace of the binding; empty for the whole cluster.
	namespace string
	rules     []rbacv1.PolicyRule
	// found is false for a role that could not be read.
	found bool
}

func boundTo(p jobplan.Plan, account inventory.Reference) []boundRules {
	var all []boundRules
	for _, object := range p.Supporting {
		subjects, role := jobplan.BindingOf(object)
		if !slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool { return jobplan.AccountOfSubject(subject) == account }) {
			continue
		}
		bound := boundRules{namespace: object.GetNamespace()}
		if bound.rules, bound.found = rulesOf(p, role, bound.namespace); !bound.found {
			bound.rules, bound.found = p.ClusterRoles[role.Name]
		}
		all = append(all, bound)
	}
	return all
}

func rulesOf(p jobplan.Plan, role rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
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

// SecretReads returns the requests by which the Rules of the account read Secrets of
// any name, sorted. The requests have no namespace.
func (a Account) SecretReads() []access.Request { return manifestpolicy.SecretReads(a.Rules) }

// Secrets returns the Secrets and ConfigMaps that a check reads: in its containers, and with the permissions of its account.
func Secrets(p jobplan.Plan, check jobplan.Check) []inventory.Reference {
	secrets := jobplan.Secrets(check.Job)
	for _, bound := range boundTo(p, check.Account()) {
		secrets = append(secrets, jobplan.NamedSecrets(bound.namespace, bound.rules)...)
	}
	return secrets
}
