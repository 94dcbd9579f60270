// Package audit answers: what may the ServiceAccounts of the checks of a run do?
//
// [New] reads it; the audit is itself a source of findings, and names the checks that may
// not run.
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
		Meaning: "Reported for a ServiceAccount of checks that has no write access, and for a namespace whose " +
			"ServiceAccounts have none through their groups.",
		Cause: "Its roles only read.",
	})
	reasonMayWrite = finding.NewReason("MayWrite", finding.Explanation{
		Meaning: "Reported for write access of the ServiceAccounts of checks that the read-only guard of the run denies.",
		Cause: "A role is bound to all ServiceAccounts of the namespace, to all ServiceAccounts, or to all users; or the " +
			"ClusterRole view or cluster-reader of the cluster has write access.",
		Remedy: "Remove the binding, or the write access of the ClusterRole.",
	})
	reasonUnguardedAccess = finding.NewReason("UnguardedAccess", finding.Explanation{
		Meaning: "Reported for write access of the ServiceAccounts of checks that the read-only guard of the run cannot " +
			"deny: impersonation, changes of admission policies, connections to kubelets, writes to aggregated APIs, " +
			"and the permission to grant permissions. Checks with such an account do not run.",
		Cause: "A role is bound to all ServiceAccounts of the namespace, to all ServiceAccounts, or to all users; or the " +
			"ClusterRole view or cluster-reader of the cluster has such access.",
		Remedy: "Remove the binding, or the access of the ClusterRole. To run the checks all the same, accept the finding " +
			"whose name starts with ReadOnlyAccess.",
	})
	reasonReadsSecrets = finding.NewReason("ReadsSecrets", finding.Explanation{
		Meaning: "Reported for ServiceAccounts of checks that may read Secrets of any name. A Secret of type " +
			"kubernetes.io/service-account-token has a token with which the check could write as another account: the " +
			"read-only guard of the run applies to the tokens of its pods only.",
		Cause: "A role of the release, or one that is bound to all ServiceAccounts of the namespace, has get, list or " +
			"watch of secrets without resourceNames.",
		Remedy: "Ask the owners of the check to name the Secrets in the role, and delete unused Secrets with tokens: `oc " +
			"get secrets -A --field-selector type=kubernetes.io/service-account-token`.",
	})
	reasonPartlyAudited = finding.NewReason("PartlyAudited", finding.Explanation{
		Meaning: "Reported when the API server could not list some of its APIs, so the access to them is unknown.",
		Cause:   "An aggregated API server is unavailable.",
		Remedy:  "Check \"oc get apiservices\".",
	})
	reasonNotAudited = finding.NewReason("NotAudited", finding.Explanation{
		Meaning: "Reported when the access of the checks' accounts could not be reviewed, or not be copied: the checks " +
			"have less access then.",
		Cause:  "The permission to create SubjectAccessReviews, to list bindings and APIServices, or to get roles is missing.",
		Remedy: "Bind the roles that \"auth run\" prints.",
	})
)

// Audit is what the temporary accounts of the checks may do: by the roles of the
// plan, and by the groups of the ServiceAccounts of their namespaces.
type Audit struct {
	accounts []accountcopy.Account
	// groups are the permissions of the groups, and aggregated the API groups that other
	// servers serve; err is the error of reading them.
	groups     []rights.GroupRights
	aggregated []string
	err        error
}

// New reads what the ServiceAccounts of the checks' namespaces may do.
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

// Source is the audit as a source, of a run with that guard.
func (a Audit) Source(guard finding.Finding) collector.Source {
	protection := "the read-only guard, which would deny it, is not in force"
	if guard.Outcome == preflight.Pass {
		protection = "the read-only guard of the run denies it to the checks' pods"
	}
	return collector.Source{Name: nameAudit, Kind: finding.SourceJob, Collect: func(context.Context) ([]finding.Finding, error) {
		return a.findings(protection)
	}}
}

func (a Audit) findings(protection string) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, account := range a.accounts {
		findings = append(findings, aboutAccount(account, a.judgeAccount(account, protection)))
	}
	if apierrors.IsForbidden(a.err) {
		return append(findings, notAudited("unknown what every ServiceAccount of the checks' namespaces may write; %s: %v", protection, a.err).Named(nameAudit)), nil
	}
	for _, rights := range a.groups {
		findings = append(findings, judgeGroups(rights, protection).Named(nameOfGroups(rights.Namespace)).
			About(finding.Object{APIVersion: "v1", Kind: "Namespace", Name: rights.Namespace}))
	}
	return findings, a.err
}

// Barred returns the checks that may not run, each with the name of the finding for
// which it may not.
func (a Audit) Barred() map[string]string {
	unguarded := map[string]bool{} // namespaces
	for _, rights := range a.groups {
		unguarded[rights.Namespace] = len(rights.Unguarded) > 0
	}
	checks := map[string]string{}
	for _, account := range a.accounts {
		cause := ""
		switch {
		case unguarded[account.Namespace]:
			cause = nameOfGroups(account.Namespace)
		case len(a.unguardedBy(account)) > 0:
			cause = nameOf(account)
		}
		for _, check := range account.Checks {
			if cause != "" {
				checks[check] = cause
			}
		}
	}
	return checks
}

// unguardedBy are the permissions of an account that the guard cannot deny, by its roles.
func (a Audit) unguardedBy(account accountcopy.Account) []access.Request {
	return rights.Unguarded(rights.Writing(account.Rules), a.aggregated)
}

func notAudited(format string, args ...any) finding.Finding {
	return finding.Warn(reasonNotAudited, format, args...).
		Remedy("Run the preflight as a user with the permissions that the message names.").Do(finding.Roles())
}

// judgeAccount is the finding about a temporary account, by the rules of its roles.
func (a Audit) judgeAccount(account accountcopy.Account, protection string) finding.Finding {
	writes, unguarded := rights.Writing(account.Rules), a.unguardedBy(account)
	secrets := account.SecretReads()
	switch {
	case account.Unread != nil && account.Copied:
		return notAudited("%s, which has no permissions: unknown which those of the original are: %v", subjectOf(account), account.Unread)
	case account.Unread != nil:
		return notAudited("%s, whose roles could not all be read; %s: %v", subjectOf(account), protection, account.Unread)
	case len(unguarded) > 0:
		return unguardedAccess(subjectOf(account), nameOf(account), unguarded).
			Remedy("Remove this access from the ClusterRoles view and cluster-reader. To run %s all the same, accept the finding.", words.List(account.Checks, 5)).
			Do(finding.Run("oc get clusterroles view cluster-reader -o yaml"), finding.Accept(nameOf(account)))
	case len(writes) > 0:
		return finding.Warn(reasonMayWrite, "%s, which may %s; %s", subjectOf(account), access.Summarize(writes, 5), protection).
			Remedy("Remove this access from the ClusterRoles view and cluster-reader.").
			Do(finding.Run("oc get clusterroles view cluster-reader -o yaml"))
	case len(secrets) > 0:
		return readsSecrets(subjectOf(account)+", which", secrets).
			Remedy("Ask the owners of %s to name the Secrets in resourceNames of the role, and delete unused Secrets with tokens.", words.List(account.Checks, 5))
	case account.Copied:
		return finding.Pass(gap.Proven("the roles of the account"), reasonReadOnly, "%s with its read access%s", subjectOf(account), without(account.Omitted))
	}
	return finding.Pass(gap.Proven("the roles of the account"), reasonReadOnly, "%s; the roles of the release allow it to %s", subjectOf(account), describeRules(account.Rules))
}

// without is a clause about what a copy lacks.
func without(omitted []string) string {
	if len(omitted) == 0 {
		return ""
	}
	return ", without " + words.Clauses(omitted, 5)
}

// tokensUnguarded is the reason why reading Secrets counts as write access.
const tokensUnguarded = "the read-only guard does not apply to the tokens of ServiceAccounts in Secrets"

// readsSecrets is the finding about a subject that only reads, but also Secrets.
func readsSecrets(subject string, secrets []access.Request) finding.Finding {
	return finding.Warn(reasonReadsSecrets, "%s may %s, of any name; %s", subject, access.Summarize(secrets, 5), tokensUnguarded).
		Do(finding.Run("oc get secrets -A --field-selector type=kubernetes.io/service-account-token"))
}

// unguardedAccess is the finding about a subject whose checks may not run.
func unguardedAccess(subject, name string, unguarded []access.Request) finding.Finding {
	return finding.Unknown(reasonUnguardedAccess, "%s may %s, which the read-only guard cannot deny; checks with this access do not run unless %s is accepted",
		subject, access.Summarize(unguarded, 5), name)
}

// judgeGroups is the finding about what every ServiceAccount of a namespace may do.
func judgeGroups(rights rights.GroupRights, protection string) finding.Finding {
	subject := fmt.Sprintf("every ServiceAccount of namespace %s", rights.Namespace)
	name := nameOfGroups(rights.Namespace)
	bindings := finding.Run("oc get clusterrolebindings,rolebindings -A -o wide | grep -E 'system:(authenticated|serviceaccounts)'")
	switch {
	case len(rights.Unguarded) > 0:
		return unguardedAccess(subject, name, rights.Unguarded).
			Remedy("Remove the binding for the group. To run the checks of the namespace all the same, accept the finding.").
			Do(bindings, finding.Accept(name))
	case len(rights.Writes) > 0:
		if len(rights.Secrets) > 0 {
			protection += "; it may also " + access.Summarize(rights.Secrets, 5) + ", and " + tokensUnguarded
		}
		return finding.Warn(reasonMayWrite, "%s may %s; %s", subject, access.Summarize(rights.Writes, 5), protection).
			Remedy("Remove the binding for the group.").Do(bindings)
	case len(rights.Secrets) > 0:
		return readsSecrets(subject, rights.Secrets).Remedy("Remove the binding for the group, and delete unused Secrets with tokens.").Do(bindings)
	case len(rights.Unserved) > 0:
		return finding.Warn(reasonPartlyAudited, "%s has no write access to the APIs that could be reviewed; unknown for %s, which the API server does not serve now; %s",
			subject, strings.Join(rights.Unserved, ", "), protection).
			Remedy("Check the aggregated APIs.").Do(finding.Run("oc get apiservices"))
	}
	return finding.Pass(gap.Proven("the bindings of the groups"), reasonReadOnly, "the groups of the ServiceAccounts of namespace %s have no write access (%s)", rights.Namespace, words.Count(rights.Roles, "role"))
}

// NotRun is the finding of a check that may not run because of another finding.
func NotRun(check, cause string) finding.Finding {
	return finding.Unknown(reasonUnguardedAccess, "not run: the read-only guard cannot deny all write access of its ServiceAccount, see %s", cause).
		Named(check).
		Remedy("Remove the access that %s names. To run the check all the same, accept %s.", cause, cause).
		Do(finding.Accept(cause))
}

func aboutAccount(account accountcopy.Account, f finding.Finding) finding.Finding {
	return f.Named(nameOf(account)).
		About(finding.Object{APIVersion: "v1", Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name})
}

// nameOf is the name of the finding about an account.
func nameOf(account accountcopy.Account) string {
	return nameAudit + "-" + account.Namespace + "." + account.Author
}

// nameOfGroups is the name of the finding about all ServiceAccounts of a namespace.
func nameOfGroups(namespace string) string { return nameAudit + "-" + namespace }

// subjectOf is the beginning of a sentence about an account.
func subjectOf(account accountcopy.Account) string {
	kind := "ServiceAccount of the release"
	if account.Copied {
		kind = "ServiceAccount"
	}
	return fmt.Sprintf("%s is a temporary copy of %s %s/%s", account.Name, kind, account.Namespace, account.Author)
}

// describeRules names the first few of some rules.
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
