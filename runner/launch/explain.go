package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/alteration"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// The reasons for which the objects of a check were not created.
var (
	reasonNamespaceMissing = finding.NewReason("NamespaceMissing", finding.Explanation{
		Meaning: "The namespace of the check does not exist. A preflight does not create namespaces.",
		Cause:   "The component is new in the target release, or disabled in this cluster.",
		Remedy:  "Accept the finding, or create the namespace: `oc create namespace NAME`.",
	})
	reasonNamespaceTerminating = finding.NewReason("NamespaceTerminating", finding.Explanation{
		Meaning: "The namespace of the check is being deleted.",
		Cause:   "The namespace was deleted, and an object in it has a finalizer.",
		Remedy:  "Wait until the namespace is gone, or find out what delays its deletion: `oc get namespace NAME -o yaml`.",
	})
	ReasonServiceAccountMissing = finding.NewReason("ServiceAccountMissing", finding.Explanation{
		Meaning: "The ServiceAccount of the check does not exist.",
		Cause:   "The release expects the ServiceAccount to exist in the cluster.",
		Remedy:  "Create the ServiceAccount: `oc -n NAMESPACE get serviceaccounts`.",
	})
	ReasonQuotaExceeded = finding.NewReason("QuotaExceeded", finding.Explanation{
		Meaning: "The quota of the namespace does not allow the check.",
		Cause:   "The quota is exhausted.",
		Remedy:  "Increase the quota or delete objects that use it: `oc -n NAMESPACE describe quota`.",
	})
	ReasonQuotaRequires = finding.NewReason("QuotaRequires", finding.Explanation{
		Meaning: "The pod of the check lacks a request or limit that the quota of its namespace requires.",
		Cause: "The quota covers a resource that the containers of the check do not specify, and no LimitRange of " +
			"the namespace sets a default for it.",
		Remedy: "Create a LimitRange with defaults in the namespace, and report it to the owners of the component: `oc -n " +
			"NAMESPACE describe quota`.",
	})
	reasonAccountNotCopied = finding.NewReason("AccountNotCopied", finding.Explanation{
		Meaning: "No temporary copy of the ServiceAccount of the check can be created. A check never runs as an " +
			"existing ServiceAccount, because that account may have write access.",
		Cause: "The user may not create roles, or lacks read access that the ServiceAccount has: Kubernetes does not " +
			"let users grant permissions that they do not have. Or the ServiceAccount has too many rules.",
		Remedy: "Run the preflight as a user with the permissions that the message names, or accept the finding.",
	})
	ReasonAdmissionDenied = finding.NewReason("AdmissionDenied", finding.Explanation{
		Meaning: "An admission policy or webhook rejects the check.",
		Cause:   "The message names the policy or webhook.",
		Remedy:  "Check it: `oc get validatingadmissionpolicies,validatingwebhookconfigurations`.",
	})
	reasonRightsNotHeld = finding.NewReason("RightsNotHeld", finding.Explanation{
		Meaning: "The roles of the check grant permissions that the user of the preflight does not have.",
		Cause:   "Kubernetes does not let users grant permissions that they do not have.",
		Remedy:  "Run the preflight as a user with these permissions; \"auth\" prints a role.",
	})
	reasonInvalidManifest = finding.NewReason("InvalidManifest", finding.Explanation{
		Meaning: "The API server rejects the manifest of the check.",
		Cause:   "The manifest is invalid, or uses an API that this cluster does not have.",
		Remedy:  "Report it to the owners of the component.",
	})
	reasonAPIUnavailable = finding.NewReason("APIUnavailable", finding.Explanation{
		Meaning: "The check was not started because the API server did not respond.",
		Cause:   "The API server is down, restarting or overloaded.",
		Remedy:  "Check it with `oc get --raw '/readyz?verbose'`, then run the preflight again.",
	})
	ReasonNotStarted = finding.NewReason("NotStarted", finding.Explanation{
		Meaning: "The Job of the check was not created.",
		Cause: "The API server returned the error in the message, or other checks did not finish before the " +
			"deadline of the run.",
		Remedy: "Fix the problem in the message, or raise the timeout or the parallelism, then run the preflight again.",
	})
)

// Explain returns the finding for an error that kept a check from being started: the
// error and the remedy. It is a Fail for a Secret that violates the policy, and
// Unknown for an error of the API server.
func Explain(check jobplan.Check, err error) finding.Finding {
	f := classify(check, err).Named(check.Name).From(finding.SourceJob).
		About(finding.Object{APIVersion: "batch/v1", Kind: "Job", Namespace: check.Job.Namespace, Name: check.Job.Name})
	f.Job = &finding.Job{Namespace: check.Job.Namespace, Name: check.Job.Name}
	return f
}

// classify returns the finding for an error of the API server. Admission plugins
// choose their own status codes, so some are recognized by their text.
func classify(check jobplan.Check, err error) finding.Finding {
	namespace := check.Job.Namespace
	text := err.Error()
	unknown := func(reason finding.Reason) finding.Finding { return finding.Unknown(reason, "%s", text) }
	if violating, ok := errors.AsType[*credentialError](err); ok {
		return finding.Fail(reasonRefusedTokenSecret, "%s", violating.Error()).
			Remedy("Report it to the owners of component %q, who must fix the release. To update without this check, "+
				"accept the finding.",
				check.Component).
			Do(finding.Accept(check.Name))
	}
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		return foreign.finding(text)
	}
	if _, ok := errors.AsType[*alteredError](err); ok {
		return unknown(alteration.ReasonAlteredByAdmission).
			Remedy("Exempt objects with the label %s from the webhook or policy that changes them.", label.Run).
			Do(finding.Read("oc get mutatingwebhookconfigurations,mutatingadmissionpolicies"))
	}
	if violating, ok := errors.AsType[*accountcopy.Error](err); ok {
		return unknown(reasonAccountNotCopied).
			Remedy("Run the preflight as a user with the permissions that the message names, or give the check a ServiceAccount of the "+
				"release. To update without this check, accept the finding.").
			Do(finding.Roles(), finding.Read("oc auth can-i --list --as %s",
				rights.User(types.NamespacedName{Namespace: namespace, Name: violating.Account.Name})), finding.Accept(check.Name))
	}
	if violating, ok := errors.AsType[*unspecifiedError](err); ok {
		return QuotaRequires(check, violating.Error())
	}
	switch {
	case errors.Is(err, context.Canceled):
		return unknown(collector.ReasonInterrupted).Do(finding.Retry(""))
	case errors.Is(err, context.DeadlineExceeded):
		return finding.Unknown(collector.ReasonTimeout, "%s; the API server did not answer before, which can be "+
			"caused by slow admission webhooks", text).
			Remedy("Check whether an admission webhook delays requests, or run the preflight again with a longer timeout.").
			Do(finding.Read("oc get mutatingwebhookconfigurations,validatingwebhookconfigurations"), finding.Retry(finding.OptionTimeout))
	case apierrors.IsNotFound(err) && missingKind(err) == "namespaces":
		return unknown(reasonNamespaceMissing).
			Remedy("If component %q is new in the target release or disabled in this cluster, accept the finding. "+
				"Otherwise create namespace %s, which a preflight does not do.", check.Component, namespace).
			Do(finding.Accept(check.Name), finding.Change("oc create namespace %s", namespace))
	case apierrors.IsNotFound(err) && missingKind(err) == "serviceaccounts":
		return unknown(ReasonServiceAccountMissing).
			Remedy("Create the ServiceAccount, which the release expects to exist in namespace %s.", namespace).
			Do(finding.Read("oc -n %s get serviceaccounts", namespace))
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return unknown(reasonNamespaceTerminating).
			Remedy("Wait until the namespace is gone, or find out what delays its deletion.").
			Do(finding.Read("oc get namespace %s -o yaml", namespace))
	case strings.Contains(text, "exceeded quota"):
		return QuotaExceeded(check, text)
	case strings.Contains(text, "denied"):
		return unknown(ReasonAdmissionDenied).Remedy("Check the policy or webhook in the message.").
			Do(finding.Read("oc get validatingadmissionpolicies,validatingwebhookconfigurations"))
	}
	return classifyStatus(check, err)
}

func classifyStatus(check jobplan.Check, err error) finding.Finding {
	text := err.Error()
	unknown := func(reason finding.Reason) finding.Finding { return finding.Unknown(reason, "%s", text) }
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(text, escalationDenied):
		return unknown(reasonRightsNotHeld).
			Remedy("Run the preflight as a user with the permissions that the checks of the release need.").
			Do(finding.Roles())
	case apierrors.IsForbidden(err):
		return unknown(collector.ReasonForbidden).Remedy("Run the preflight as a user with the permission that the message names.").
			Do(finding.Roles(), finding.Read("oc auth can-i --list -n %s", check.Job.Namespace))
	case apierrors.IsUnauthorized(err):
		return unknown(collector.ReasonUnauthorized).Do(finding.OnThisMachine("oc login"))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return unknown(reasonInvalidManifest).
			Remedy("Report it to the owners of component %q: the API server of this cluster rejects %s.", check.Component, check.File)
	case retry.Temporary(err):
		return unknown(reasonAPIUnavailable).Remedy("Check the API server, then run the preflight again.").
			Do(finding.Read("oc get --raw /readyz?verbose"), finding.Retry(""))
	}
	return unknown(ReasonNotStarted).Remedy("Fix the problem in the message, then run the preflight again.").Do(finding.Retry(""))
}

// escalationDenied is part of the API server's error for an RBAC escalation
// (Kubernetes pkg/registry/rbac/validation).
const escalationDenied = "attempting to grant RBAC permissions not currently held"

// maxErrorLines bounds the lines of an error that has a line for each rule.
const maxErrorLines = 5

// EscalationError means that the user may not grant the checks of a release their permissions.
type EscalationError struct {
	// Denied are the distinct errors of the API server, shortened.
	Denied []string
}

// Remedy returns the next step, with its commands.
func (e *EscalationError) Remedy() (sentence string, commands []finding.Action) {
	return "Print a role with these permissions", []finding.Action{finding.Read("oc preflight auth run")}
}

func (e *EscalationError) Error() string {
	return "the user may not grant the checks of the release their permissions: " + strings.Join(e.Denied, "; ")
}

// Ungrantable returns an [EscalationError] with the findings of Validate that have
// [ReasonRightsNotHeld]; nil if none has.
func Ungrantable(findings []finding.Finding) error {
	var texts []string
	for _, f := range findings {
		if text := words.FirstLines(f.Message, maxErrorLines); f.Reason == reasonRightsNotHeld.String() && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return &EscalationError{Denied: texts}
}

// missingKind is the resource of a NotFound error; empty for others.
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

// maxQuotas bounds the quotas and the limit ranges that are read of a namespace. A
// namespace with more is left to the API server.
const maxQuotas = 100

// QuotaRequires is the finding about a check whose pod does not specify resources that a quota requires; the message
// names them.
func QuotaRequires(check jobplan.Check, message string) finding.Finding {
	return finding.Unknown(ReasonQuotaRequires, "%s", message).
		Remedy("Create a LimitRange with defaults in namespace %s: its quota rejects pods that do not specify the "+
			"resources in the message. Report it to the owners of component %q.", check.Job.Namespace, check.Component).
		Do(finding.Read("oc -n %s describe quota", check.Job.Namespace))
}

// QuotaExceeded is the finding about a check whose Job or pod exceeds a quota; the message has which.
func QuotaExceeded(check jobplan.Check, message string) finding.Finding {
	return finding.Unknown(ReasonQuotaExceeded, "%s", message).
		Remedy("Increase the quota of namespace %s, or delete objects that use it.", check.Job.Namespace).
		Do(finding.Read("oc -n %s describe quota", check.Job.Namespace))
}

// unspecifiedError means that a pod does not specify what a quota requires.
type unspecifiedError struct{ namespace, text string }

func (e *unspecifiedError) Error() string {
	return fmt.Sprintf("the quota of namespace %s rejects the pod: %s; no LimitRange of the namespace sets the "+
		"defaults", e.namespace, e.text)
}

// quotas has the quotas of the namespaces in which Jobs are created.
type quotas struct {
	namespaces map[string]namespaceQuotas
	// altered is true if admission may add requests and limits to pods, other than by a LimitRange.
	altered bool
}

// quotasOf reads the quotas of the namespaces of the plan's Jobs, but not for Jobs that
// exist already. What cannot be read does not count.
func quotasOf(ctx context.Context, objects *inventory.Objects, plan jobplan.Plan) quotas {
	var names []string
	for _, check := range plan.Checks {
		if k, err := inventory.KindOf(check.Job); err == nil && !objects.IsPresent(k, check.Job) && !slices.Contains(names, check.Job.Namespace) {
			names = append(names, check.Job.Namespace)
		}
	}
	found := make([]namespaceQuotas, len(names))
	var requests []func() error
	for i, name := range names {
		requests = append(requests, func() (err error) {
			found[i], err = readQuotas(ctx, objects.Kubernetes.CoreV1(), name)
			return err
		})
	}
	q := quotas{namespaces: map[string]namespaceQuotas{}}
	for i, err := range inventory.Concurrently(requests) {
		if err == nil {
			q.namespaces[names[i]] = found[i]
		}
	}
	q.altered = slices.ContainsFunc(plan.Checks, func(check jobplan.Check) bool { return q.unspecified(check) != nil }) &&
		altersPods(ctx, objects.Kubernetes.AdmissionregistrationV1())
	return q
}

// readQuotas reads the quotas and the limit ranges of a namespace.
func readQuotas(ctx context.Context, client corev1client.CoreV1Interface, namespace string) (namespaceQuotas, error) {
	options := metav1.ListOptions{Limit: maxQuotas}
	limited, err := client.ResourceQuotas(namespace).List(ctx, options)
	if err != nil {
		return namespaceQuotas{}, err
	}
	ranges, err := client.LimitRanges(namespace).List(ctx, options)
	switch {
	case err != nil:
		return namespaceQuotas{}, err
	case limited.Continue != "" || ranges.Continue != "":
		return namespaceQuotas{}, fmt.Errorf("namespace %s has more than %d quotas or limit ranges", namespace, maxQuotas)
	}
	return namespaceQuotas{quotas: limited.Items, limitRanges: ranges.Items}, nil
}

// unspecified is an error for a check whose pod no waiting makes acceptable.
func (q quotas) unspecified(check jobplan.Check) error {
	if q.altered {
		return nil
	}
	text := q.namespaces[check.Job.Namespace].unspecified(check.Job.Spec.Template.Spec)
	if text == "" {
		return nil
	}
	return &unspecifiedError{namespace: check.Job.Namespace, text: text}
}

// exceeded describes the quotas that a check waits for: others may free them, so the Job is created all the same.
func (q quotas) exceeded(check jobplan.Check) string {
	return q.namespaces[check.Job.Namespace].exceeded(check.Job.Spec.Template.Spec)
}

// altersPods is true if a mutating webhook or policy may receive the creation of pods, in
// any namespace, or if they cannot be read. An API that does not exist has none.
func altersPods(ctx context.Context, client admissionclient.AdmissionregistrationV1Interface) bool {
	webhooks, err := client.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return true
	}
	for _, configuration := range webhooks.Items {
		receives := func(webhook admissionregistrationv1.MutatingWebhook) bool {
			return slices.ContainsFunc(webhook.Rules, createsPods)
		}
		if slices.ContainsFunc(configuration.Webhooks, receives) {
			return true
		}
	}
	policies, err := client.MutatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	for _, policy := range policies.Items {
		constraints := policy.Spec.MatchConstraints
		if constraints == nil {
			return true
		}
		for _, rule := range constraints.ResourceRules {
			if createsPods(rule.RuleWithOperations) {
				return true
			}
		}
	}
	return false
}

func createsPods(rule admissionregistrationv1.RuleWithOperations) bool {
	includes := func(values []string, accepted ...string) bool {
		return slices.ContainsFunc(values, func(value string) bool { return slices.Contains(accepted, value) })
	}
	creates := slices.Contains(rule.Operations, admissionregistrationv1.Create) ||
		slices.Contains(rule.Operations, admissionregistrationv1.OperationAll)
	return creates && includes(rule.APIGroups, "", "*") && includes(rule.Resources, "pods", "*", "*/*")
}
