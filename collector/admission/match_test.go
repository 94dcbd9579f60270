package admission_test

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/ownsignal"
)

type webhook = admissionregistrationv1.ValidatingWebhook

// rule is a rule for operations on a resource "group/version/resource".
func rule(group, version, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version},
			Resources: []string{resource},
		},
	}
}

// called is a webhook for rules, without selectors.
func called(rules ...admissionregistrationv1.RuleWithOperations) webhook {
	return webhook{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		MatchPolicy: new(admissionregistrationv1.Equivalent), Rules: rules,
	}
}

func (r row) with(change func(*webhook)) row {
	change(&r.webhook)
	return r
}

// row is a webhook, and the match of a request.
type row struct {
	reason  string
	webhook webhook
	request admission.Group
	want    admission.Match
}

func conditions(expressions ...string) func(*webhook) {
	return func(w *webhook) {
		for i, expression := range expressions {
			w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprint(i), Expression: expression})
		}
	}
}

func labeled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func objects(namespace, name string) []metav1.PartialObjectMetadata {
	return []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"app": "dns"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "dns", Controller: new(true)}},
	}}}
}

func TestMatch(t *testing.T) {
	const create, update = admissionregistrationv1.Create, admissionregistrationv1.Update
	pods := objects("openshift-dns", "dns")
	created, nodes := admission.CreatePods(pods, "a"), objects("", "a")
	newPods := called(rule("", "v1", "pods", create))
	matcher := admission.NewMatcher([]metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
		Name:   "openshift-dns",
		Labels: map[string]string{"level": "0"},
	}}})
	for name, tc := range map[string]row{
		"Rule":        {reason: "the rule matches", webhook: newPods, request: created, want: admission.Matched},
		"NoRule":      {reason: "a webhook without rules is not called", webhook: called(), request: created},
		"Operation":   {reason: "another operation", webhook: called(rule("", "v1", "pods", update)), request: created},
		"Subresource": {reason: "pods does not include its subresources", webhook: newPods, request: admission.EvictPods(pods)},
		"AnySubresource": {
			reason: "pods/* includes the eviction", webhook: called(rule("", "v1", "pods/*", create)),
			request: admission.EvictPods(pods), want: admission.Matched,
		},
		"Binding": {
			reason: "*/* includes the binding", webhook: called(rule("*", "*", "*/*", admissionregistrationv1.OperationAll)),
			request: admission.BindPods(pods), want: admission.Matched,
		},
		"PodStatus": {
			reason: "the kubelet updates the status", webhook: called(rule("", "v1", "pods/status", update)),
			request: admission.ReportPods(pods, "a"), want: admission.Matched,
		},
		"Delete": {
			reason: "the kubelet deletes an evicted pod", webhook: called(rule("", "v1", "pods", admissionregistrationv1.Delete)),
			request: admission.DeletePods(pods, "a"), want: admission.Matched,
		},
		"Cordon": {
			reason: "a node is cordoned", webhook: called(rule("", "v1", "nodes", update)), request: admission.CordonNodes(nodes),
			want: admission.Matched,
		},
		"NodeStatus": {
			reason: "the status of a node", webhook: called(rule("", "v1", "nodes/status", update)),
			request: admission.ReportNodes(nodes), want: admission.Matched,
		},
		"Operator": {
			reason: "a ClusterOperator", webhook: called(rule("config.openshift.io", "v1", "*", update)),
			request: admission.UpdateOperators("", nodes), want: admission.Matched,
		},
		"OperatorStatus": {
			reason: "not the status", webhook: called(rule("config.openshift.io", "v1", "*", update)),
			request: admission.UpdateOperators("status", nodes),
		},
		"Definition": {
			reason: "a definition", webhook: called(rule("apiextensions.k8s.io", "*", "*", update)),
			request: admission.UpdateDefinitions("a.example.com"), want: admission.Matched,
		},
		"Equivalent": {
			reason: "a version that is not served has no equivalent", webhook: called(rule("apiextensions.k8s.io", "v1beta1", "*", update)),
			request: admission.UpdateDefinitions("a.example.com"),
		},
		"NamespaceOfNode": row{
			reason: "a namespaceSelector does not exclude nodes", webhook: called(rule("", "v1", "nodes", update)),
			request: admission.CordonNodes(nodes), want: admission.Matched,
		}.with(func(w *webhook) { w.NamespaceSelector = labeled("no", "such") }),
		"Namespace": row{
			reason: "the namespace has the label", webhook: newPods, request: created,
			want: admission.Matched,
		}.with(func(w *webhook) { w.NamespaceSelector = labeled("level", "0") }),
		"OtherNamespace": row{
			reason: "the namespace has another label", webhook: newPods,
			request: created,
		}.with(func(w *webhook) { w.NamespaceSelector = labeled("level", "1") }),
		"UnknownNamespace": row{
			reason:  "the labels of the namespace are not known",
			webhook: called(rule("coordination.k8s.io", "v1", "leases", update)), request: admission.RenewLeases(nodes),
			want: admission.Uncertain,
		}.with(func(w *webhook) { w.NamespaceSelector = labeled("level", "0") }),
		"NilSelector": row{
			reason: "the API sets the selector of everything, which a manifest may lack", webhook: newPods, request: created,
			want: admission.Matched,
		}.with(func(w *webhook) { w.NamespaceSelector = nil }),
		"Object": row{
			reason: "the pod has the label", webhook: newPods, request: created,
			want: admission.Matched,
		}.with(func(w *webhook) { w.ObjectSelector = labeled("app", "dns") }),
		"OtherObject": row{
			reason: "the pod has another label", webhook: newPods,
			request: created,
		}.with(func(w *webhook) { w.ObjectSelector = labeled("app", "x") }),
		"ObjectOfEviction": row{
			reason: "an eviction has no labels", webhook: called(rule("", "v1", "pods/eviction", create)),
			request: admission.EvictPods(pods),
		}.with(func(w *webhook) { w.ObjectSelector = labeled("app", "dns") }),
		"UnknownObject": row{
			reason: "the labels of a definition are not known", webhook: called(rule("apiextensions.k8s.io", "*", "*", update)),
			request: admission.UpdateDefinitions("a.example.com"), want: admission.Uncertain,
		}.with(func(w *webhook) { w.ObjectSelector = labeled("app", "dns") }),
		"UnknownObjectOfOtherRule": row{
			reason: "the rule excludes it", webhook: newPods,
			request: admission.UpdateDefinitions("a.example.com"),
		}.with(func(w *webhook) { w.ObjectSelector = labeled("app", "dns") }),
		"Condition": row{
			reason: "the condition holds", webhook: newPods, request: created,
			want: admission.Matched,
		}.with(conditions("request.namespace == 'openshift-dns' && object.metadata.labels['app'] == 'dns'")),
		"ConditionFails": row{
			reason: "the condition does not hold", webhook: newPods,
			request: created,
		}.with(conditions("request.resource.resource != 'pods'")),
		"ConditionOnController": row{
			reason: "the user is the controller", webhook: newPods, request: created,
			want: admission.Matched,
		}.with(conditions("request.userInfo.username == 'system:serviceaccount:kube-system:replicaset-controller'")),
		"ConditionOnUnknownUser": row{
			reason: "the user is not known", webhook: newPods,
			request: admission.CreatePods([]metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-dns", Name: "bare"}}},
				"a"), want: admission.Uncertain,
		}.with(
			conditions("request.userInfo.username == 'x'")),
		"ConditionOnOperator": row{reason: "each operator writes its own status", webhook: called(rule("config.openshift.io", "v1", "*/status",
			update)), request: admission.UpdateOperators("status", nodes), want: admission.Uncertain}.with(
			conditions("request.userInfo.username == 'x'")),
		"ConditionOnKubelet": row{
			reason: "the kubelet is in its group", webhook: called(rule("", "v1", "nodes/status", update)),
			request: admission.ReportNodes(nodes),
		}.with(
			conditions("!('system:nodes' in request.userInfo.groups)")),
		"ConditionOnRun": row{
			reason:  "the guard of a preflight concerns requests of its own pods alone",
			webhook: called(rule("*", "*", "*/*", admissionregistrationv1.OperationAll)), request: admission.EvictPods(pods),
		}.with(
			conditions("request.dryRun || " + ownsignal.Requester("0123456789"))),
		"ConditionOnPodsOfRun": row{reason: "the guard of a preflight concerns its own pods alone", webhook: newPods, request: created}.with(
			conditions(ownsignal.Subject("0123456789"))),
		"ConditionOnOtherPod": row{reason: "the name of the pod that evicts is not known", webhook: called(rule("*", "*", "*/*",
			admissionregistrationv1.OperationAll)), request: admission.EvictPods(pods), want: admission.Uncertain}.with(
			conditions("request.dryRun || " + ownsignal.Requester("controller"))),
		"ConditionOnSpec": row{
			reason: "the spec is not known", webhook: newPods, request: created,
			want: admission.Uncertain,
		}.with(conditions("!has(object.spec.hostNetwork)")),
		"ConditionOnSpecAndOne": row{
			reason: "one condition that does not hold excludes the request, independent of the others", webhook: newPods,
			request: created,
		}.with(conditions("has(object.spec.hostNetwork)", "request.name == 'x'")),
		"ConditionErrs": row{
			reason: "an error may have another cause than in the API server", webhook: newPods, request: created,
			want: admission.Uncertain,
		}.with(conditions("object.metadata.labels['missing'] == 'x'")),
		"ConditionInvalid": row{
			reason: "an expression that does not compile", webhook: newPods, request: created,
			want: admission.Uncertain,
		}.with(conditions("1 +")),
		"ConditionOnAuthorizer": row{
			reason: "permissions are not known", webhook: newPods, request: created,
			want: admission.Uncertain,
		}.with(conditions("authorizer.group('').resource('pods').check('get').allowed()")),
		"ConditionCosts": row{
			reason: "the costs are limited", webhook: newPods, request: created,
			want: admission.Uncertain,
		}.with(conditions(costly())),
	} {
		t.Run(name, func(t *testing.T) {
			hook, err := admission.Webhook(tc.webhook)
			if err != nil {
				t.Fatal(err)
			}
			if got := matcher.Match(t.Context(), hook, tc.request[0]); got != tc.want {
				t.Errorf("%s: %q: match %d, want %d", tc.reason, tc.request[0].Action, got, tc.want)
			}
			if _, first := matcher.First(t.Context(), hook, []admission.Group{nil, tc.request}); first != tc.want {
				t.Errorf("%s: %q: first match %d, want %d", tc.reason, tc.request[0].Action, first, tc.want)
			}
		})
	}
}

// costly is an expression that costs more than the API server allows.
func costly() string {
	const list = "[1,2,3,4,5,6,7,8,9,10]"
	expression := "true"
	for i := range 7 {
		expression = fmt.Sprintf("%s.all(x%d, %s)", list, i, expression)
	}
	return expression
}

// FuzzConditions evaluates match conditions, which users write.
func FuzzConditions(f *testing.F) {
	for _, expression := range []string{"true", "1 +", "object.metadata.name == 'dns'", "object.spec.x", costly()} {
		f.Add(expression)
	}
	matcher := admission.NewMatcher([]metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "openshift-dns"}}})
	requests := admission.CreatePods(objects("openshift-dns", "dns"), "a")
	f.Fuzz(func(t *testing.T, expression string) {
		w := called(rule("", "v1", "pods", admissionregistrationv1.Create))
		conditions(expression)(&w)
		hook, err := admission.Webhook(w)
		if err != nil {
			t.Fatal(err)
		}
		if match := matcher.Match(t.Context(), hook, requests[0]); match < admission.Excluded || match > admission.Matched {
			t.Errorf("match %d", match)
		}
	})
}

// BenchmarkMatch matches 500 configurations with 100 webhooks each that exclude the 100
// namespaces of the cluster, of 10000.
func BenchmarkMatch(b *testing.B) {
	var namespaces, pods []metav1.PartialObjectMetadata
	for i := range 10_000 {
		name := fmt.Sprintf("namespace-%d", i)
		namespaces = append(namespaces, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"kubernetes.io/metadata.name": name},
		}})
		if i < 100 {
			pods = append(pods, objects(name, "dns")...)
		}
	}
	hooks := make([]*admission.Hook, 50_000)
	for i := range hooks {
		w := called(rule("", "v1", "pods", admissionregistrationv1.Create))
		w.NamespaceSelector = labeled("inject", "yes")
		hook, err := admission.Webhook(w)
		if err != nil {
			b.Fatal(err)
		}
		hooks[i] = hook
	}
	matcher := admission.NewMatcher(namespaces)
	groups := []admission.Group{admission.CreatePods(pods, "a"), admission.EvictPods(pods)}
	for b.Loop() {
		for _, hook := range hooks {
			if _, match := matcher.First(b.Context(), hook, groups); match != admission.Excluded {
				b.Fatalf("match %d", match)
			}
		}
	}
}
