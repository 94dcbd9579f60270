// Package reviewer answers: which webhooks and policies decide on the eviction of a pod, and on the creation of
// the next one?
//
// [Evictions] and [Creations] prepare them, and [Reviewers.Of] returns their answer. A webhook that must respond
// and cannot rejects the request. The response of a working webhook is unknown, unless package owner knows its
// operator. A webhook that receives evictions by a wildcard among all other requests, as the webhooks of policy
// engines do, is assumed not to decide about them: [Reviewers.General] lists these.
package reviewer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/owner"
)

// Input contains the webhooks and policies that decide about requests, and the objects that they depend on.
type Input struct {
	Validating []admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating   []admissionregistrationv1.MutatingWebhookConfiguration
	Policies   []admissionregistrationv1.ValidatingAdmissionPolicy
	Bindings   []admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// Namespaces are all, with their labels.
	Namespaces []metav1.PartialObjectMetadata
	Services   []corev1.Service
	Endpoints  []discoveryv1.EndpointSlice
	// Unread names the objects that could not be read, for messages; empty if all were read.
	Unread string
	// Listed reports whether all Services and EndpointSlices of a namespace are there; nil for all.
	Listed func(namespace string) bool
}

// Reviewers are the webhooks and policies that receive evictions, or creations of pods. They may not be used
// concurrently.
type Reviewers struct {
	request  func(metav1.ObjectMeta) admission.Request
	creates  bool
	matcher  *admission.Matcher
	webhooks []webhook
	policies []policy
	unread   string
	names    []string
	backends *backend.Backends
	listed   func(namespace string) bool
}

type webhook struct {
	hook  *admission.Hook
	label string
	// state is why it cannot respond; empty if it can.
	state string
	// unlisted is true where the Service was not found, and may respond nevertheless.
	unlisted bool
	// ignored is true if the API server continues without a response.
	ignored bool
	known   bool
	// general is true if its rules have evictions among other requests.
	general bool

	name, backend string
}

// Answer is the response of webhooks and policies to the eviction of a pod.
type Answer struct {
	// Outcome is Evicted where they let it pass, else Refused or Unknown.
	Outcome eviction.Outcome
	// By is the name of the webhook, or of the binding of the policy; empty where something could not be read.
	By string
	// Why is a clause, such as: the response of webhook "a" is unknown. It is empty for Evicted.
	Why string
	// Since is when the youngest policy with an unknown response was created: it has admitted the pods that are
	// younger. It is zero for a webhook, because most webhooks admit existing pods.
	Since metav1.Time
}

// or is the answer of two reviewers that do not refuse.
func (a Answer) or(other Answer) Answer {
	if other.Outcome == eviction.Unknown && (a.Outcome != eviction.Unknown || a.Since.Before(&other.Since)) {
		return other
	}
	return a
}

// Evictions prepares the reviewers of evictions. An object with an invalid selector makes the answer
// for all pods Unknown.
func Evictions(input Input) *Reviewers { return (&Reviewers{request: evictionOf}).with(input) }

// Creations prepares the reviewers of the pods that controllers create. What one that responds answers is
// unknown; it has admitted the pods that exist. An object with an invalid selector makes the answer for all
// pods Unknown.
func Creations(input Input) *Reviewers {
	return (&Reviewers{request: creationOf, creates: true}).with(input)
}

// with adds what decides on the requests.
func (r *Reviewers) with(input Input) *Reviewers {
	*r = Reviewers{
		request: r.request, creates: r.creates,
		matcher: admission.NewMatcher(input.Namespaces), unread: input.Unread, backends: backend.NewBackends(input.Services, input.Endpoints),
		listed: input.Listed,
	}
	for i := range input.Validating {
		for _, each := range input.Validating[i].Webhooks {
			r.add(each, "ValidatingWebhookConfiguration", input.Validating[i].Name)
		}
	}
	for i := range input.Mutating {
		for j := range input.Mutating[i].Webhooks {
			r.add(admission.Mutating(&input.Mutating[i].Webhooks[j]), "MutatingWebhookConfiguration", input.Mutating[i].Name)
		}
	}
	for i := range input.Bindings {
		binding := &input.Bindings[i]
		at := slices.IndexFunc(input.Policies, func(policy admissionregistrationv1.ValidatingAdmissionPolicy) bool {
			return policy.Name == binding.Spec.PolicyName
		})
		if at >= 0 && slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny) {
			r.bind(&input.Policies[at], binding)
		}
	}
	return r
}

// Names are the names of the webhooks that receive evictions and can respond.
func (r *Reviewers) Names() []string { return r.names }

func (r *Reviewers) add(of admissionregistrationv1.ValidatingWebhook, kind, configuration string) {
	added := webhook{
		label: fmt.Sprintf("webhook %q of %s %q", of.Name, kind, configuration), known: !r.creates && owner.Answers(of.Name),
		ignored: of.FailurePolicy != nil && *of.FailurePolicy == admissionregistrationv1.Ignore,
		general: !r.creates && general(of.Rules), name: of.Name, backend: backendOf(of),
	}
	hook, err := admission.Webhook(of)
	if err != nil {
		r.unread = "the invalid selectors of " + added.label
		return
	}
	if !r.matcher.Concerns(hook, r.example()) {
		return
	}
	added.hook, added.state = hook, unable(of.ClientConfig, r.backends)
	if added.state != "" && r.listed != nil {
		reference, _ := backend.ReferenceOf(of.ClientConfig)
		added.unlisted = !r.listed(reference.Namespace)
	}
	if added.state == "" || added.unlisted {
		r.names = append(r.names, of.Name)
	}
	r.webhooks = append(r.webhooks, added)
}

// unable is why the Service of a webhook cannot respond; empty if it can, or is not in the cluster.
func unable(config admissionregistrationv1.WebhookClientConfig, backends *backend.Backends) string {
	reference, ok := backend.ReferenceOf(config)
	if !ok {
		return ""
	}
	switch backends.Of(reference).State {
	case backend.Missing:
		return "does not exist"
	case backend.NoPort:
		return fmt.Sprintf("has no port %d", reference.Port)
	case backend.Empty:
		return "has no ready endpoint"
	case backend.Serving, backend.Elsewhere:
	}
	return ""
}

// example is a request of which the rules of a reviewer are asked.
func (r *Reviewers) example() admission.Group {
	return admission.Group{r.request(metav1.ObjectMeta{Namespace: "namespace", Name: "pod"})}
}

func evictionOf(of metav1.ObjectMeta) admission.Request {
	return admission.EvictPods([]metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}})[0]
}

func creationOf(of metav1.ObjectMeta) admission.Request {
	return admission.CreatePods([]metav1.PartialObjectMetadata{{ObjectMeta: of}}, "")[0]
}

// Of is the answer to the eviction of a pod, or to the creation of one like it. Without reviewers all
// requests pass.
func (r *Reviewers) Of(pod *corev1.Pod) Answer {
	switch {
	case r == nil || r.unread == "" && len(r.webhooks)+len(r.policies) == 0:
		return Answer{Outcome: eviction.Evicted}
	case r.unread != "":
		return Answer{Outcome: eviction.Unknown, Why: r.unread + " could not be read"}
	}
	ctx := context.Background() //nolint:forbidigo // the matcher evaluates in memory, without requests
	request := r.request(pod.ObjectMeta)
	found := Answer{Outcome: eviction.Evicted}
	for i := range r.webhooks {
		answer := r.webhooks[i].decides(r.matcher.Match(ctx, r.webhooks[i].hook, request))
		if answer.Outcome == eviction.Refused {
			return answer
		}
		found = found.or(answer)
	}
	for i := range r.policies {
		by := r.policies[i].binding
		switch r.policies[i].decides(ctx, r.matcher, request) { //nolint:exhaustive // policies return no other outcome
		case eviction.Refused:
			return Answer{Outcome: eviction.Refused, By: by, Why: fmt.Sprintf("ValidatingAdmissionPolicyBinding %q denies it", by)}
		case eviction.Unknown:
			if r.creates || !r.policies[i].general {
				found = found.or(Answer{
					Outcome: eviction.Unknown, By: by, Why: fmt.Sprintf("ValidatingAdmissionPolicyBinding %q may deny it", by),
					Since: r.policies[i].since,
				})
			}
		default:
		}
	}
	return found
}

// decides is the answer of a webhook that receives the eviction or not.
func (w *webhook) decides(match admission.Match) Answer {
	switch {
	case match == admission.Excluded:
	case w.unlisted:
		return Answer{Outcome: eviction.Unknown, By: w.name, Why: "the Service of " + w.label + " could not be read"}
	case w.state != "" && w.ignored, w.state == "" && (w.known || w.general):
	case w.state != "" && match == admission.Matched:
		return Answer{Outcome: eviction.Refused, By: w.name, Why: fmt.Sprintf("the Service of %s %s", w.label, w.state)}
	default:
		return Answer{Outcome: eviction.Unknown, By: w.name, Why: "the response of " + w.label + " is unknown"}
	}
	return Answer{Outcome: eviction.Evicted}
}

// evictions are the evictions of pods among the resources of a rule.
const evictions = "pods/eviction"

// general reports whether no rule is about evictions: a rule with a wildcard receives them among other requests,
// like the rules of Gatekeeper (charts/gatekeeper, "*" with pods/eviction among its subresources) and of Kyverno
// (pkg/controllers/webhook, "*/*").
func general(rules []admissionregistrationv1.RuleWithOperations) bool {
	return !slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		wildcard := func(of string) bool { return strings.Contains(of, "*") }
		return slices.Contains(rule.Resources, evictions) && !slices.ContainsFunc(rule.Resources, wildcard)
	})
}

// backendOf returns the backend of a webhook: webhooks of one operator share it.
func backendOf(of admissionregistrationv1.ValidatingWebhook) string {
	if reference, ok := backend.ReferenceOf(of.ClientConfig); ok {
		return reference.Namespace + "/" + reference.Name
	}
	return of.Name
}

// General are webhooks and policies that receive evictions of pods among other requests, and whose response is
// unknown.
type General struct {
	// Name is the name of the first webhook, or of the binding of the policy.
	Name string
	// Labels name all that one Service serves, such as: webhook "a" of ValidatingWebhookConfiguration "b".
	Labels []string
}

// General returns the webhooks and policies that receive the eviction of at least one of the pods.
func (r *Reviewers) General(pods []*corev1.Pod) []General {
	if r == nil || r.unread != "" {
		return nil // without a decision, or with the decision of Of
	}
	ctx := context.Background() //nolint:forbidigo // the matcher evaluates in memory, without requests
	var found []General
	known := map[string]int{}
	for i := range r.webhooks {
		w := &r.webhooks[i]
		receives := func(pod *corev1.Pod) bool {
			return r.matcher.Match(ctx, w.hook, r.request(pod.ObjectMeta)) != admission.Excluded
		}
		if !w.general || w.known || w.state != "" || !slices.ContainsFunc(pods, receives) {
			continue
		}
		at, ok := known[w.backend]
		if !ok {
			at = len(found)
			known[w.backend], found = at, append(found, General{Name: w.name})
		}
		found[at].Labels = append(found[at].Labels, w.label)
	}
	for i := range r.policies {
		p := &r.policies[i]
		open := func(pod *corev1.Pod) bool {
			return p.decides(ctx, r.matcher, r.request(pod.ObjectMeta)) == eviction.Unknown
		}
		if p.general && slices.ContainsFunc(pods, open) {
			found = append(found, General{Name: p.binding, Labels: []string{fmt.Sprintf("ValidatingAdmissionPolicyBinding %q", p.binding)}})
		}
	}
	return found
}

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

func (r *Reviewers) bind(of *admissionregistrationv1.ValidatingAdmissionPolicy,
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding,
) {
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

// decides returns the response of the policy to a request: Evicted to let it pass, Refused or Unknown.
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
