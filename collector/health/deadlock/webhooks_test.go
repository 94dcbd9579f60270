package deadlock_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/health/deadlock"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	registration   = "admissionregistration.k8s.io/v1"
	webhooksPath   = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	mutatorsPath   = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	policiesPath   = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	bindingsPath   = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
	namespacesPath = "/api/v1/namespaces"
	nodesPath      = "/api/v1/nodes"
	allPodsPath    = "/api/v1/pods"
	budgetsPath    = "/apis/policy/v1/poddisruptionbudgets"
	servicesPath   = "/api/v1/services"
	endpointsPath  = "/apis/discovery.k8s.io/v1/endpointslices"
)

// hooks is a cluster with two nodes, a pod of its own, and a webhook in namespace
// "hooks".
type hooks struct {
	webhooks []*admissionregistrationv1.ValidatingWebhookConfiguration
	mutators []*admissionregistrationv1.MutatingWebhookConfiguration
	// nodes are those of the ready endpoints of Service "hook".
	nodes []string
	// owner is the kind of the controller of the webhook's pods.
	owner   string
	budgets []*policyv1.PodDisruptionBudget
	single  bool
}

// budget is one of the pods of the webhook, one of which may be evicted.
func budget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hooks", Name: "hook", Generation: 2},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "hook"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 2, ExpectedPods: 2, DesiredHealthy: 1, CurrentHealthy: 2,
			DisruptionsAllowed: 1,
		},
	}
}

// webhookFor receives updates of a resource, or new pods.
func webhookFor(resource string,
	changes ...func(*admissionregistrationv1.ValidatingWebhook),
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	operation := admissionregistrationv1.Update
	if resource == "pods" {
		operation = admissionregistrationv1.Create
	}
	w := admissionregistrationv1.ValidatingWebhook{
		Name: "hook.example.com", FailurePolicy: new(admissionregistrationv1.Fail), MatchPolicy: new(admissionregistrationv1.Equivalent),
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: "hooks",
			Name:      "hook",
		}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		}},
	}
	for _, change := range changes {
		change(&w)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{w},
	}
}

// mutator is a mutating webhook with this timeout.
func mutator(name string, seconds int32) *admissionregistrationv1.MutatingWebhookConfiguration {
	w := webhookFor("pods", excludingOwn).Webhooks[0]
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: w.Name, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy, NamespaceSelector: w.NamespaceSelector,
			ObjectSelector: w.ObjectSelector,
			ClientConfig:   w.ClientConfig, Rules: w.Rules, TimeoutSeconds: &seconds,
		}},
	}
}

// injector intercepts new pods in all namespaces but kube-system.
func injector(name string) *admissionregistrationv1.MutatingWebhookConfiguration {
	configuration := mutator(name, 10)
	configuration.Webhooks[0].NamespaceSelector = webhookFor("pods", namespaceNotIn("kube-system")).Webhooks[0].NamespaceSelector
	return configuration
}

// everything is a webhook on all updates, which the API server ignores where it does not respond in time.
func everything(seconds int32) func(*admissionregistrationv1.ValidatingWebhook) {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.FailurePolicy, w.TimeoutSeconds = new(admissionregistrationv1.Ignore), &seconds
		w.Rules[0].APIGroups, w.Rules[0].APIVersions = []string{"*"}, []string{"*"}
	}
}

func namespaceNotIn(names ...string) func(*admissionregistrationv1.ValidatingWebhook) {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: names},
		}}
	}
}

func excludingOwn(w *admissionregistrationv1.ValidatingWebhook) { namespaceNotIn("hooks")(w) }

func condition(expression string) func(*admissionregistrationv1.ValidatingWebhook) {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "condition", Expression: expression}}
	}
}

func expiring(t *testing.T, times ...time.Time) func(*admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	var bundle []byte
	for _, at := range times {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: at}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = bundle }
}

func urlOf(address string) func(*admissionregistrationv1.ValidatingWebhook) {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &address}
	}
}

// running is a pod of a controller.
func running(namespace, name, owner string) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}, ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"app": name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: name, Controller: new(true)}},
	}}
}

func (h hooks) server(t *testing.T) checktest.Server {
	t.Helper()
	nodes := []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	if h.single {
		nodes = nodes[:1]
	}
	var namespaces []*metav1.PartialObjectMetadata
	for _, name := range []string{"hooks", "openshift-dns", corev1.NamespaceNodeLease} {
		namespaces = append(namespaces, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{corev1.LabelMetadataName: name},
		}})
	}
	var endpoints []discoveryv1.Endpoint
	for _, name := range h.nodes {
		endpoints = append(endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, NodeName: &name}, discoveryv1.Endpoint{
			Addresses: []string{"10.0.0.2"}, NodeName: new("not-ready"), Conditions: discoveryv1.EndpointConditions{Ready: new(false)},
		})
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hooks", Name: "hook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		Ports:      []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8443))}}, Endpoints: endpoints,
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hooks", Name: "hook"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "hook"}, Ports: []corev1.ServicePort{{Port: 443}}},
	}
	pods := []*corev1.Pod{running("openshift-dns", "dns", "ReplicaSet"), running("hooks", "hook", h.owner)}
	metadata := "meta.k8s.io/v1"
	return server.Responding(map[string]checktest.Response{
		webhooksPath:   checktest.Pages(t, registration, "ValidatingWebhookConfigurationList", h.webhooks),
		mutatorsPath:   checktest.Pages(t, registration, "MutatingWebhookConfigurationList", h.mutators),
		namespacesPath: checktest.Pages(t, metadata, "PartialObjectMetadataList", namespaces),
		servicesPath:   checktest.Pages(t, "v1", "ServiceList", []*corev1.Service{service}),
		endpointsPath:  checktest.Pages(t, "discovery.k8s.io/v1", "EndpointSliceList", []*discoveryv1.EndpointSlice{slice}),
		allPodsPath:    checktest.Pages(t, "v1", "PodList", pods),
		nodesPath:      checktest.Pages(t, "v1", "NodeList", nodes),
		budgetsPath:    checktest.Pages(t, "policy/v1", "PodDisruptionBudgetList", h.budgets),
	})
}

func TestWebhooks(t *testing.T) {
	now := time.Now()
	type configurations = []*admissionregistrationv1.ValidatingWebhookConfiguration
	one := func(outcome preflight.Outcome, reason string) results {
		return results{"Validating" + reason + "-hook": result(outcome, reason)}
	}
	onOneNode := func(outcome preflight.Outcome) results {
		return results{
			"ValidatingWebhookSelectsItself-hook": result(outcome, "WebhookSelectsItself"),
			"ValidatingWebhookOnOneNode-hook":     result(preflight.Warn, "WebhookOnOneNode"),
		}
	}
	fine := results{"Webhooks": result(preflight.Pass, "AsExpected")}
	two := []string{"a", "b"}
	for name, tc := range map[string]struct {
		reason  string
		hooks   hooks
		message string // a part of it
		remedy  string // a part of it
		want    results
	}{
		"None": {reason: "no webhook blocks anything", message: "none of 0 webhooks", want: fine},
		"Fine": {
			reason: "replicas on two nodes, and the namespaces of the cluster excluded", want: fine,
			hooks: hooks{nodes: two, webhooks: configurations{webhookFor("pods", namespaceNotIn("hooks", "openshift-dns"))}},
		},
		"NoEndpoint": {
			reason: "endpoints that are not ready do not count", hooks: hooks{webhooks: configurations{webhookFor("pods", excludingOwn)}},
			message: `webhook "hook.example.com" of ValidatingWebhookConfiguration "hook" needs Service hooks/hook, which has no ready endpoint, and with failurePolicy Fail ` +
				`the API server then rejects requests of the update, such as: create a pod like "dns" in namespace "openshift-dns"`,
			want: one(preflight.Fail, "WebhookUnavailable"),
		},
		"NoService": {
			reason: "the Service does not exist", message: "which does not exist", want: one(preflight.Fail, "WebhookUnavailable"),
			hooks: hooks{webhooks: configurations{webhookFor("nodes",
				func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.Service.Name = "other" })}},
		},
		"NoPort": {
			reason: "the Service does not have the port", message: "needs port 8443 of Service hooks/hook",
			want: one(preflight.Fail, "WebhookUnavailable"),
			hooks: hooks{nodes: two, webhooks: configurations{webhookFor("nodes/status",
				func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.Service.Port = new(int32(8443)) })}},
		},
		"Ignore": {
			reason: "the API server ignores a webhook that fails", want: fine,
			hooks: hooks{webhooks: configurations{webhookFor("pods", func(w *admissionregistrationv1.ValidatingWebhook) {
				w.FailurePolicy = new(admissionregistrationv1.Ignore)
			})}},
		},
		"IgnoreEverything": {
			reason:  "all requests wait for a webhook whose replicas are drained, also the heartbeats of nodes",
			message: `and timeoutSeconds 30: meanwhile each request that it receives may take that long, such as the heartbeats of nodes, which a kubelet cancels after 10 s: renew lease "a"`,
			hooks:   hooks{nodes: []string{"a"}, owner: "ReplicaSet", webhooks: configurations{webhookFor("*", everything(30))}},
			want:    one(preflight.Warn, "WebhookDelaysHeartbeats"),
		},
		"IgnoreBriefly": {
			reason: "a kubelet waits longer than the API server does for the webhook", want: fine,
			hooks: hooks{nodes: []string{"a"}, owner: "ReplicaSet", webhooks: configurations{webhookFor("*", everything(3))}},
		},
		"IgnoreOnTwoNodes": {
			reason: "the other replica responds", want: fine,
			hooks: hooks{nodes: two, owner: "ReplicaSet", webhooks: configurations{webhookFor("*", everything(30))}},
		},
		"IgnoreWithBudget": {
			reason: "the budget keeps one replica until the other is replaced", want: fine,
			hooks: hooks{
				nodes: []string{"a"}, owner: "ReplicaSet", budgets: []*policyv1.PodDisruptionBudget{budget()},
				webhooks: configurations{webhookFor("*", everything(30))},
			},
		},
		"IgnorePods": {
			reason: "it receives no heartbeats", want: fine,
			hooks: hooks{
				nodes: []string{"a"}, owner: "ReplicaSet",
				webhooks: configurations{webhookFor("pods", func(w *admissionregistrationv1.ValidatingWebhook) {
					w.FailurePolicy, w.TimeoutSeconds = new(admissionregistrationv1.Ignore), new(int32(30))
				})},
			},
		},
		"OtherResource": {reason: "an update does not update Secrets", hooks: hooks{webhooks: configurations{webhookFor("secrets")}}, want: fine},
		"NoRules": {
			reason: "a webhook without rules is never called", want: fine,
			hooks: hooks{webhooks: configurations{webhookFor("pods", func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = nil })}},
		},
		"ConditionExcludes": {
			reason: "a match condition on the user is evaluated", hooks: hooks{webhooks: configurations{webhookFor("nodes/status",
				condition("!('system:nodes' in request.userInfo.groups)"))}}, want: fine,
		},
		"ConditionOnSpec": {
			reason:  "a match condition on the spec is not known",
			hooks:   hooks{webhooks: configurations{webhookFor("nodes", condition("!has(object.spec.taints)"))}},
			message: "which may include a request of the update", want: one(preflight.Warn, "WebhookUnavailable"),
		},
		"OneNode": {
			reason:  "the drain of the node removes all replicas",
			hooks:   hooks{nodes: []string{"a"}, owner: "ReplicaSet", webhooks: configurations{webhookFor("pods", excludingOwn)}},
			message: `has all its replicas on node "a"`, want: one(preflight.Warn, "WebhookOnOneNode"),
		},
		"SingleNode": {
			reason: "a cluster with one node is not drained",
			hooks:  hooks{single: true, nodes: []string{"a"}, owner: "ReplicaSet", webhooks: configurations{webhookFor("pods")}}, want: fine,
		},
		"SelectsItself": {
			reason:  "a ReplicaSet replaces a pod while it may still respond",
			hooks:   hooks{nodes: []string{"a"}, owner: "ReplicaSet", webhooks: configurations{webhookFor("pods")}},
			message: "; it receives requests of the update in 1 openshift-* namespace: openshift-dns", want: onOneNode(preflight.Warn),
			remedy: "Exclude the namespace of the webhook, hooks, with namespaceSelector. Exclude the openshift-* namespaces with namespaceSelector",
		},
		"Injector": {
			reason: "an injector of all namespaces but kube-system, with one replica: both are reported, and what excludes the cluster",
			hooks: hooks{
				nodes: []string{"a"}, owner: "ReplicaSet",
				mutators: []*admissionregistrationv1.MutatingWebhookConfiguration{injector("consul")},
			},
			want: results{
				"MutatingWebhookSelectsItself-consul": result(preflight.Warn, "WebhookSelectsItself"),
				"MutatingWebhookOnOneNode-consul":     result(preflight.Warn, "WebhookOnOneNode"),
			},
			message: `has all its replicas on node "a", whose drain removes them, and with failurePolicy Fail the API server then rejects requests of the update, such as: ` +
				`create a pod like "dns" in namespace "openshift-dns"; it receives requests of the update in 1 openshift-* namespace: openshift-dns`,
			remedy: "allows one of them to be evicted. Exclude the openshift-* namespaces with namespaceSelector " +
				"(kubernetes.io/metadata.name NotIn their names), or set failurePolicy: Ignore.",
		},
		"StatefulSetSelectsItself": {
			reason:  "a StatefulSet replaces a pod after it has ended",
			hooks:   hooks{nodes: []string{"a"}, owner: "StatefulSet", webhooks: configurations{webhookFor("pods")}},
			message: `all of them are on node "a": once that node is drained, none can be created again`, want: onOneNode(preflight.Fail),
		},
		"SelectsItselfOnTwoNodes": {
			reason: "all replicas may be lost at once", hooks: hooks{nodes: two, owner: "StatefulSet", webhooks: configurations{webhookFor("pods")}},
			want: one(preflight.Warn, "WebhookSelectsItself"),
		},
		"Budget": {
			reason: "a budget keeps one replica until the other is replaced", want: fine,
			hooks: hooks{
				nodes: []string{"a"}, owner: "StatefulSet", budgets: []*policyv1.PodDisruptionBudget{budget()},
				webhooks: configurations{webhookFor("pods")},
			},
		},
		"DaemonSet": {
			reason: "a drain does not evict the pods of a DaemonSet",
			hooks:  hooks{nodes: []string{"a"}, owner: "DaemonSet", webhooks: configurations{webhookFor("pods")}},
			want:   one(preflight.Warn, "WebhookOnOneNode"),
		},
		"Expired": {
			reason: "no certificate is valid", hooks: hooks{
				nodes:    two,
				webhooks: configurations{webhookFor("nodes", expiring(t, now.Add(-time.Hour), now.Add(-time.Minute)))},
			},
			message: "has a caBundle that expired at", want: one(preflight.Fail, "WebhookCAExpired"),
		},
		"Expires": {
			reason: "it expires during the update", hooks: hooks{
				nodes:    two,
				webhooks: configurations{webhookFor("nodes", expiring(t, now.Add(-time.Hour), now.Add(time.Hour)))},
			},
			want: one(preflight.Warn, "WebhookCAExpires"),
		},
		"Renewed": {
			reason: "a certificate of the bundle is valid for longer", want: fine,
			hooks: hooks{nodes: two, webhooks: configurations{webhookFor("nodes", expiring(t, now.Add(-time.Hour), now.Add(48*time.Hour)))}},
		},
		"URLOfService": {
			reason: "the API server may not resolve the name",
			hooks:  hooks{webhooks: configurations{webhookFor("nodes", urlOf("https://hook.hooks.svc:443/"))}},
			want:   one(preflight.Warn, "WebhookURL"),
		},
		"URLElsewhere": {
			reason: "a server outside of the cluster is not judged",
			hooks:  hooks{webhooks: configurations{webhookFor("nodes", urlOf("https://hook.example.com/"))}}, want: fine,
		},
		"Timeouts": {
			reason:  "mutating webhooks are called one after the other",
			hooks:   hooks{nodes: two, mutators: []*admissionregistrationv1.MutatingWebhookConfiguration{mutator("a", 30), mutator("b", 5)}},
			message: "may together take 35 s", want: results{"WebhookTimeouts": result(preflight.Warn, "WebhookTimeouts")},
		},
		"TimeoutsInLimit": {
			reason: "34 s are allowed", want: fine,
			hooks: hooks{nodes: two, mutators: []*admissionregistrationv1.MutatingWebhookConfiguration{mutator("a", 30), mutator("b", 4)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := checktest.RunAt(t, deadlock.Webhooks(), tc.hooks.server(t).Snapshot(t), check.Subject{Update: patch(t), Now: now})
			if diff := cmp.Diff(tc.want, checktest.Results(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(checktest.Messages(got), tc.message) {
				t.Errorf("%s: the message lacks %q: %s", tc.reason, tc.message, checktest.Messages(got))
			}
			if !strings.Contains(checktest.Remedies(got), tc.remedy) {
				t.Errorf("%s: the remedy lacks %q: %s", tc.reason, tc.remedy, checktest.Remedies(got))
			}
		})
	}
}

// policyFor applies to updates of a resource.
func policyFor(resource, expression string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "policy"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: webhookFor(resource).Webhooks[0].Rules[0]}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: expression}},
		},
	}
}

// binding has the action Deny, and a parameter of this name.
func binding(parameter string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "binding"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "policy", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			ParamRef: &admissionregistrationv1.ParamRef{
				Name: parameter, Namespace: "default",
				ParameterNotFoundAction: new(admissionregistrationv1.DenyAction),
			},
		},
	}
}

func TestPolicies(t *testing.T) {
	one := func(outcome preflight.Outcome, reason string) results {
		return results{"PolicyBinding-binding": result(outcome, reason)}
	}
	fine := results{"AdmissionPolicies": result(preflight.Pass, "AsExpected")}
	present := "kube-root-ca.crt"
	for name, tc := range map[string]struct {
		reason  string
		policy  *admissionregistrationv1.ValidatingAdmissionPolicy
		binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
		change  func(*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		want    results
	}{
		"NoParameter": {
			reason: "parameters are not read", policy: policyFor("nodes", "params.data.x == ''"), binding: binding("missing"),
			want: fine,
		},
		"OtherResource": {
			reason: "an update does not update Secrets", policy: policyFor("secrets", "true"), binding: binding("missing"),
			want: fine,
		},
		"Denies": {
			reason: "the validation is false for a node", policy: policyFor("nodes", "request.name == 'other'"),
			binding: binding(present), want: one(preflight.Warn, "PolicyDenies"),
		},
		"Allows": {
			reason: "the validation is true", policy: policyFor("nodes", "request.name != 'other'"), binding: binding(present),
			want: fine,
		},
		"OnSpec": {
			reason: "a validation of the spec is not judged", policy: policyFor("nodes", "object.spec.unschedulable"),
			binding: binding(present), want: fine,
		},
		"WarnsOnly": {
			reason: "the binding has no action Deny", policy: policyFor("nodes", "request.name == 'other'"), binding: binding(present), want: fine,
			change: func(_ *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
				b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
			},
		},
		"Condition": {
			reason: "a match condition excludes the request", policy: policyFor("nodes", "request.name == 'other'"), binding: binding(present),
			want: fine,
			change: func(p *admissionregistrationv1.ValidatingAdmissionPolicy, _ *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
				p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{
					Name:       "users",
					Expression: "!request.userInfo.username.startsWith('system:')",
				}}
			},
		},
		"OtherPolicy": {
			reason: "the policy of the binding does not exist", policy: policyFor("nodes", "true"), binding: binding("missing"), want: fine,
			change: func(p *admissionregistrationv1.ValidatingAdmissionPolicy, _ *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
				p.Name = "other"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(tc.policy, tc.binding)
			}
			view := hooks{}.server(t).Responding(map[string]checktest.Response{
				policiesPath: checktest.Pages(t, registration, "ValidatingAdmissionPolicyList",
					[]*admissionregistrationv1.ValidatingAdmissionPolicy{tc.policy}),
				bindingsPath: checktest.Pages(t, registration, "ValidatingAdmissionPolicyBindingList",
					[]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{tc.binding}),
			})
			got := checktest.Run(t, deadlock.Policies(), view.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s%s", tc.reason, diff, checktest.Messages(got))
			}
		})
	}
}
