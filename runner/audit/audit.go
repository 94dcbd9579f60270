// Package audit answers: what access do the ServiceAccounts of a run's checks have?
//
// [New] reads their access. The audit is itself a source of findings, and names the checks that must not run.
package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
)

var (
	nameAudit = finding.NewName("ReadOnlyAccess",
		"The findings about the access of the ServiceAccounts of checks, each with the namespace, or the "+
			"namespace and the ServiceAccount, appended.")

	reasonReadOnly = finding.NewReason("ReadOnly", finding.Explanation{
		Meaning: "The ServiceAccount of a check has no write access, or the groups of a namespace's ServiceAccounts " +
			"grant none.",
		Cause: "Its roles grant read access only.",
	})
	reasonMayWrite = finding.NewReason("MayWrite", finding.Explanation{
		Meaning: "The ServiceAccounts of checks have write access, and the read-only guard of the run denies these writes.",
		Cause: "A role is bound to all ServiceAccounts of the namespace, to all ServiceAccounts, or to all users; or " +
			"the cluster's ClusterRole view or cluster-reader grants write access.",
		Remedy: "Remove the binding, or remove the write access from the ClusterRole.",
	})
	reasonUnguardedAccess = finding.NewReason("UnguardedAccess", finding.Explanation{
		Meaning: "The ServiceAccounts of checks have write access that the read-only guard of the run cannot deny: " +
			"impersonation, changes of admission policies, connections to kubelets, writes to aggregated APIs, or " +
			"granting permissions. Without a guard in force, this includes all write access. Checks with such an " +
			"account do not run.",
		Cause: "A role is bound to all ServiceAccounts of the namespace, to all ServiceAccounts, or to all users; or " +
			"the cluster's ClusterRole view or cluster-reader grants such access.",
		Remedy: "Remove the binding, remove the access from the ClusterRole, or let the run create the guard. To run " +
			"the checks anyway, accept the finding whose name starts with ReadOnlyAccess.",
	})
	reasonReadsSecrets = finding.NewReason("ReadsSecrets", finding.Explanation{
		Meaning: "A check reads the Secrets that the message names, or its ServiceAccount may read Secrets of any " +
			"name. A Secret may contain a credential with which the check could write as another user: the read-only " +
			"guard of the run only covers the tokens of its pods. Known kinds of credentials are rejected where the " +
			"user may read the Secret (RefusedTokenSecret); other credentials cannot be recognized.",
		Cause: "A volume or an environment variable of the check refers to the Secret, or a role of its " +
			"ServiceAccount names it; or a role grants get, list or watch on secrets without resourceNames.",
		Remedy: "Find out what the Secrets in the message are used for. Ask the owners of the check to name the " +
			"Secrets in the role, and delete unused Secrets with tokens: `oc get secrets -A --field-selector " +
			"type=kubernetes.io/service-account-token`.",
	})
	reasonUnknownSecret = finding.NewReason("UnknownSecret", finding.Explanation{
		Meaning: "A check reads a Secret whose type the user may not read, or a ConfigMap that the user may not " +
			"read. The object may contain a token with which the check could write as another user, so the checks do " +
			"not run.",
		Cause: "The user may neither list nor get the object.",
		Remedy: "Bind the roles that \"auth run\" prints. To run the checks anyway, accept the finding whose name " +
			"starts with ReadOnlyAccess.",
	})
	reasonSecretChanged = finding.NewReason("SecretChanged", finding.Explanation{
		Meaning: "A Secret that a check reads was created while the checks ran, a Secret or ConfigMap has contained " +
			"an API server credential since then, or it could not be read again. The check may have used the " +
			"credential to write.",
		Cause:  "A user or a controller changed the object.",
		Remedy: "Find the user who changed it in the audit log of the API server, then run the preflight again.",
	})
	reasonPartlyAudited = finding.NewReason("PartlyAudited", finding.Explanation{
		Meaning: "The API server could not list some of its APIs. The access to these APIs is unknown.",
		Cause:   "An aggregated API server is unavailable.",
		Remedy:  "Check \"oc get apiservices\".",
	})
	reasonNotAudited = finding.NewReason("NotAudited", finding.Explanation{
		Meaning: "The access of the checks' accounts could not be reviewed or copied. The checks run with less access.",
		Cause: "The user lacks the permission to create SubjectAccessReviews, to list bindings and APIServices, or " +
			"to get roles.",
		Remedy: "Bind the roles that \"auth run\" prints.",
	})
)

// Audit is the access of the temporary accounts of the checks: by the roles of the plan, and by the groups of the
// ServiceAccounts of their namespaces.
type Audit struct {
	accounts []accountcopy.Account
	// groups are the permissions of the groups, and aggregated the API groups that other
	// servers serve; err is the error of reading them.
	groups     []rights.GroupRights
	aggregated []string
	err        error
	// guarded is true where the guard of the run is in force.
	guarded bool
}

// New reads the access of the ServiceAccounts in the checks' namespaces.
func New(ctx context.Context, client kubernetes.Interface, accounts []accountcopy.Account) Audit {
	var namespaces []string
	for _, account := range accounts {
		namespaces = append(namespaces, account.Namespace)
	}
	slices.Sort(namespaces)
	a := Audit{accounts: accounts}
	if a.aggregated, a.err = rights.AggregatedGroups(ctx, client.Discovery().RESTClient()); a.err == nil {
		a.groups, a.err = rights.Groups(ctx, client, slices.Compact(namespaces), a.aggregated)
	}
	return a
}

// Under is the audit of a run with that guard.
func (a Audit) Under(guard finding.Finding) Audit {
	a.guarded = guard.Outcome == preflight.Pass
	return a
}

// Source is the audit as a source.
func (a Audit) Source() collector.Source {
	return collector.Source{Name: nameAudit, Kind: finding.SourceJob, Collect: func(context.Context) ([]finding.Finding, error) {
		return a.findings()
	}}
}

func (a Audit) findings() ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, account := range a.accounts {
		findings = append(findings, aboutAccount(account, withSecrets(account, a.judgeAccount(account))))
	}
	if apierrors.IsForbidden(a.err) {
		return append(findings, a.notAudited(nameAudit, "could not determine the write access of all ServiceAccounts "+
			"in the checks' namespaces; %s: %v",
			a.protection(), a.err).Named(nameAudit)), nil
	}
	for _, rights := range a.groups {
		findings = append(findings, a.judgeGroups(rights).Named(nameOfGroups(rights.Namespace)).
			About(finding.Object{APIVersion: "v1", Kind: "Namespace", Name: rights.Namespace}))
	}
	return findings, a.err
}

// protection is a clause about what denies a write.
func (a Audit) protection() string {
	if a.guarded {
		return "the read-only guard of the run denies it to the checks' pods"
	}
	return "the read-only guard that would deny it is not in force"
}

// undenied are the writes that nothing denies: those that the guard cannot deny and, where it is not in force, all.
func (a Audit) undenied(writes, unguarded []access.Request) []access.Request {
	if a.guarded {
		return unguarded
	}
	return access.Essential(slices.Concat(writes, unguarded))
}

// Barred returns the checks that may not run unless the administrator accepts the findings that are named, each with
// the names of all for which it may not.
func (a Audit) Barred() map[string][]string {
	checks := map[string][]string{}
	for _, account := range a.accounts {
		var causes []string
		if name := a.barringGroups(account.Namespace); name != "" {
			causes = append(causes, name)
		}
		for _, check := range account.Checks {
			all := slices.Clone(causes)
			if a.bars(account) || readsUnknown(account, check) {
				all = append(all, nameOf(account))
			}
			if len(all) > 0 {
				checks[check] = all
			}
		}
	}
	return checks
}

// barringGroups is the name of the finding about the groups of a namespace for which its checks may not run; empty
// for none. Where neither the groups were audited nor a guard denies their writes, nothing is known to.
func (a Audit) barringGroups(namespace string) string {
	if a.err != nil && !a.guarded {
		return nameAudit
	}
	for _, rights := range a.groups {
		if rights.Namespace == namespace && len(a.undenied(rights.Writes, rights.Unguarded)) > 0 {
			return nameOfGroups(namespace)
		}
	}
	return ""
}

// bars is true for an account with which no check may run, by its roles.
func (a Audit) bars(account accountcopy.Account) bool {
	return len(a.undeniedTo(account)) > 0 || account.Unread != nil && !account.Copied && !a.guarded
}

// undeniedTo are the permissions of an account that nothing denies, by its roles.
func (a Audit) undeniedTo(account accountcopy.Account) []access.Request {
	writes := rights.Writing(account.Rules)
	return a.undenied(writes, rights.Unguarded(writes, a.aggregated))
}

// notAudited is the finding about access that is unknown. Where no guard denies writes, checks with it do not run.
func (a Audit) notAudited(name, format string, args ...any) finding.Finding {
	if a.guarded {
		return finding.Warn(reasonNotAudited, format, args...).
			Remedy("Run the preflight as a user with the permissions that the message names.").Do(finding.Roles())
	}
	return finding.Unknown(reasonNotAudited, format, args...).
		Noted("Checks with this access do not run unless %s is accepted.", name).
		Remedy("Run the preflight as a user with the permissions that the message names, or with permission to "+
			"create the read-only guard. To run the checks anyway, accept the finding.").
		Do(finding.Roles(), finding.Accept(name))
}

func (a Audit) judgeAccount(account accountcopy.Account) finding.Finding {
	writes, undenied := rights.Writing(account.Rules), a.undeniedTo(account)
	secrets := account.SecretReads()
	switch {
	case account.Unread != nil && account.Copied:
		return finding.Warn(reasonNotAudited, "%s, which has no permissions: the permissions of the original are "+
			"unknown: %v", subjectOf(account),
			account.Unread).
			Remedy("Run the preflight as a user with the permissions that the message names.").Do(finding.Roles())
	case account.Unread != nil:
		return a.notAudited(nameOf(account), "%s, whose roles could not all be read; %s: %v", subjectOf(account), a.protection(), account.Unread)
	case len(undenied) > 0:
		return a.unguardedAccess(subjectOf(account), nameOf(account), undenied).
			Remedy("Remove this access from the ClusterRoles view and cluster-reader. To run %s anyway, accept the finding.",
				words.List(account.Checks, 5)).
			Do(finding.Read("oc get clusterroles view cluster-reader -o yaml"), finding.Accept(nameOf(account)))
	case len(writes) > 0:
		return finding.Warn(reasonMayWrite, "%s, which may %s; %s", subjectOf(account), access.Summarize(writes, 5), a.protection()).
			Remedy("Remove this access from the ClusterRoles view and cluster-reader.").
			Do(finding.Read("oc get clusterroles view cluster-reader -o yaml"))
	case len(secrets) > 0:
		return readsSecrets(subjectOf(account)+", which", secrets).
			Remedy("Ask the owners of %s to name the Secrets in resourceNames of the role, and delete unused Secrets with tokens.",
				words.List(account.Checks, 5))
	case account.Copied:
		return finding.Pass(gap.Proven("the roles of the account"), reasonReadOnly, "%s with its read access%s", subjectOf(account),
			without(account.Omitted))
	}
	return finding.Pass(gap.Proven("the roles of the account"), reasonReadOnly, "%s; the roles of the release allow it to %s",
		subjectOf(account), describeRules(account.Rules))
}

// without is a clause about what a copy lacks.
func without(omitted []string) string {
	if len(omitted) == 0 {
		return ""
	}
	return ", without " + words.Clauses(omitted, 5)
}

// tokensUnguarded is the reason why reading Secrets counts as write access.
const tokensUnguarded = "the read-only guard does not apply to credentials in Secrets and ConfigMaps"

func readsSecrets(subject string, secrets []access.Request) finding.Finding {
	return finding.Warn(reasonReadsSecrets, "%s may %s, of any name; %s", subject, access.Summarize(secrets, 5), tokensUnguarded).
		Do(finding.Read("oc get secrets -A --field-selector type=kubernetes.io/service-account-token"))
}

// unguardedAccess is the finding about a subject whose checks may not run.
func (a Audit) unguardedAccess(subject, name string, undenied []access.Request) finding.Finding {
	why := "which the read-only guard cannot deny"
	if !a.guarded {
		why = "and " + a.protection()
	}
	return finding.Unknown(reasonUnguardedAccess, "%s may %s, %s; checks with this access do not run unless %s is accepted",
		subject, access.Summarize(undenied, 5), why, name)
}

// judgeGroups is the finding about what every ServiceAccount of a namespace may do.
func (a Audit) judgeGroups(rights rights.GroupRights) finding.Finding {
	protection := a.protection()
	subject := fmt.Sprintf("every ServiceAccount of namespace %s", rights.Namespace)
	name := nameOfGroups(rights.Namespace)
	bindings := finding.Read("oc get clusterrolebindings,rolebindings -A -o wide | grep -E system:(authenticated|serviceaccounts)")
	undenied := a.undenied(rights.Writes, rights.Unguarded)
	switch {
	case len(undenied) > 0:
		return a.unguardedAccess(subject, name, undenied).
			Remedy("Remove the binding for the group. To run the checks of the namespace anyway, accept the finding.").
			Do(bindings, finding.Accept(name))
	case len(rights.Writes) > 0:
		if len(rights.Secrets) > 0 {
			protection += "; it may also " + access.Summarize(rights.Secrets, 5) + ", and " + tokensUnguarded
		}
		return finding.Warn(reasonMayWrite, "%s may %s; %s", subject, access.Summarize(rights.Writes, 5), protection).
			Remedy("Remove the binding for the group.").Do(bindings)
	case len(rights.Secrets) > 0:
		return readsSecrets(subject, rights.Secrets).Remedy("Remove the binding for the group, and delete unused Secrets with tokens.").Do(
			bindings)
	case len(rights.Unserved) > 0:
		return finding.Warn(reasonPartlyAudited,
			"%s has no write access to the APIs that could be reviewed; unknown for %s, which the API server does "+
				"not currently serve; %s",
			subject, strings.Join(rights.Unserved, ", "), protection).
			Remedy("Check the aggregated APIs.").Do(finding.Read("oc get apiservices"))
	}
	return finding.Pass(gap.Proven("the bindings of the groups"), reasonReadOnly,
		"the groups of the ServiceAccounts of namespace %s have no write access (%s)", rights.Namespace, words.Count(rights.Roles, "role"))
}

// NotRun is the finding of a check that may not run because of other findings.
func NotRun(check string, causes []string) finding.Finding {
	named := strings.Join(causes, " and ")
	actions := make([]finding.Action, 0, len(causes))
	for _, cause := range causes {
		actions = append(actions, finding.Accept(cause))
	}
	return finding.Unknown(reasonUnguardedAccess,
		"not run: the read-only guard cannot deny all writes for which the check may have credentials, see %s", named).
		Named(check).
		Remedy("Do what %s requires. To run the check anyway, accept %s.", named, named).
		Do(actions...)
}

func nameOf(account accountcopy.Account) string {
	return nameAudit + "-" + account.Namespace + "." + account.Author
}

func nameOfGroups(namespace string) string { return nameAudit + "-" + namespace }

func subjectOf(account accountcopy.Account) string {
	kind := "ServiceAccount of the release"
	if account.Copied {
		kind = "ServiceAccount"
	}
	return fmt.Sprintf("%s is a temporary copy of %s %s/%s", account.Name, kind, account.Namespace, account.Author)
}

func describeRules(rules []rbacv1.PolicyRule) string {
	const most, mostNames = 3, 5
	var texts []string
	for _, rule := range rules {
		names := append(slices.Clip(rule.Resources), rule.NonResourceURLs...)
		texts = append(texts, strings.Join(rule.Verbs, ", ")+" "+words.List(names, mostNames))
	}
	switch {
	case len(texts) == 0:
		return "do no more than every authenticated user"
	case len(texts) > most:
		return strings.Join(texts[:most], "; ") + fmt.Sprintf("; and %d more rules", len(texts)-most)
	}
	return strings.Join(texts, "; ")
}
