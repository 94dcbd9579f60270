package launch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/retry"
	"github.com/openshift/update-preflight/runner/payload"
)

// ReasonAccountNotCopied is reported for a check that is to run as an existing
// ServiceAccount, of which no temporary copy can be created. A check never runs as an
// existing ServiceAccount, which may have write access.
//
// Cause: the user may not create roles, or does not have the read access of the
// ServiceAccount, and Kubernetes allows no user to grant permissions that it does not
// have; or the ServiceAccount has too many rules.
//
// Remedy: run the preflight as a user with the permissions that the message names, or
// accept the finding.
const ReasonAccountNotCopied finding.Reason = "AccountNotCopied"

const (
	// maxCopiedRules bounds the rules of a copy. Those of cluster-admin are about one
	// for each API group.
	maxCopiedRules = 1000
	// defaultAccount is the ServiceAccount of pods that name none.
	defaultAccount = "default"
)

// accountCopy is a temporary copy of a ServiceAccount that is not of the release.
type accountCopy struct {
	// original is the ServiceAccount of the cluster.
	original reference
	// objects are the copy, its roles and their bindings.
	objects []payload.Object
	// omitted describes read access of the original that the copy lacks.
	omitted []string
	// unread is the error for which the copy has no permissions: those of the original
	// may not be read.
	unread error
	// failed is the error for which there is no copy.
	failed error
}

// notCopiedError means that a ServiceAccount cannot be copied.
type notCopiedError struct {
	account reference
	err     error
}

func (e *notCopiedError) Error() string {
	return fmt.Sprintf("no temporary copy of %s can be created: %s", e.account, firstLines(e.err.Error()))
}

func (e *notCopiedError) Unwrap() error { return e.err }

// explain returns the error of the API server for an object, as a notCopiedError if the
// object is one of the copy that the user may not create.
func (c accountCopy) explain(object reference, err error) error {
	ofCopy := slices.ContainsFunc(c.objects, func(each payload.Object) bool { return referenceTo(each) == object })
	if !ofCopy || !apierrors.IsForbidden(err) {
		return err
	}
	return &notCopiedError{account: c.original, err: err}
}

// CopyAccounts returns the plan with its checks running as temporary copies of their
// ServiceAccounts: those of the release have copies already, those of the cluster get
// one with the same imagePullSecrets and with the read access of the original (access.API
// Reads). Write access, and what access.Grants does not include, is not copied. If the
// user may not read the bindings and roles, the copy has no permissions; Accounts reports
// that. Errors are reported by Validate.
//
// The copies are part of Supporting. A plan that has them already is returned unchanged.
func (l *Launcher) CopyAccounts(ctx context.Context, plan Plan) Plan {
	originals := plan.clusterAccounts()
	plan.copies = maps.Clone(plan.copies)
	if plan.copies == nil {
		plan.copies = map[reference]accountCopy{}
	}
	if plan.clusterRoles == nil {
		plan.clusterRoles, plan.unreadRoles = access.ClusterRoleRules(ctx, l.client.RbacV1(), plan.boundClusterRoles())
	}
	if len(originals) == 0 {
		return plan
	}
	copies := l.copies(ctx, plan.Run, originals)
	plan.Supporting = slices.Clone(plan.Supporting)
	for ref, copied := range copies {
		plan.copies[ref] = copied
		plan.Supporting = append(plan.Supporting, copied.objects...)
	}
	slices.SortFunc(plan.Supporting, func(a, b payload.Object) int { return compareReferences(referenceTo(a), referenceTo(b)) })
	plan.Checks = slices.Clone(plan.Checks)
	for i, check := range plan.Checks {
		plan.Checks[i] = plan.runAsCopy(check)
	}
	return plan
}

// clusterAccounts are the ServiceAccounts of the checks that are not in the plan, each
// once, in the order of the checks.
func (p Plan) clusterAccounts() []reference {
	seen := map[reference]bool{}
	for _, object := range p.Supporting {
		seen[referenceTo(object)] = true
	}
	for ref := range p.copies {
		seen[ref] = true
	}
	var accounts []reference
	for _, check := range p.Checks {
		if account := accountOf(check); !seen[account] {
			seen[account] = true
			accounts = append(accounts, account)
		}
	}
	return accounts
}

// boundClusterRoles are the ClusterRoles that the plan binds and does not have, sorted.
func (p Plan) boundClusterRoles() []string {
	var names []string
	for _, object := range p.Supporting {
		if _, role := bindingOf(object); role.Kind == "ClusterRole" {
			if _, found := p.rules(role, ""); !found {
				names = append(names, role.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// runAsCopy is the check with the copy of its ServiceAccount, if it has one.
func (p Plan) runAsCopy(check Check) Check {
	ref := accountOf(check)
	ref.name = p.Run.suffixed(ref.name)
	copied, found := p.copies[ref]
	if !found {
		return check
	}
	job := *check.Job
	job.Spec.Template.Spec.ServiceAccountName = ref.name
	check.Job = &job
	check.needs = slices.Clone(check.needs)
	for _, object := range copied.objects {
		check.needs = append(check.needs, referenceTo(object))
	}
	return check
}

// copies reads ServiceAccounts with their permissions, and returns their copies.
func (l *Launcher) copies(ctx context.Context, run Run, originals []reference) map[reference]accountCopy {
	names := make([]types.NamespacedName, len(originals))
	for i, original := range originals {
		names[i] = types.NamespacedName{Namespace: original.namespace, Name: original.name}
	}
	accounts := make([]*corev1.ServiceAccount, len(originals))
	requests := make([]func() error, len(originals))
	for i, original := range originals {
		requests[i] = func() (err error) {
			accounts[i], err = l.account(ctx, original)
			return err
		}
	}
	errs := doAll(requests)
	grants, api, failed := l.grants(ctx, names)
	copies := map[reference]accountCopy{}
	for i, original := range originals {
		copied := accountCopy{original: original, failed: cmp.Or(errs[i], failed)}
		if apierrors.IsForbidden(failed) {
			copied.unread, copied.failed = failed, errs[i]
		}
		granted := grants[names[i]]
		if granted.Err != nil {
			copied.failed = &notCopiedError{account: original, err: granted.Err}
		}
		if copied.failed == nil {
			copied.build(run, accounts[i], granted.Grants, api)
		}
		copies[reference{original.kind, original.namespace, run.suffixed(original.name)}] = copied
	}
	return copies
}

// account reads a ServiceAccount. The default one of a namespace may not exist yet.
func (l *Launcher) account(ctx context.Context, account reference) (*corev1.ServiceAccount, error) {
	found, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ServiceAccount, error) {
		return l.client.CoreV1().ServiceAccounts(account.namespace).Get(ctx, account.name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) && account.name == defaultAccount {
		return &corev1.ServiceAccount{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not get %s: %w", account, err)
	}
	return found, nil
}

// grants are the permissions of accounts, and the resources of the API server if there
// are any permissions.
func (l *Launcher) grants(ctx context.Context, accounts []types.NamespacedName) (map[types.NamespacedName]access.Granted, access.API, error) {
	grants, err := access.Grants(ctx, l.client.RbacV1(), accounts)
	if err != nil || len(grants) == 0 {
		return nil, access.API{}, err
	}
	api, err := access.Discover(l.client.Discovery())
	return grants, api, err
}

// build makes the objects of the copy.
func (c *accountCopy) build(run Run, account *corev1.ServiceAccount, grants []access.Grant, api access.API) {
	c.objects = []payload.Object{&corev1.ServiceAccount{
		TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: run.meta(c.original.namespace, run.suffixed(c.original.name)),
		ImagePullSecrets: account.ImagePullSecrets, AutomountServiceAccountToken: account.AutomountServiceAccountToken,
	}}
	count := 0
	for _, grant := range grants {
		reading := api.Reads(grant.Rules)
		c.omitted = append(c.omitted, reading.Omitted...)
		if grant.Namespace != "" { // paths are granted in the whole cluster only
			reading.Rules = slices.DeleteFunc(reading.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.NonResourceURLs) > 0 })
		}
		count += len(reading.Rules)
		if len(reading.Rules) > 0 {
			c.objects = append(c.objects, c.role(run, grant.Namespace, reading.Rules)...)
		}
	}
	slices.Sort(c.omitted)
	c.omitted = slices.Compact(c.omitted)
	if count > maxCopiedRules {
		c.objects, c.failed = nil, &notCopiedError{account: c.original, err: fmt.Errorf("its read access has %d rules, more than %d", count, maxCopiedRules)}
	}
}

// role is a role with its binding to the copy, in a namespace or in the whole cluster.
func (c *accountCopy) role(run Run, namespace string, rules []rbacv1.PolicyRule) []payload.Object {
	// A namespace has no dot, so the name is unique.
	meta := run.meta(namespace, run.suffixed("preflight-copy."+c.original.namespace+"."+c.original.name))
	refer := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.original.namespace, Name: run.suffixed(c.original.name)}}
	if namespace == "" {
		return []payload.Object{
			&rbacv1.ClusterRole{TypeMeta: typeMeta(rbacVersion, "ClusterRole"), ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta(rbacVersion, "ClusterRoleBinding"), ObjectMeta: meta, Subjects: subjects, RoleRef: refer},
		}
	}
	refer.Kind = "Role"
	return []payload.Object{
		&rbacv1.Role{TypeMeta: typeMeta(rbacVersion, "Role"), ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: typeMeta(rbacVersion, "RoleBinding"), ObjectMeta: meta, Subjects: subjects, RoleRef: refer},
	}
}
