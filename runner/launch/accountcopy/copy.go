package accountcopy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// Make returns the plan with its checks running as temporary copies of their
// ServiceAccounts: those of the release have copies already, those of the cluster get
// one with the same imagePullSecrets and with the read access of the original (rights.API
// Reads). Write access, and what rights.Grants does not include, is not copied. If the
// user may not read the bindings and roles, the copy has no permissions; Accounts reports
// that. Errors are reported by Validate.
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
func copiesOf(ctx context.Context, client kubernetes.Interface, run jobplan.Run, originals []inventory.Reference) map[inventory.Reference]jobplan.Copy {
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
func grantsOf(ctx context.Context, client kubernetes.Interface, accounts []types.NamespacedName) (map[types.NamespacedName]rights.Granted, rights.API, error) {
	grants, err := rights.Grants(ctx, client.RbacV1(), accounts)
	if err != nil || len(grants) == 0 {
		return nil, rights.API{}, err
	}
	api, err := rights.Discover(ctx, client.Discovery())
	return grants, api, err
}
