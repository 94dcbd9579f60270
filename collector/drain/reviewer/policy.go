package reviewer

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/drain/eviction"
)

type policy struct {
	binding string
	// since is when the younger of the policy and the binding came.
	since metav1.Time
	// matches are the constraints of the policy and of the binding, which both have to match.
	matches []*admission.Hook
	// validations are those that can be evaluated, each alone; open is true if there are others.
	validations []*admission.Hook
	open        bool
	// general is true if the rules of the policy have evictions among other requests.
	general bool
}

func (r *Reviewers) bind(of *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	own, policyErr := admission.Resources(of.Spec.MatchConstraints, of.Spec.MatchConditions)
	bound, bindingErr := admission.Resources(binding.Spec.MatchResources, nil)
	if policyErr != nil || bindingErr != nil {
		r.unread = fmt.Sprintf("the invalid selectors of ValidatingAdmissionPolicyBinding %q or of its policy", binding.Name)
		return
	}
	added := policy{binding: binding.Name, matches: []*admission.Hook{own, bound}, general: true, since: of.CreationTimestamp}
	if added.since.Before(&binding.CreationTimestamp) {
		added.since = binding.CreationTimestamp
	}
	if of.Spec.MatchConstraints != nil {
		var rules []admissionregistrationv1.RuleWithOperations
		for _, rule := range of.Spec.MatchConstraints.ResourceRules {
			rules = append(rules, rule.RuleWithOperations)
		}
		added.general = general(rules)
	}
	for _, match := range added.matches {
		if !r.matcher.Concerns(match, r.example()) {
			return
		}
	}
	for _, validation := range of.Spec.Validations {
		alone := of.DeepCopy()
		alone.Spec.Validations = []admissionregistrationv1.Validation{validation}
		if hook := admission.Validations(alone); hook != nil {
			added.validations = append(added.validations, hook)
			continue
		}
		added.open = true
	}
	r.policies = append(r.policies, added)
}

// decides is what the policy answers to a request: Evicted to let it pass, Refused or Unknown.
func (p *policy) decides(ctx context.Context, matcher *admission.Matcher, request admission.Request) eviction.Outcome {
	certain := true
	for _, match := range p.matches {
		switch matcher.Match(ctx, match, request) {
		case admission.Excluded:
			return eviction.Evicted
		case admission.Uncertain:
			certain = false
		case admission.Matched:
		}
	}
	open := p.open
	for _, validation := range p.validations {
		switch matcher.Match(ctx, validation, request) {
		case admission.Excluded:
			if certain {
				return eviction.Refused
			}
			open = true
		case admission.Uncertain:
			open = true
		case admission.Matched:
		}
	}
	if open {
		return eviction.Unknown
	}
	return eviction.Evicted
}
