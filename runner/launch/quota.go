package launch

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/quota"
)

// maxQuotas bounds the quotas and the limit ranges that are read of a namespace. A
// namespace with more is left to the API server.
const maxQuotas = 100

// QuotaRequires is the finding about a check whose pod does not specify what a quota
// requires; the message has what that is.
func QuotaRequires(check jobplan.Check, message string) finding.Finding {
	return finding.Unknown(ReasonQuotaRequires, "%s", message).
		Remedy("Create a LimitRange with defaults in namespace %s: its quota applies only to pods that specify what the message names. Report it to the owners of component %q.", check.Job.Namespace, check.Component).
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
	return fmt.Sprintf("the quota of namespace %s rejects the pod: %s; no LimitRange of the namespace has the defaults", e.namespace, e.text)
}

// quotas has the quotas of the namespaces in which Jobs are created.
type quotas struct {
	namespaces map[string]quota.Namespace
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
	found := make([]quota.Namespace, len(names))
	var requests []func() error
	for i, name := range names {
		requests = append(requests, func() (err error) {
			found[i], err = readQuotas(ctx, objects.Kubernetes.CoreV1(), name)
			return err
		})
	}
	q := quotas{namespaces: map[string]quota.Namespace{}}
	for i, err := range inventory.Concurrently(requests) {
		if err == nil {
			q.namespaces[names[i]] = found[i]
		}
	}
	q.altered = slices.ContainsFunc(plan.Checks, func(check jobplan.Check) bool { return q.unspecified(check) != nil }) && altersPods(ctx, objects.Kubernetes.AdmissionregistrationV1())
	return q
}

// readQuotas reads the quotas and the limit ranges of a namespace.
func readQuotas(ctx context.Context, client corev1client.CoreV1Interface, namespace string) (quota.Namespace, error) {
	options := metav1.ListOptions{Limit: maxQuotas}
	limited, err := client.ResourceQuotas(namespace).List(ctx, options)
	if err != nil {
		return quota.Namespace{}, err
	}
	ranges, err := client.LimitRanges(namespace).List(ctx, options)
	switch {
	case err != nil:
		return quota.Namespace{}, err
	case limited.Continue != "" || ranges.Continue != "":
		return quota.Namespace{}, fmt.Errorf("namespace %s has more than %d quotas or limit ranges", namespace, maxQuotas)
	}
	return quota.Namespace{Quotas: limited.Items, LimitRanges: ranges.Items}, nil
}

// unspecified is an error for a check whose pod no waiting makes acceptable.
func (q quotas) unspecified(check jobplan.Check) error {
	if q.altered {
		return nil
	}
	text := q.namespaces[check.Job.Namespace].Unspecified(check.Job.Spec.Template.Spec)
	if text == "" {
		return nil
	}
	return &unspecifiedError{namespace: check.Job.Namespace, text: text}
}

// exceeded describes the quotas that a check waits for: others may free them, so the Job is created all the same.
func (q quotas) exceeded(check jobplan.Check) string {
	return q.namespaces[check.Job.Namespace].Exceeded(check.Job.Spec.Template.Spec)
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
	creates := slices.Contains(rule.Operations, admissionregistrationv1.Create) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll)
	return creates && includes(rule.APIGroups, "", "*") && includes(rule.Resources, "pods", "*", "*/*")
}
