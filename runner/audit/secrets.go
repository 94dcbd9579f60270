package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// maxNamedSecrets bounds the Secrets that a message names. The objects of the finding are all.
const maxNamedSecrets = 20

func readsUnknown(account accountcopy.Account, check string) bool {
	return slices.ContainsFunc(account.Secrets, func(secret accountcopy.ReadSecret) bool {
		return secret.Type != nil && slices.Contains(secret.Checks, check)
	})
}

// withSecrets is a finding about the roles of an account, with the Secrets that its checks read. What these have is never
// proven, so the finding is no pass.
func withSecrets(account accountcopy.Account, roles finding.Finding) finding.Finding {
	if len(account.Secrets) == 0 {
		return roles
	}
	text := fmt.Sprintf("its checks read %s; %s", describeSecrets(account.Secrets), tokensUnguarded)
	unknown := slices.ContainsFunc(account.Checks, func(check string) bool { return readsUnknown(account, check) })
	switch {
	case unknown:
		return unknownSecret(account, roles, text)
	case roles.Outcome != preflight.Pass:
		return roles.Noted("Besides, %s.", text)
	}
	return finding.Warn(reasonReadsSecrets, "%s; %s", subjectOf(account), text).
		Remedy("Find out what these Secrets are used for, and ask the owners of %s not to read credentials of users "+
			"with write access.",
			words.List(account.Checks, 5))
}

// unknownSecret is the finding about an account whose checks read a Secret of unknown type, with what else was found.
func unknownSecret(account accountcopy.Account, roles finding.Finding, text string) finding.Finding {
	name := nameOf(account)
	f := finding.Unknown(reasonUnknownSecret, "%s; %s; checks that read objects which the user may not read do not "+
		"run unless %s is accepted",
		subjectOf(account), text, name).
		Remedy("Run the preflight as a user who may get and list these objects: print a role. To run the checks "+
			"anyway, accept the finding.").
		Do(finding.Roles(), finding.Accept(name))
	if roles.Outcome == preflight.Pass {
		return f
	}
	return f.Noted("Besides, %s", roles.Message)
}

func describeSecrets(secrets []accountcopy.ReadSecret) string {
	texts := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		known := "without a known credential"
		switch {
		case secret.Type != nil && secret.Kind == inventory.SecretKind:
			known = "of unknown type: " + secret.Type.Error()
		case secret.Type != nil, secret.Content != nil:
			known = "of unknown content: " + cmp.Or(secret.Content, secret.Type).Error()
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", secret.Reference, known))
	}
	return words.List(texts, maxNamedSecrets)
}

// Changed returns the findings that replace the audit's findings about accounts whose checks read a Secret that
// launch.Launcher.ChangedSecrets describes.
func Changed(plan jobplan.Plan, changes map[inventory.Reference]string) []finding.Finding {
	var findings []finding.Finding
	for _, account := range accountcopy.Of(plan) {
		var texts []string
		for _, secret := range account.Secrets {
			if change := changes[secret.Reference]; change != "" {
				texts = append(texts, fmt.Sprintf("%s %s", secret.Reference, change))
			}
		}
		if len(texts) == 0 {
			continue
		}
		findings = append(findings, aboutAccount(account, finding.Unknown(reasonSecretChanged,
			"unknown whether the checks of this account are read-only, because %s; %s", strings.Join(texts[:min(maxNamedSecrets, len(texts))], "; "),
			tokensUnguarded).
			Remedy("Find the user who changed the Secret in the audit log of the API server, then run the preflight again.").
			Do(finding.Retry("")).From(finding.SourceJob)))
	}
	return findings
}

// aboutAccount names the finding about an account, its ServiceAccount and the Secrets that its checks read.
func aboutAccount(account accountcopy.Account, f finding.Finding) finding.Finding {
	objects := []finding.Object{{APIVersion: "v1", Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}}
	for _, secret := range account.Secrets {
		objects = append(objects, finding.Object{APIVersion: "v1", Kind: secret.Kind, Namespace: secret.Namespace, Name: secret.Name})
	}
	return f.Named(nameOf(account)).About(objects...)
}
