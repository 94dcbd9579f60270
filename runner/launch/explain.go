package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/retry"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Explain makes a finding of an error that kept a check from being started: the
// cause in the API server's own words, and what to do about it. It is always
// Unknown, for nothing was looked at.
func Explain(check Check, err error) finding.Finding {
	reason, remedy := cause(check, err)
	return finding.Finding{Finding: preflight.Finding{
		Name:        check.Name,
		Outcome:     preflight.Unknown,
		Reason:      reason,
		Message:     err.Error(),
		Remediation: remedy,
		Objects:     []preflight.Object{{APIVersion: "batch/v1", Kind: "Job", Namespace: check.Job.Namespace, Name: check.Job.Name}},
	}, Source: finding.SourceJob, Blocks: true, Job: &finding.Job{Namespace: check.Job.Namespace, Name: check.Job.Name}}
}

// cause sorts the errors of the API server. What is refused by admission has
// the status codes of its plugin's choice, so the text must tell.
func cause(check Check, err error) (reason, remedy string) {
	namespace := check.Job.Namespace
	text := err.Error()
	switch {
	case errors.Is(err, context.Canceled):
		return "Interrupted", "Run the preflight again and let it finish."
	case errors.Is(err, context.DeadlineExceeded):
		return "Timeout", "Run the preflight again with a longer --timeout."
	case apierrors.IsNotFound(err) && missingKind(err) == "namespaces":
		return "NamespaceMissing", fmt.Sprintf("The check wants to run in a namespace that this cluster does not have, and a preflight creates none. "+
			"If component %q is new or disabled here, accept the check: --accept %s; else: oc create namespace %s", check.Component, check.Name, namespace)
	case apierrors.IsNotFound(err) && missingKind(err) == "serviceaccounts":
		return "ServiceAccountMissing", fmt.Sprintf("The release expects the ServiceAccount to be in the cluster already. See: oc -n %s get serviceaccounts", namespace)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "NamespaceTerminating", fmt.Sprintf("Wait until the namespace is gone, or see what holds it: oc get namespace %s -o yaml", namespace)
	case strings.Contains(text, "exceeded quota"):
		return "QuotaExceeded", fmt.Sprintf("Make room in the quota, or delete finished Jobs: oc -n %s describe quota", namespace)
	case strings.Contains(text, "denied"):
		return "AdmissionDenied", "See the policy or webhook that the message names: oc get validatingadmissionpolicies,validatingwebhookconfigurations"
	case apierrors.IsForbidden(err) && strings.Contains(text, beyondOwnRights):
		return reasonUngrantable, "Run the preflight as a user who may read what the release's checks read; a role for that: oc preflight auth run --to VERSION"
	case apierrors.IsForbidden(err):
		return "Forbidden", "Run the preflight as a user who may do what the message says: oc auth can-i --list -n " + namespace
	case apierrors.IsUnauthorized(err):
		return "Unauthorized", "Log in again: oc login"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "InvalidManifest", fmt.Sprintf("Report it to the owners of component %q: this cluster does not take %s.", check.Component, check.File)
	case retry.Temporary(err):
		return "APIUnavailable", "See whether the API server is well, then run the preflight again: oc get --raw /readyz?verbose"
	}
	return "NotStarted", "Put right what the message names, then run the preflight again."
}

const (
	// reasonUngrantable is the reason of checks whose roles allow what the user
	// may not do.
	reasonUngrantable = "RightsNotHeld"
	// beyondOwnRights is in what the API server says then (Kubernetes
	// pkg/registry/rbac/validation).
	beyondOwnRights = "attempting to grant RBAC permissions not currently held"
)

// Ungrantable is an error for findings of Validate that say that the user may
// not give checks the rights that the release has for them. It is nil where none
// does.
func Ungrantable(findings []finding.Finding) error {
	var texts []string
	for _, f := range findings {
		if text := fewLines(f.Message); f.Reason == reasonUngrantable && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return fmt.Errorf("you may not give the checks of the release what they need; a role with all of it: oc preflight auth run --to VERSION: %s", strings.Join(texts, "; "))
}

// fewLines is the beginning of a message that has a line for every rule.
func fewLines(text string) string {
	const most = 5
	lines := strings.Split(text, "\n")
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, " ")
}

// missingKind is the resource that a NotFound error is about.
func missingKind(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	details := status.Status().Details
	if details == nil {
		details = &metav1.StatusDetails{}
	}
	return details.Kind
}
