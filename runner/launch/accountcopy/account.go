// Package accountcopy answers: as which ServiceAccounts do the checks run, and what may these read?
//
// [Make] replaces the existing ServiceAccounts of a plan with temporary copies that have only read access, and [Of]
// returns the accounts of a plan with their permissions. A check never runs as an existing ServiceAccount, which may
// have write access.
package accountcopy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch/credential"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
	"github.com/openshift/update-preflight/runner/payload"
)

// Account is a ServiceAccount that checks of a plan run as: a temporary copy of a ServiceAccount of the release or, in
// a plan of CopyAccounts, of the cluster.
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

// ReadSecret is a Secret or ConfigMap that checks read, with its review.
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

// maxErrorLinesOfCopy bounds the lines of an error that has a line for each rule.
const maxErrorLinesOfCopy = 5

// maxCopiedRules bounds the rules of a copy. cluster-admin has about one for each API group.
const maxCopiedRules = 1000

func build(c *jobplan.Copy, run jobplan.Run, account *corev1.ServiceAccount, grants []rights.Grant, api rights.API) {
	c.Objects = []payload.Object{&corev1.ServiceAccount{
		TypeMeta:         metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:       run.Meta(c.Original.Namespace, run.Suffixed(c.Original.Name)),
		ImagePullSecrets: account.ImagePullSecrets, AutomountServiceAccountToken: account.AutomountServiceAccountToken,
	}}
	count := 0
	for _, grant := range grants {
		reading := confine(run, grant.Namespace, api.Reads(grant.Rules))
		c.Omitted = append(c.Omitted, reading.Omitted...)
		if grant.Namespace != "" { // paths are granted in the whole cluster only
			reading.Rules = slices.DeleteFunc(reading.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.NonResourceURLs) > 0 })
		}
		count += len(reading.Rules)
		if len(reading.Rules) > 0 {
			c.Objects = append(c.Objects, roleOfCopy(run, c.Original, grant.Namespace, reading.Rules)...)
		}
	}
	slices.Sort(c.Omitted)
	c.Omitted = slices.Compact(c.Omitted)
	if count > maxCopiedRules {
		c.Objects, c.Failed = nil, &Error{
			Account: c.Original,
			Err:     fmt.Errorf("its read access has %d rules, more than %d", count, maxCopiedRules),
		}
	}
}

// What the copy in a run that is confined to one namespace lacks.
const (
	omittedOutside = "access outside of the namespace"
	omittedSecrets = "Secrets"
)

// confine restricts a grant in a namespace to the access that a run may have. A run in the management cluster of a
// hosted cluster reads only in the namespace of the control plane, and no Secrets there.
func confine(run jobplan.Run, namespace string, reading rights.Reading) rights.Reading {
	switch {
	case run.Namespace == "" || len(reading.Rules) == 0:
		return reading
	case namespace != run.Namespace:
		return rights.Reading{Omitted: []string{omittedOutside}}
	}
	var rules []rbacv1.PolicyRule
	for _, rule := range reading.Rules {
		if slices.Contains(rule.APIGroups, "") && slices.Contains(rule.Resources, "secrets") {
			reading.Omitted = append(reading.Omitted, omittedSecrets)
			rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(resource string) bool { return resource == "secrets" })
		}
		if len(rule.Resources) > 0 || len(rule.NonResourceURLs) > 0 {
			rules = append(rules, rule)
		}
	}
	reading.Rules = rules
	return reading
}

// roleOfCopy is a role with its binding to the copy, in a namespace or in the whole cluster.
func roleOfCopy(run jobplan.Run, original inventory.Reference, namespace string, rules []rbacv1.PolicyRule) []payload.Object {
	// A namespace has no dot, so the name is unique.
	meta := run.Meta(namespace, run.Suffixed("preflight-copy."+original.Namespace+"."+original.Name))
	refer := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: original.Namespace, Name: run.Suffixed(original.Name)}}
	if namespace == "" {
		return []payload.Object{
			&rbacv1.ClusterRole{
				TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: meta,
				Rules: rules,
			},
			&rbacv1.ClusterRoleBinding{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
				ObjectMeta: meta, Subjects: subjects, RoleRef: refer,
			},
		}
	}
	refer.Kind = "Role"
	return []payload.Object{
		&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta,
			Subjects: subjects, RoleRef: refer,
		},
	}
}

// Error means that a ServiceAccount cannot be copied.
type Error struct {
	Account inventory.Reference
	Err     error
}

func (e *Error) Error() string {
	return fmt.Sprintf("no temporary copy of %s can be created: %s", e.Account, words.FirstLines(e.Err.Error(), maxErrorLinesOfCopy))
}

func (e *Error) Unwrap() error { return e.Err }

// Make returns the plan with its checks running as temporary copies of their ServiceAccounts. The ServiceAccounts of
// the release have copies already; each ServiceAccount of the cluster gets one with the same imagePullSecrets and the
// read access of the original (rights.API Reads). Write access, and access that rights.Grants does not include, is not
// copied. If the user may not read the bindings and roles, the copy has no permissions; Accounts reports this. Validate
// reports errors.
//
// The copies are part of Supporting. A plan that has them already is returned unchanged.
func Make(ctx context.Context, client kubernetes.Interface, plan jobplan.Plan) jobplan.Plan {
	originals := clusterAccounts(plan)
	plan.Copies = maps.Clone(plan.Copies)
	if plan.Copies == nil {
		plan.Copies = map[inventory.Reference]jobplan.Copy{}
	}
	if plan.ClusterRoles == nil {
		plan.ClusterRoles, plan.UnreadRoles = rights.ClusterRoleRules(ctx, client.RbacV1(), boundClusterRoles(plan))
	}
	if len(originals) == 0 {
		return plan
	}
	copies := copiesOf(ctx, client, plan.Run, originals)
	plan.Supporting = slices.Clone(plan.Supporting)
	for ref, copied := range copies {
		plan.Copies[ref] = copied
		plan.Supporting = append(plan.Supporting, copied.Objects...)
	}
	slices.SortFunc(plan.Supporting, func(a, b payload.Object) int {
		return inventory.CompareReferences(inventory.ReferenceTo(a), inventory.ReferenceTo(b))
	})
	plan.Checks = slices.Clone(plan.Checks)
	for i, check := range plan.Checks {
		plan.Checks[i] = runAsCopy(plan, check)
	}
	return plan
}

// clusterAccounts are the ServiceAccounts of the checks that are not in the plan, each
// once, in the order of the checks.
func clusterAccounts(p jobplan.Plan) []inventory.Reference {
	seen := map[inventory.Reference]bool{}
	for _, object := range p.Supporting {
		seen[inventory.ReferenceTo(object)] = true
	}
	for ref := range p.Copies {
		seen[ref] = true
	}
	var accounts []inventory.Reference
	for _, check := range p.Checks {
		if account := check.Account(); !seen[account] {
			seen[account] = true
			accounts = append(accounts, account)
		}
	}
	return accounts
}

// boundClusterRoles are the ClusterRoles that the plan binds and does not have, sorted.
func boundClusterRoles(p jobplan.Plan) []string {
	var names []string
	for _, object := range p.Supporting {
		if _, role := jobplan.BindingOf(object); role.Kind == "ClusterRole" {
			if _, found := rulesOf(p, role, ""); !found {
				names = append(names, role.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func runAsCopy(p jobplan.Plan, check jobplan.Check) jobplan.Check {
	ref := check.Account()
	ref.Name = p.Run.Suffixed(ref.Name)
	copied, found := p.Copies[ref]
	if !found {
		return check
	}
	job := *check.Job
	job.Spec.Template.Spec.ServiceAccountName = ref.Name
	check.Job = &job
	check.Needs = slices.Clone(check.Needs)
	for _, object := range copied.Objects {
		check.Needs = append(check.Needs, inventory.ReferenceTo(object))
	}
	return check
}

// copiesOf reads ServiceAccounts with their permissions, and returns their copies.
func copiesOf(ctx context.Context, client kubernetes.Interface, run jobplan.Run,
	originals []inventory.Reference,
) map[inventory.Reference]jobplan.Copy {
	names := make([]types.NamespacedName, len(originals))
	for i, original := range originals {
		names[i] = types.NamespacedName{Namespace: original.Namespace, Name: original.Name}
	}
	accounts := make([]*corev1.ServiceAccount, len(originals))
	requests := make([]func() error, len(originals))
	for i, original := range originals {
		requests[i] = func() (err error) {
			accounts[i], err = readAccount(ctx, client, original)
			return err
		}
	}
	errs := inventory.Concurrently(requests)
	grants, api, failed := grantsOf(ctx, client, names)
	copies := map[inventory.Reference]jobplan.Copy{}
	for i, original := range originals {
		copied := jobplan.Copy{Original: original, Failed: cmp.Or(errs[i], failed)}
		if apierrors.IsForbidden(failed) {
			copied.Unread, copied.Failed = failed, errs[i]
		}
		granted := grants[names[i]]
		if granted.Err != nil {
			copied.Failed = &Error{Account: original, Err: granted.Err}
		}
		if copied.Failed == nil {
			build(&copied, run, accounts[i], granted.Grants, api)
		}
		copies[inventory.Refer(original.Kind, original.Namespace, run.Suffixed(original.Name))] = copied
	}
	return copies
}

// readAccount reads a ServiceAccount. The default one of a namespace may not exist yet.
func readAccount(ctx context.Context, client kubernetes.Interface, account inventory.Reference) (*corev1.ServiceAccount, error) {
	found, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ServiceAccount, error) {
		return client.CoreV1().ServiceAccounts(account.Namespace).Get(ctx, account.Name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) && account.Name == jobplan.DefaultAccount {
		return &corev1.ServiceAccount{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not get %s: %w", account, err)
	}
	return found, nil
}

// grantsOf returns the permissions of accounts, and the resources of the API server if there are any permissions.
func grantsOf(ctx context.Context, client kubernetes.Interface,
	accounts []types.NamespacedName,
) (map[types.NamespacedName]rights.Granted, rights.API, error) {
	grants, err := rights.Grants(ctx, client.RbacV1(), accounts)
	if err != nil || len(grants) == 0 {
		return nil, rights.API{}, err
	}
	api, err := rights.Discover(ctx, client.Discovery())
	return grants, api, err
}
