package deadlock

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameAdmissionPolicies = finding.NewName("AdmissionPolicies",
		"The check for ValidatingAdmissionPolicies that deny a request which every update makes (see the check Webhooks): "+
			"a finding PolicyBinding-<binding> for each binding. A denial by the validations is only warned of, and "+
			"only where they depend on the attributes of a request, or the name and labels of its object: a policy on "+
			"anything else, as those of OpenShift and Kubernetes are, is not judged. Parameters are not read, which "+
			"may be of any kind and in any namespace: a missing one, which denies everything where "+
			"parameterNotFoundAction is Deny, is not found.")

	namePolicyBinding = finding.NewName("PolicyBinding",
		"A finding of the check AdmissionPolicies about a binding whose policy may deny a request of the update: "+
			"PolicyBinding-<binding>.")

	reasonPolicyDenies = finding.NewReason("PolicyDenies", finding.Explanation{
		Meaning: "Reported when a ValidatingAdmissionPolicy denies a request like those of an update. Only validations on " +
			"the attributes of a request, and the name and labels of its object, are evaluated.",
		Cause:  "A validation is false for the request, and the binding has the action Deny.",
		Remedy: "Exclude the namespaces of the cluster in the binding: `oc edit validatingadmissionpolicybinding NAME`.",
	})
)

// Policies is the check AdmissionPolicies.
func Policies() check.Check {
	return check.Check{
		Name: nameAdmissionPolicies, Kind: finding.SourceHealth,
		Reads: slices.Concat(readsRequests(), []access.Request{
			check.List(admissionregistrationv1.GroupName, "validatingadmissionpolicies"),
			check.List(admissionregistrationv1.GroupName, "validatingadmissionpolicybindings"),
		}),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			bindings, err := boundPolicies(ctx, s.Cluster)
			if apierrors.IsNotFound(err) { // before Kubernetes 1.30
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected, "the cluster has no ValidatingAdmissionPolicies")}, nil
			}
			if err != nil {
				return nil, err
			}
			if len(bindings) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected, "no ValidatingAdmissionPolicy is bound")}, nil
			}
			requests, err := requestsOf(ctx, s.Cluster)
			if err != nil {
				return nil, err
			}
			return judgePolicies(ctx, requests, bindings)
		},
	}
}

type boundPolicy struct {
	policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// boundPolicies are the bindings of policies that exist, sorted by name.
func boundPolicies(ctx context.Context, cluster *snapshot.Cluster) ([]boundPolicy, error) {
	version := admissionregistrationv1.SchemeGroupVersion
	policies, err := snapshot.List[admissionregistrationv1.ValidatingAdmissionPolicy](ctx, cluster, version.WithResource("validatingadmissionpolicies"))
	if err != nil {
		return nil, fmt.Errorf("could not list the ValidatingAdmissionPolicies: %w", err)
	}
	bindings, err := snapshot.List[admissionregistrationv1.ValidatingAdmissionPolicyBinding](ctx, cluster, version.WithResource("validatingadmissionpolicybindings"))
	if err != nil {
		return nil, fmt.Errorf("could not list the ValidatingAdmissionPolicyBindings: %w", err)
	}
	byName := make(map[string]*admissionregistrationv1.ValidatingAdmissionPolicy, len(policies))
	for i := range policies {
		byName[policies[i].Name] = &policies[i]
	}
	var bound []boundPolicy
	for i := range bindings {
		if policy, ok := byName[bindings[i].Spec.PolicyName]; ok {
			bound = append(bound, boundPolicy{policy, &bindings[i]})
		}
	}
	return bound, nil
}

func judgePolicies(ctx context.Context, requests *updateRequests, bindings []boundPolicy) ([]finding.Finding, error) {
	var drafts []finding.Draft
	for _, bound := range bindings {
		denied, ok, err := bound.denies(ctx, requests)
		if err != nil {
			return finding.Bounded(drafts), err
		}
		if ok {
			drafts = append(drafts, finding.Draft{Outcome: preflight.Warn, Describe: func() finding.Finding { return bound.describeDenial(denied) }})
		}
	}
	if len(drafts) == 0 {
		drafts = finding.Drafts(finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected,
			"none of %d ValidatingAdmissionPolicyBindings is expected to deny a request of the update, as far as metadata decides", len(bindings)))
	}
	return finding.Bounded(drafts), ctx.Err()
}

// each calls do for the requests that the policy with these match conditions and the
// binding match, until it returns false.
func (b boundPolicy) each(ctx context.Context, requests *updateRequests, conditions []admissionregistrationv1.MatchCondition, do func(admission.Request) bool) error {
	policy, err := admission.Resources(b.policy.Spec.MatchConstraints, conditions)
	if err != nil {
		return fmt.Errorf("a selector of ValidatingAdmissionPolicy %q is invalid: %w", b.policy.Name, err)
	}
	binding, err := admission.Resources(b.binding.Spec.MatchResources, nil)
	if err != nil {
		return fmt.Errorf("a selector of ValidatingAdmissionPolicyBinding %q is invalid: %w", b.binding.Name, err)
	}
	for _, group := range requests.groups {
		if !requests.matcher.Concerns(policy, group) || !requests.matcher.Concerns(binding, group) {
			continue
		}
		for _, request := range group {
			matched := requests.matcher.Match(ctx, binding, request) == admission.Matched && requests.matcher.Match(ctx, policy, request) == admission.Matched
			if ctx.Err() != nil || matched && !do(request) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// denies returns a request for which a validation is false.
func (b boundPolicy) denies(ctx context.Context, requests *updateRequests) (request admission.Request, denied bool, err error) {
	validations := admission.Validations(b.policy)
	if validations == nil || !slices.Contains(b.binding.Spec.ValidationActions, admissionregistrationv1.Deny) {
		return request, false, nil
	}
	err = b.each(ctx, requests, b.policy.Spec.MatchConditions, func(matched admission.Request) bool {
		if requests.matcher.Match(ctx, validations, matched) == admission.Excluded {
			request, denied = matched, true
		}
		return !denied
	})
	return request, denied, err
}

func (b boundPolicy) describeDenial(request admission.Request) finding.Finding {
	return b.finding(preflight.Warn, reasonPolicyDenies, fmt.Sprintf(
		"%s denies requests like one that the update makes, by a validation of ValidatingAdmissionPolicy %q: %s", check.Describe(b.object()), b.policy.Name, request.Action),
		"Exclude the namespaces of the cluster in matchResources of the binding.")
}

func (b boundPolicy) finding(outcome preflight.Outcome, reason finding.Reason, message, remedy string) finding.Finding {
	return finding.New(outcome, reason, "%s", message).
		Named(finding.NameOf(namePolicyBinding, b.binding.Name)).
		Remedy("%s", remedy).
		Do(finding.Read("oc get validatingadmissionpolicybinding %s -o yaml", b.binding.Name),
			finding.Read("oc get validatingadmissionpolicy %s -o yaml", b.policy.Name)).
		About(b.object(), finding.Object{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy", Name: b.policy.Name})
}

func (b boundPolicy) object() finding.Object {
	return finding.Object{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding", Name: b.binding.Name}
}
