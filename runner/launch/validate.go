package launch

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/retry"
	"github.com/openshift/update-preflight/runner/payload"
)

// Validate has the API server look at everything in the plan, with dry runs
// and all at once, so that nothing is started that cannot be. What it refuses
// becomes a finding per Job and leaves the returned plan. Canceling ctx makes
// the rest findings that could not tell.
//
// What this run has in the cluster already is valid: it is going to be adopted.
//
// A dry run does not see what depends on objects that are not there yet: the
// pods of the Jobs, and the rights to bind a role that the plan brings.
func (l *Launcher) Validate(ctx context.Context, plan Plan) ([]finding.Finding, Plan) {
	v := validation{launcher: l, plan: plan, objects: map[reference]error{}, accounts: map[reference]error{}}
	v.ask(ctx)

	valid := plan
	valid.Checks = nil
	var findings []finding.Finding
	for i, check := range plan.Checks {
		if err := v.problem(i, check); err != nil {
			findings = append(findings, Explain(check, err))
			continue
		}
		valid.Checks = append(valid.Checks, check)
	}
	valid.prune()
	return findings, valid
}

// validation holds what the API server said, by what it was asked about.
type validation struct {
	launcher *Launcher
	plan     Plan
	jobs     []error
	objects  map[reference]error
	accounts map[reference]error
}

// ask sends all requests.
func (v *validation) ask(ctx context.Context) {
	accounts := v.foreignAccounts()
	var questions []func() error
	for _, object := range v.plan.Supporting {
		questions = append(questions, func() error { return v.launcher.dryRun(ctx, object) })
	}
	for _, account := range accounts {
		questions = append(questions, func() error { return v.launcher.accountExists(ctx, account) })
	}
	for _, check := range v.plan.Checks {
		questions = append(questions, func() error { return v.launcher.dryRun(ctx, check.Job) })
	}
	answers := askAll(questions)
	for i, object := range v.plan.Supporting {
		v.objects[referenceTo(object)] = answers[i]
	}
	answers = answers[len(v.plan.Supporting):]
	for i, account := range accounts {
		v.accounts[account] = answers[i]
	}
	v.jobs = answers[len(accounts):]
}

// foreignAccounts are the ServiceAccounts that the Jobs use and the release
// does not bring, each once.
func (v *validation) foreignAccounts() []reference {
	seen := map[reference]bool{}
	for _, object := range v.plan.Supporting {
		seen[referenceTo(object)] = true
	}
	var accounts []reference
	for _, check := range v.plan.Checks {
		if account := accountOf(check); account.name != "" && !seen[account] {
			seen[account] = true
			accounts = append(accounts, account)
		}
	}
	return accounts
}

func accountOf(check Check) reference {
	return reference{"ServiceAccount", check.Job.Namespace, check.Job.Spec.Template.Spec.ServiceAccountName}
}

// problem is the first thing that stands in the way of a check.
func (v *validation) problem(i int, check Check) error {
	if err := v.jobs[i]; err != nil {
		return err
	}
	for _, ref := range check.needs {
		if err := v.objects[ref]; err != nil {
			return err
		}
	}
	return v.accounts[accountOf(check)]
}

// dryRun asks whether the API server would take the object.
func (l *Launcher) dryRun(ctx context.Context, object payload.Object) error {
	k, err := l.kindOf(object)
	if err != nil {
		return err
	}
	if l.there(k, object) {
		return nil
	}
	err = retry.Do(ctx, func(ctx context.Context) error {
		err := k.create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsAlreadyExists(err) || roleToCome(object, err) {
			return nil
		}
		return l.orAdopt(ctx, k, object, err)
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("the API server does not take %s: %w", referenceTo(object), err)
}

// roleToCome is true when a binding is refused only because the role that the
// plan creates before it is not there in a dry run.
func roleToCome(object payload.Object, err error) bool {
	return rank(referenceTo(object).kind) > 0 && apierrors.IsNotFound(err) && missingKind(err) != "namespaces"
}

func (l *Launcher) accountExists(ctx context.Context, account reference) error {
	err := retry.Do(ctx, func(ctx context.Context) error {
		_, err := l.client.CoreV1().ServiceAccounts(account.namespace).Get(ctx, account.name, metav1.GetOptions{})
		return err
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("could not get %s: %w", account, err)
}
