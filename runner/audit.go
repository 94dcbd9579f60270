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

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

const ReasonNotAudited finding.Reason = "NotAudited"

// auditName is the name of the audit, and what the names of its findings begin
// with.
const auditName = "ReadOnlyAccess"

// audit is a Source: what may the identities of the checks do? Of a copy that
// goes with the run the plan knows it, of any other account the API server is
// asked. What an account may write is a warning and does not block: the guard,
// and not the account, keeps checks from writing.
type audit struct {
	accounts []launch.Account
	// rights has those of the accounts that the plan does not know, in order, once
	// the API server has told them.
	rights <-chan auditAnswer
	// guarded is true when the guard denies what an account may write.
	guarded bool
}

// auditAnswer is what the API server said of accounts.
type auditAnswer struct {
	rights []access.Rights
	err    error
}

// beginAudit has the API server asked at once: those are hundreds of questions
// for each account, and while the guard comes into force there is nothing else to
// do. As soon as the checks start they need the machine for themselves.
func beginAudit(ctx context.Context, client kubernetes.Interface, accounts []launch.Account) audit {
	var asked []types.NamespacedName
	for _, account := range accounts {
		if !account.Known {
			asked = append(asked, types.NamespacedName{Namespace: account.Namespace, Name: account.Name})
		}
	}
	rights := make(chan auditAnswer, 1)
	go func() {
		found, err := access.Writes(ctx, client, asked)
		rights <- auditAnswer{rights: found, err: err}
	}()
	return audit{accounts: accounts, rights: rights}
}

// Collect implements collector.Source.
func (a audit) Collect(ctx context.Context) ([]finding.Finding, error) {
	var findings []finding.Finding
	var unknown []launch.Account
	for _, account := range a.accounts {
		if account.Known {
			findings = append(findings, known(account))
			continue
		}
		unknown = append(unknown, account)
	}
	var answer auditAnswer
	select {
	case answer = <-a.rights:
	case <-ctx.Done():
		answer.err = ctx.Err()
	}
	rights, err := answer.rights, answer.err
	if apierrors.IsForbidden(err) {
		return append(findings, finding.Warn(ReasonNotAudited,
			"nobody could ask what the checks' accounts may change, and %s: %s", a.guard("what they do"), err.Error()).
			Named(auditName).
			Remedy("Run the preflight as a user who may do what the message names; a role for that: oc preflight auth run")), nil
	}
	if err != nil {
		return findings, err
	}
	for i, account := range unknown {
		findings = append(findings, a.judge(account, rights[i]))
	}
	return findings, nil
}

// known is about an account whose rights are all in the release.
func known(account launch.Account) finding.Finding {
	f := about(account)
	f.Outcome, f.Reason = preflight.Pass, "ReadOnly"
	f.Message = fmt.Sprintf("%s is a copy for this run, which by the roles of the release may %s", subject(account), describeRules(account.Rules))
	return f
}

// judge is about an account that the API server was asked about.
func (a audit) judge(account launch.Account, rights access.Rights) finding.Finding {
	f := about(account)
	switch {
	case len(rights.Writes) > 0:
		f.Outcome, f.Reason = preflight.Warn, "MayWrite"
		f.Message = fmt.Sprintf("%s may %s; %s", subject(account), access.Summarize(rights.Writes, 5), a.guard("that"))
		f.Remediation = fmt.Sprintf("Ask the owners of %s for an account that only reads. See all of it: oc auth can-i --list -n %s --as %s",
			strings.Join(account.Checks, ", "), account.Namespace, access.User(rights.Account))
	case len(rights.Unserved) > 0:
		f.Outcome, f.Reason = preflight.Warn, "PartlyAudited"
		f.Message = fmt.Sprintf("%s may change nothing that could be asked about, but nobody could ask about %s, which the API server does not serve now; %s",
			subject(account), strings.Join(rights.Unserved, ", "), a.guard("that"))
		f.Remediation = "See what is the matter with them: oc get apiservices"
	default:
		f.Outcome, f.Reason = preflight.Pass, "ReadOnly"
		f.Message = fmt.Sprintf("%s may change nothing, says the API server to %d questions", subject(account), rights.Asked)
	}
	return f
}

// guard says who denies something.
func (a audit) guard(what string) string {
	if a.guarded {
		return "the read-only guard of the run denies " + what + " to the checks' pods if it writes"
	}
	return "the read-only guard, which would deny it, is not in place"
}

func about(account launch.Account) finding.Finding {
	return finding.Finding{Finding: preflight.Finding{
		Name:    auditName + "-" + account.Namespace + "." + account.Author,
		Objects: []preflight.Object{{APIVersion: "v1", Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
	}}
}

func subject(account launch.Account) string {
	return fmt.Sprintf("ServiceAccount %s/%s", account.Namespace, account.Author)
}

// describeRules says the first few of some rules.
func describeRules(rules []rbacv1.PolicyRule) string {
	const most = 3
	var texts []string
	for _, rule := range rules {
		texts = append(texts, strings.Join(rule.Verbs, ", ")+" "+shorten(slices.Concat(rule.Resources, rule.NonResourceURLs)))
	}
	switch {
	case len(texts) == 0:
		return "do nothing that not everybody may"
	case len(texts) > most:
		return strings.Join(texts[:most], "; ") + fmt.Sprintf("; and by %d rules more", len(texts)-most)
	}
	return strings.Join(texts, "; ")
}

func shorten(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
