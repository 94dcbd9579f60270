package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

// nameAudit names the findings about the write access of the ServiceAccounts of
// checks, each with the ServiceAccount appended.
const nameAudit = "ReadOnlyAccess"

// reasonReadOnly is reported for a ServiceAccount of checks that has no write
// access.
//
// Cause: its roles only read.
//
// Remedy: none needed.
const reasonReadOnly finding.Reason = "ReadOnly"

// reasonMayWrite is reported for a ServiceAccount of checks that has write
// access. The read-only guard of the run denies such writes.
//
// Cause: a role outside the release is bound to the account.
//
// Remedy: ask the owners of the check for an account that only reads.
const reasonMayWrite finding.Reason = "MayWrite"

// reasonReadsSecrets is reported for a ServiceAccount of checks that may read Secrets
// of any name. A Secret of type kubernetes.io/service-account-token has a token with
// which the check could write as another account: the read-only guard of the run
// applies to the tokens of its pods only.
//
// Cause: a role of the account has get, list or watch of secrets without
// resourceNames.
//
// Remedy: ask the owners of the check to name the Secrets in the role, and delete
// unused Secrets with tokens: `oc get secrets -A --field-selector
// type=kubernetes.io/service-account-token`.
const reasonReadsSecrets finding.Reason = "ReadsSecrets"

// reasonPartlyAudited is reported when the API server could not list some of its
// APIs, so the access to them is unknown.
//
// Cause: an aggregated API server is unavailable.
//
// Remedy: check "oc get apiservices".
const reasonPartlyAudited finding.Reason = "PartlyAudited"

// reasonNotAudited is reported when the access of the checks' accounts could not
// be reviewed.
//
// Cause: the permission to create SubjectAccessReviews or to list RoleBindings is
// missing.
//
// Remedy: bind the roles that "auth run" prints.
const reasonNotAudited finding.Reason = "NotAudited"

// audit finds out what the accounts of the checks may write. Of a temporary copy
// the plan knows it, for any other account the API server is asked. What an
// account may write is a warning: the guard, not the account, keeps checks from
// writing.
type audit struct {
	accounts []launch.Account
	// rights has the result for the accounts that the plan does not know, in order.
	rights <-chan rightsResult
}

type rightsResult struct {
	rights []access.Rights
	// secrets has the requests that read Secrets, in the order of rights.
	secrets [][]access.Request
	err     error
}

// beginAudit starts the access reviews, which are hundreds for each account: until
// the guard is in force there is nothing else to do, and afterwards the checks
// need the API server.
func beginAudit(ctx context.Context, client kubernetes.Interface, accounts []launch.Account) audit {
	var unknown []launch.Account
	for _, account := range accounts {
		if !account.Known {
			unknown = append(unknown, account)
		}
	}
	rights := make(chan rightsResult, 1)
	go func() { rights <- reviewAccounts(ctx, client, unknown) }()
	return audit{accounts: accounts, rights: rights}
}

// reviewAccounts asks the API server what accounts may do.
func reviewAccounts(ctx context.Context, client kubernetes.Interface, accounts []launch.Account) rightsResult {
	var names []types.NamespacedName
	for _, account := range accounts {
		names = append(names, types.NamespacedName{Namespace: account.Namespace, Name: account.Name})
	}
	found, err := access.Writes(ctx, client, names)
	if err != nil {
		return rightsResult{err: err}
	}
	result := rightsResult{rights: found}
	for _, account := range accounts {
		reads, err := launch.ReviewSecretReads(ctx, client.AuthorizationV1(), account)
		if err != nil {
			return rightsResult{err: err}
		}
		result.secrets = append(result.secrets, reads)
	}
	return result
}

// source is the audit as a source, of a run with that guard.
func (a audit) source(guard finding.Finding) collector.Source {
	protection := "the read-only guard, which would deny it, is not in force"
	if guard.Outcome == preflight.Pass {
		protection = "the read-only guard of the run denies it to the checks' pods"
	}
	return collector.Source{Name: nameAudit, Kind: finding.SourceJob, Collect: func(ctx context.Context) ([]finding.Finding, error) {
		return a.findings(ctx, protection)
	}}
}

func (a audit) findings(ctx context.Context, protection string) ([]finding.Finding, error) {
	var findings []finding.Finding
	var reviewed []launch.Account
	for _, account := range a.accounts {
		if account.Known {
			findings = append(findings, aboutAccount(account, judgeCopy(account)))
			continue
		}
		reviewed = append(reviewed, account)
	}
	result := a.wait(ctx)
	if apierrors.IsForbidden(result.err) {
		return append(findings, finding.Warn(reasonNotAudited, "unknown what the accounts of the checks may write; %s: %v", protection, result.err).
			Named(nameAudit).Remedy("Run the preflight as a user with the permissions that the message names.").Do(finding.Roles())), nil
	}
	if result.err != nil {
		return findings, result.err
	}
	for i, account := range reviewed {
		findings = append(findings, aboutAccount(account, judgeRights(account, result.rights[i], result.secrets[i], protection)))
	}
	return findings, nil
}

func (a audit) wait(ctx context.Context) rightsResult {
	select {
	case result := <-a.rights:
		return result
	case <-ctx.Done():
		return rightsResult{err: ctx.Err()}
	}
}

// judgeCopy is the finding about a temporary copy, all of whose permissions are known.
func judgeCopy(account launch.Account) finding.Finding {
	if secrets := account.SecretReads(); len(secrets) > 0 {
		return warnOfSecrets(account, secrets)
	}
	return finding.Pass(reasonReadOnly, "%s is a temporary copy; the roles of the release allow it to %s", subjectOf(account), describeRules(account.Rules))
}

// tokensUnguarded is the reason why reading Secrets counts as write access.
const tokensUnguarded = "the read-only guard does not apply to the tokens of ServiceAccounts in Secrets"

// warnOfSecrets is the finding about an account that only reads, but also Secrets.
func warnOfSecrets(account launch.Account, secrets []access.Request) finding.Finding {
	return finding.Warn(reasonReadsSecrets, "%s may %s, of any name; %s", subjectOf(account), access.Summarize(secrets, 5), tokensUnguarded).
		Remedy("Ask the owners of %s to name the Secrets in resourceNames of the role, and delete unused Secrets with tokens.", words.List(account.Checks, 5)).
		Do(finding.Run("oc get secrets -A --field-selector type=kubernetes.io/service-account-token"))
}

// judgeRights is the finding about an account whose access was reviewed.
func judgeRights(account launch.Account, rights access.Rights, secrets []access.Request, protection string) finding.Finding {
	if len(secrets) > 0 {
		protection += "; it may also " + access.Summarize(secrets, 5) + ", and " + tokensUnguarded
	}
	switch {
	case len(rights.Writes) > 0:
		return finding.Warn(reasonMayWrite, "%s may %s; %s", subjectOf(account), access.Summarize(rights.Writes, 5), protection).
			Remedy("Ask the owners of %s for an account that only reads.", words.List(account.Checks, 5)).
			Do(finding.Run("oc auth can-i --list -n %s --as %s", account.Namespace, access.User(rights.Account)))
	case len(secrets) > 0:
		return warnOfSecrets(account, secrets)
	case len(rights.Unserved) > 0:
		return finding.Warn(reasonPartlyAudited, "%s has no write access to the APIs that could be reviewed; unknown for %s, which the API server does not serve now; %s",
			subjectOf(account), strings.Join(rights.Unserved, ", "), protection).
			Remedy("Check the aggregated APIs.").Do(finding.Run("oc get apiservices"))
	}
	return finding.Pass(reasonReadOnly, "%s has no write access (%d access reviews)", subjectOf(account), rights.Asked)
}

func aboutAccount(account launch.Account, f finding.Finding) finding.Finding {
	return f.Named(nameAudit + "-" + account.Namespace + "." + account.Author).
		About(finding.Object{APIVersion: "v1", Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name})
}

func subjectOf(account launch.Account) string {
	return fmt.Sprintf("ServiceAccount %s/%s", account.Namespace, account.Author)
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
