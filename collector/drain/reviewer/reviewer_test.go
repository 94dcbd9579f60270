package reviewer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

// rule is that of a webhook or a policy for the creation of a resource.
func rule(resource string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}
}

// webhook is one with the Service "guard", changed.
func webhook(name string, changes ...func(*admissionregistrationv1.ValidatingWebhook)) reviewer.Input {
	made := admissionregistrationv1.ValidatingWebhook{
		Name: name, Rules: []admissionregistrationv1.RuleWithOperations{rule("pods/eviction")},
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: "shop",
			Name:      "guard",
		}},
	}
	for _, change := range changes {
		change(&made)
	}
	return reviewer.Input{Validating: []admissionregistrationv1.ValidatingWebhookConfiguration{
		{ObjectMeta: metav1.ObjectMeta{Name: "guards"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{made}},
	}}
}

func ignore(w *admissionregistrationv1.ValidatingWebhook) {
	w.FailurePolicy = new(admissionregistrationv1.Ignore)
}

func otherNamespace(w *admissionregistrationv1.ValidatingWebhook) {
	w.NamespaceSelector.MatchLabels = map[string]string{"guarded": "true"}
}

func invalid(w *admissionregistrationv1.ValidatingWebhook) {
	w.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
}

func ofPods(w *admissionregistrationv1.ValidatingWebhook) { w.Rules[0] = rule("pods") }

func served(input reviewer.Input) reviewer.Input {
	input.Services = []corev1.Service{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "guard"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}}
	input.Endpoints = []discoveryv1.EndpointSlice{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "guard-1", Labels: map[string]string{discoveryv1.LabelServiceName: "guard"}},
		Ports:      []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(8443))}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}}
	return input
}

func policy(expression string, actions ...admissionregistrationv1.ValidationAction) reviewer.Input {
	return reviewer.Input{
		Policies: []admissionregistrationv1.ValidatingAdmissionPolicy{{
			ObjectMeta: metav1.ObjectMeta{Name: "guard"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule("pods/eviction")}},
				},
				Validations: []admissionregistrationv1.Validation{{Expression: expression}},
			},
		}},
		Bindings: []admissionregistrationv1.ValidatingAdmissionPolicyBinding{{
			ObjectMeta: metav1.ObjectMeta{Name: "guard-all"},
			Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "guard", ValidationActions: actions},
		}},
	}
}

// wildcard is a rule of a policy engine.
func wildcard(resources ...string) func(*admissionregistrationv1.ValidatingWebhook) {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.Rules[0].APIGroups, w.Rules[0].APIVersions, w.Rules[0].Resources = []string{"*"}, []string{"*"}, resources
	}
}

func wildcardPolicy(expression string) reviewer.Input {
	made := policy(expression, admissionregistrationv1.Deny)
	made.Policies[0].Spec.MatchConstraints.ResourceRules[0].Resources = []string{"pods/*"}
	return made
}

func TestOf(t *testing.T) {
	t.Parallel()
	const guard, drainCleaner = "guard.example.com", "strimzi-drain-cleaner.strimzi.io"
	for name, tc := range map[string]struct {
		reason string
		input  reviewer.Input
		want   eviction.Outcome
		by     string
		names  int
		// general is the name of a webhook or a policy that receives the eviction among other requests.
		general string
	}{
		"None":     {reason: "nothing receives evictions", want: eviction.Evicted},
		"Pods":     {reason: "a rule for pods does not receive their evictions", input: webhook(guard, ofPods), want: eviction.Evicted},
		"Responds": {reason: "what it answers is not known", input: served(webhook(guard)), want: eviction.Unknown, by: guard, names: 1},
		"Namespace": {
			reason: "it receives those of another namespace", input: served(webhook(guard, otherNamespace)), want: eviction.Evicted,
			names: 1,
		},
		"NoService": {
			reason: "the API server refuses what a webhook with the policy Fail does not answer", input: webhook(guard),
			want: eviction.Refused, by: "does not exist",
		},
		"Ignored": {reason: "a webhook with the policy Ignore need not answer", input: webhook(guard, ignore), want: eviction.Evicted},
		"Operator": {
			reason: "the webhook of an operator of the table decides on its own pods only", input: served(webhook(drainCleaner)),
			want: eviction.Evicted, names: 1,
		},
		"OperatorOff": {
			reason: "the API server refuses all evictions then", input: webhook(drainCleaner), want: eviction.Refused,
			by: drainCleaner,
		},
		"Invalid": {
			reason: "it is not known what the webhook receives", input: served(webhook(guard, invalid)), want: eviction.Unknown,
			by: "selectors",
		},
		"Unread": {reason: "permissions are missing", input: reviewer.Input{Unread: "webhooks"}, want: eviction.Unknown, by: "webhooks"},
		"Everything": {
			reason: "a webhook on all that is created, such as Kyverno's, does not decide on evictions",
			input:  served(webhook(guard, wildcard("*/*"))), want: eviction.Evicted, names: 1, general: guard,
		},
		"Subresources": {
			reason: "a rule with all resources and these subresources, such as Gatekeeper's, is not about evictions",
			input:  served(webhook(guard, wildcard("*", "pods/exec", "pods/eviction"))), want: eviction.Evicted, names: 1, general: guard,
		},
		"OfPods": {
			reason: "a rule on all of a pod is not about evictions either", input: served(webhook(guard, wildcard("pods/*"))),
			want: eviction.Evicted, names: 1, general: guard,
		},
		"AllGroups": {
			reason: "the rule names evictions, whatever the group", input: served(webhook(guard, wildcard("pods/eviction"))),
			want: eviction.Unknown, by: guard, names: 1,
		},
		"Excluded": {
			reason: "it receives those of another namespace", input: served(webhook(guard, wildcard("*/*"), otherNamespace)),
			want: eviction.Evicted, names: 1,
		},
		"EverythingOff": {
			reason: "the API server refuses all that the webhook does not answer", input: webhook(guard, wildcard("*/*")),
			want: eviction.Refused, by: "does not exist",
		},
		"OpenWildcard": {
			reason: "a policy on all of a pod that depends on what is not known",
			input:  wildcardPolicy("object.deleteOptions == null"), want: eviction.Evicted, general: "guard-all",
		},
		"DeniesAll": {
			reason: "a policy on all of a pod is evaluated", input: wildcardPolicy("request.namespace != 'shop'"),
			want: eviction.Refused, by: "guard-all",
		},
		"AdmitsAll": {
			reason: "a policy on all of a pod is evaluated", input: wildcardPolicy("request.namespace == 'shop'"),
			want: eviction.Evicted,
		},
		"Denies": {
			reason: "the validation is false", input: policy("request.namespace != 'shop'", admissionregistrationv1.Deny),
			want: eviction.Refused, by: "guard-all",
		},
		"Admits": {
			reason: "the validation is true", input: policy("request.namespace == 'shop'", admissionregistrationv1.Deny),
			want: eviction.Evicted,
		},
		"Warns": {reason: "the binding does not deny", input: policy("false", admissionregistrationv1.Warn), want: eviction.Evicted},
		"Open": {
			reason: "the validation depends on what is not known",
			input:  policy("object.deleteOptions == null", admissionregistrationv1.Deny), want: eviction.Unknown, by: "guard-all",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.input.Namespaces = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
			reviewers := reviewer.Evictions(tc.input)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0"}}
			got := reviewers.Of(pod)
			if got.Outcome != tc.want || !strings.Contains(got.Why, tc.by) || (got.Outcome == eviction.Evicted) != (got.Why == "") {
				t.Errorf("%s: got %+v, want %s by %q", tc.reason, got, tc.want, tc.by)
			}
			if strings.Contains(got.Why, pod.Name) || got.By != "" && !strings.Contains(got.Why, got.By) {
				t.Errorf("%s: %q is not the name of what %q is about", tc.reason, got.By, got.Why)
			}
			general := ""
			for _, each := range reviewers.General([]*corev1.Pod{pod}) {
				general += each.Name
			}
			if general != tc.general {
				t.Errorf("%s: evictions are received among other requests by %q, want %q", tc.reason, general, tc.general)
			}
			if len(reviewers.Names()) != tc.names {
				t.Errorf("%s: the webhooks that respond are %q", tc.reason, reviewers.Names())
			}
		})
	}
}

// TestGeneralWebhooksOfOneService are one entry: those of an operator are judged together.
func TestGeneralWebhooksOfOneService(t *testing.T) {
	t.Parallel()
	input := served(webhook("first.example.com", wildcard("*/*")))
	second := webhook("second.example.com", wildcard("*/*")).Validating[0].Webhooks[0]
	other := webhook("other.example.com", wildcard("*/*")).Validating[0].Webhooks[0]
	other.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new("https://example.com")}
	input.Validating[0].Webhooks = append(input.Validating[0].Webhooks, second, other)
	input.Namespaces = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	var got []string
	for _, each := range reviewer.Evictions(input).General([]*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0"}}}) {
		got = append(got, fmt.Sprintf("%s %d", each.Name, len(each.Labels)))
	}
	if diff := cmp.Diff([]string{"first.example.com 2", "other.example.com 1"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCreations has the answers to the creation of the pod that comes in the place of another one.
func TestCreations(t *testing.T) {
	t.Parallel()
	const guard = "guard.example.com"
	onPods := policy("request.namespace != 'shop'", admissionregistrationv1.Deny)
	onPods.Policies[0].Spec.MatchConstraints.ResourceRules[0].Resources = []string{"pods"}
	for name, tc := range map[string]struct {
		reason string
		input  reviewer.Input
		want   eviction.Outcome
		by     string
	}{
		"Evictions": {reason: "a rule for evictions does not receive creations", input: webhook(guard), want: eviction.Evicted},
		"NoService": {
			reason: "the API server refuses what a webhook with the policy Fail does not answer", input: webhook(guard, ofPods),
			want: eviction.Refused, by: "does not exist",
		},
		"Ignored":  {reason: "a webhook with the policy Ignore need not answer", input: webhook(guard, ofPods, ignore), want: eviction.Evicted},
		"Responds": {reason: "what it answers is not known", input: served(webhook(guard, ofPods)), want: eviction.Unknown, by: guard},
		"Everything": {
			reason: "what it answers is not known, also among other requests", input: served(webhook(guard, wildcard("*"))),
			want: eviction.Unknown, by: guard,
		},
		"Denies": {reason: "the validation is false", input: onPods, want: eviction.Refused, by: "guard-all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.input.Namespaces = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
			got := reviewer.Creations(tc.input).Of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0"}})
			if got.Outcome != tc.want || !strings.Contains(got.Why, tc.by) {
				t.Errorf("%s: got %+v, want %s by %q", tc.reason, got, tc.want, tc.by)
			}
		})
	}
}
