package reviewer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/drain/eviction"
)

// evictions are the evictions of pods among the resources of a rule.
const evictions = "pods/eviction"

// general reports whether no rule is about evictions: a rule with a wildcard receives them among other
// requests, as those of Gatekeeper (charts/gatekeeper, "*" with pods/eviction among its subresources)
// and of Kyverno (pkg/controllers/webhook, "*/*").
func general(rules []admissionregistrationv1.RuleWithOperations) bool {
	return !slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		wildcard := func(of string) bool { return strings.Contains(of, "*") }
		return slices.Contains(rule.Resources, evictions) && !slices.ContainsFunc(rule.Resources, wildcard)
	})
}

// backendOf is what serves a webhook: webhooks of one operator have the same.
func backendOf(of admissionregistrationv1.ValidatingWebhook) string {
	if reference, ok := backend.ReferenceOf(of.ClientConfig); ok {
		return reference.Namespace + "/" + reference.Name
	}
	return of.Name
}

// General are webhooks and policies that receive evictions of pods among other requests, and of which it is
// not known what they answer.
type General struct {
	// Name is the name of the first webhook, or of the binding of the policy.
	Name string
	// Labels name all that one Service serves, such as: webhook "a" of ValidatingWebhookConfiguration "b".
	Labels []string
}

// General are those that receive the eviction of at least one of the pods.
func (r *Reviewers) General(pods []*corev1.Pod) []General {
	if r == nil || r.unread != "" {
		return nil // without a decision, or with that of Of
	}
	ctx := context.Background() //nolint:forbidigo // nothing is requested
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
