package intrusion_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// webhook receives new pods of all namespaces.
func webhook(configuration, name, serviceNamespace, service string,
	changes ...func(*admissionregistrationv1.MutatingWebhook),
) admissionregistrationv1.MutatingWebhookConfiguration {
	w := admissionregistrationv1.MutatingWebhook{
		Name: name, FailurePolicy: new(admissionregistrationv1.Ignore), MatchPolicy: new(admissionregistrationv1.Equivalent),
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: serviceNamespace,
			Name:      service,
		}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
	}
	for _, change := range changes {
		change(&w)
	}
	return admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configuration},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{w},
	}
}

func kyverno(changes ...func(*admissionregistrationv1.MutatingWebhook)) admissionregistrationv1.MutatingWebhookConfiguration {
	return webhook("kyverno-resource-mutating-webhook-cfg", "mutate.kyverno.svc-ignore", "kyverno", "kyverno-svc", changes...)
}

func istio(changes ...func(*admissionregistrationv1.MutatingWebhook)) admissionregistrationv1.MutatingWebhookConfiguration {
	return webhook("istio-sidecar-injector", "rev.namespace.sidecar-injector.istio.io", "istio-system", "istiod", changes...)
}

func vault(changes ...func(*admissionregistrationv1.MutatingWebhook)) admissionregistrationv1.MutatingWebhookConfiguration {
	return webhook("vault-agent-injector-cfg", "vault.hashicorp.com", "vault", "vault-agent-injector-svc", changes...)
}

func onlyIn(namespace string) func(*admissionregistrationv1.MutatingWebhook) {
	return func(w *admissionregistrationv1.MutatingWebhook) {
		w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	}
}

func onlyLabeled(key string) func(*admissionregistrationv1.MutatingWebhook) {
	return func(w *admissionregistrationv1.MutatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key:      key,
			Operator: metav1.LabelSelectorOpExists,
		}}}
	}
}

// onImage depends on what is not known of the next pods.
func onImage(w *admissionregistrationv1.MutatingWebhook) {
	w.MatchConditions = []admissionregistrationv1.MatchCondition{{
		Name:       "image",
		Expression: "object.spec.containers.exists(c, c.image != '')",
	}}
}

func labeled(keys ...string) func(*workload) {
	return func(w *workload) {
		for _, key := range keys {
			w.pod.Labels[key] = "1"
		}
	}
}

func withContainer(name string) func(*workload) {
	return func(w *workload) { w.pod.Spec.Containers = append(w.pod.Spec.Containers, corev1.Container{Name: name}) }
}

func TestWebhooks(t *testing.T) {
	const patches, status = "policies.kyverno.io/last-applied-patches", "sidecar.istio.io/status"
	const ofKyverno, ofIstio, ofVault, ofLinkerd = "PlatformPodsWebhook-kyverno-resource-mutating-webhook-cfg",
		"PlatformPodsWebhook-istio-sidecar-injector",
		"PlatformPodsWebhook-vault-agent-injector-cfg", "PlatformPodsWebhook-linkerd-proxy-injector-webhook-config"
	type configuration = admissionregistrationv1.MutatingWebhookConfiguration
	mutating := func(w workload, all ...configuration) world { return world{workloads: []workload{w}, webhooks: all} }
	node := func(changes ...func(*workload)) workload { return workloadIn(network, changes...) }
	template := func(key string) func(*workload) {
		return func(w *workload) { w.template.Spec.Template.Annotations = map[string]string{key: ""} }
	}
	ofRelease := kyverno()
	ofRelease.Annotations = map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"}
	url := kyverno(func(w *admissionregistrationv1.MutatingWebhook) {
		w.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new("https://kyverno-svc.openshift-kyverno.svc:443/mutate")}
	})
	for name, tc := range map[string]row{
		"Known": {
			reason: "Kyverno mutates pods of every namespace", want: []string{ofKyverno}, world: mutating(node(annotated(patches)), kyverno()),
			message: []string{
				"kyverno-resource-mutating-webhook-cfg", "mutate.kyverno.svc-ignore (failurePolicy Ignore)",
				"1 namespace: openshift-ovn-kubernetes", "annotation " + patches,
			},
		},
		"Istio": {reason: "an annotation and a container", want: []string{ofIstio}, world: mutating(node(annotated(status),
			withContainer("istio-proxy")), istio()), message: []string{"annotation " + status, "container istio-proxy"}},
		"Linkerd": {
			reason: "the domain is one word", want: []string{ofLinkerd},
			world: mutating(node(annotated("linkerd.io/proxy-version")),
				webhook("linkerd-proxy-injector-webhook-config", "linkerd-proxy-injector.linkerd.io", "linkerd", "linkerd-proxy-injector")),
		},
		"Vault": {
			reason: "the domain is of a company", want: []string{ofVault},
			world: mutating(node(annotated("vault.hashicorp.com/agent-inject-status")), vault()),
		},
		"Label": {
			reason: "a label is a trace, too", want: []string{ofIstio},
			world: mutating(node(labeled("service.istio.io/canonical-name")), istio()), message: []string{"label service.istio.io/canonical-name"},
		},
		"Container": {reason: "only a webhook adds a container", want: []string{"PlatformPodsWebhook-agents"}, world: mutating(
			node(withContainer("telemetry")), webhook("agents", "add.example.com", "agents", "agents")), message: []string{"container telemetry"}},
		"InitContainer": {
			reason: "nor an init container", want: []string{"PlatformPodsWebhook-agents"},
			world: mutating(node(func(w *workload) { w.pod.Spec.InitContainers = []corev1.Container{{Name: "wait"}} }),
				webhook("agents", "add.example.com", "agents", "agents")), message: []string{"init container wait"},
		},
		"Either": {
			reason: "the container may be of both", want: []string{"PlatformPodsWebhook-agents", ofKyverno},
			world: mutating(node(withContainer("telemetry")), webhook("agents", "add.example.com", "agents", "agents"), kyverno()),
		},
		"NamedFirst": {
			reason: "the container has the name of one", want: []string{ofIstio},
			world: mutating(node(withContainer("istio-proxy")), istio(), kyverno()),
		},
		"DomainFirst": {
			reason: "both have a word of the domain, and one the telling one", want: []string{ofIstio},
			world: mutating(node(annotated("mesh.istio.io/a")), istio(), webhook("mesh-agents", "add.example.com", "mesh", "agents")),
		},
		"Condition": {
			reason: "whether it receives the next pods is not known, but it left its trace", want: []string{ofKyverno},
			world: mutating(node(annotated(patches)), kyverno(onImage)),
		},
		"KubeSystem": {
			reason: "users install in kube-system", want: []string{"PlatformPodsWebhook-kyverno-cfg"},
			world: mutating(node(annotated(patches)), webhook("kyverno-cfg", "mutate.kyverno.svc", "kube-system", "kyverno-svc")),
		},
		"UsersOperator": {
			reason: "and by OLM in openshift-operators", want: []string{"PlatformPodsWebhook-kyverno-cfg"},
			world: mutating(node(annotated(patches)), webhook("kyverno-cfg", "mutate.kyverno.svc", "openshift-operators", "kyverno-svc")),
		},
		"Scoped": {
			reason: "the webhook receives pods of one namespace of a user",
			world:  mutating(node(annotated(patches)), kyverno(onlyIn("team"))),
		},
		"ScopedAway": {reason: "and its pods are not the platform's", world: world{workloads: []workload{
			node(),
			workloadIn("team", annotated(patches), withContainer("a")),
		}, webhooks: []configuration{kyverno(onlyIn("team"))}}},
		"NoTrace": {reason: "the webhook receives the pod and does not change it", world: mutating(node(), kyverno(), istio())},
		"Calico": {
			reason: "the network has its annotations, too",
			world:  mutating(node(annotated("cni.projectcalico.org/podIP", "cni.projectcalico.org/containerID")), kyverno()),
		},
		"CNI": {reason: "and OpenShift's", world: mutating(node(annotated("k8s.v1.cni.cncf.io/network-status",
			"k8s.ovn.org/pod-networks", "openshift.io/scc=anyuid")), webhook("network-openshift-cncf", "cncf.ovn.example.com", "network", "cncf"))},
		"Template": {reason: "the template has it", world: mutating(node(annotated(patches), template(patches)), kyverno())},
		"Generic": {
			reason: "a word that every injector has names none",
			world:  mutating(node(annotated(status)), webhook("vault-sidecar-injector", "sidecar.vault.example", "vault", "sidecar")),
		},
		"Unselected": {
			reason: "the webhook selects a label that its program has added since, and the template does not have",
			world:  mutating(node(annotated(status), labeled("istio.io/rev")), istio(onlyLabeled("istio.io/rev"))),
		},
		"Uncertain": {
			reason: "whether it receives the pod is not known, and any webhook may have added the container",
			world:  mutating(node(withContainer("telemetry")), kyverno(onImage)),
		},
		"Earlier": {
			reason: "the pod is of an earlier template, which may have had the container",
			world:  mutating(node(withContainer("old"), func(w *workload) { w.pod.Labels["pod-template-generation"] = "1" }), kyverno()),
		},
		"NoController": {
			reason: "nothing is known of what a person requested",
			world:  mutating(node(withContainer("a"), func(w *workload) { w.pod.OwnerReferences = nil }), kyverno()),
		},
		"OtherOwner": {
			reason: "nor of what another controller requests",
			world:  mutating(node(withContainer("a"), func(w *workload) { w.pod.OwnerReferences[0].Kind = "Cluster" }), kyverno()),
		},
		"Mirror": {
			reason: "a static pod is not created again",
			world:  mutating(node(annotated(patches, "kubernetes.io/config.mirror=1")), kyverno()),
		},
		"OfPlatform": {
			reason: "an operator of the platform has the webhook",
			world:  mutating(node(withContainer("a")), webhook("injector", "a.b.c", "openshift-sriov-network-operator", "injector")),
		},
		"OfURL":     {reason: "also where it names it by URL", world: mutating(node(annotated(patches)), url)},
		"OfRelease": {reason: "the release has the webhook", world: mutating(node(annotated(patches)), ofRelease)},
		"Deployments": {reason: "the webhook receives no pods", world: mutating(node(annotated(patches)),
			kyverno(func(w *admissionregistrationv1.MutatingWebhook) { w.Rules[0].Resources = []string{"deployments"} }))},
		"NoWebhook": {
			reason: "the program was removed, so that new pods have no trace",
			world:  mutating(node(annotated(patches), withContainer("istio-proxy"))),
		},
	} {
		t.Run(name, func(t *testing.T) { tc.test(t, "UsersWebhookChangesPlatformPods") })
	}
}

func TestWebhooksBounded(t *testing.T) {
	w := world{webhooks: []admissionregistrationv1.MutatingWebhookConfiguration{kyverno()}}
	w.webhooks[0].Webhooks[0].Name = "mutate.kyverno.svc\x1b[2J" + strings.Repeat("x", 5000)
	for i := range 60 {
		w.workloads = append(w.workloads, workloadIn(fmt.Sprintf("openshift-%03d", i),
			annotated(fmt.Sprintf("policies.kyverno.io/%d%s", i, strings.Repeat("x", 5000))), withContainer(fmt.Sprint("kyverno\x1b[2J", i))))
	}
	findings := run(t, w)
	bounded(t, findings)
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "60 pods in 60 namespaces") {
		t.Error(checktest.Messages(findings))
	}
}

// What cannot be read is stated, and what was read is judged besides.
func TestUnread(t *testing.T) {
	w := world{
		workloads:   []workload{workloadIn(network, annotated("policies.kyverno.io/last-applied-patches", "openshift.io/scc=anyuid"))},
		constraints: admitting(constraint("hardened", fields{"priority": 20, "groups": allUsers}), workload{}).constraints,
		webhooks:    []admissionregistrationv1.MutatingWebhookConfiguration{kyverno()},
		policies:    []fields{made("NetworkPolicy", network, "deny", "oc")},
	}
	constraints := map[string]checktest.Result{"PlatformPodsSCC-hardened": {Outcome: preflight.Warn, Reason: "UsersSCCForPlatformPods"}}
	webhooks := map[string]checktest.Result{"PlatformPodsWebhook-kyverno-resource-mutating-webhook-cfg": {
		Outcome: preflight.Warn,
		Reason:  "UsersWebhookChangesPlatformPods",
	}}
	restrictions := map[string]checktest.Result{"PlatformRestrictions-" + network: {Outcome: preflight.Warn, Reason: "UsersRestrictPlatform"}}
	unread := map[string]checktest.Result{"PlatformPods": {Outcome: preflight.Warn, Reason: "Unread"}}
	for name, tc := range map[string]struct {
		reason  string
		denied  map[string]int
		want    []map[string]checktest.Result
		message []string
	}{
		"All": {reason: "all was read", want: []map[string]checktest.Result{constraints, webhooks, restrictions}},
		"Constraints": {
			reason: "no SCC may be read", denied: map[string]int{constraintsPath: http.StatusForbidden},
			want: []map[string]checktest.Result{webhooks, restrictions, unread}, message: []string{"SecurityContextConstraints"},
		},
		"NotServed": {
			reason: "without the API there is no SCC", denied: map[string]int{constraintsPath: http.StatusNotFound},
			want: []map[string]checktest.Result{webhooks, restrictions},
		},
		"Pods": {
			reason: "without pods nothing is known of them", denied: map[string]int{podsPath: http.StatusForbidden},
			want: []map[string]checktest.Result{restrictions, unread},
		},
		"Templates": {
			reason: "the pods have their SCC besides", denied: map[string]int{daemonSetsPath: http.StatusForbidden},
			want: []map[string]checktest.Result{constraints, restrictions, unread},
		},
		"Webhooks": {
			reason: "no webhook may be read", denied: map[string]int{webhooksPath: http.StatusForbidden},
			want: []map[string]checktest.Result{constraints, restrictions, unread},
		},
		"Namespaces": {
			reason: "what a webhook selects is not known", denied: map[string]int{"/api/v1/namespaces": http.StatusForbidden},
			want: []map[string]checktest.Result{constraints, restrictions, unread},
		},
		"Restrictions": {
			reason: "two kinds may not be read", denied: map[string]int{
				policiesPath: http.StatusForbidden,
				quotasPath:   http.StatusForbidden,
			}, want: []map[string]checktest.Result{constraints, webhooks, unread},
			message: []string{"networkpolicies, resourcequotas"},
		},
		"None": {
			reason: "nothing may be read", denied: map[string]int{
				constraintsPath: http.StatusForbidden, podsPath: http.StatusForbidden,
				webhooksPath: http.StatusForbidden, policiesPath: http.StatusForbidden, quotasPath: http.StatusForbidden,
				rangesPath: http.StatusForbidden,
			},
			want: []map[string]checktest.Result{unread},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := w
			w.denied = tc.denied
			findings := run(t, w)
			want := map[string]checktest.Result{}
			for _, each := range tc.want {
				maps.Copy(want, each)
			}
			if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\n%s", tc.reason, diff, checktest.Messages(findings))
			}
			checktest.Contains(t, tc.reason, checktest.Messages(findings), tc.message)
			bounded(t, findings)
		})
	}
	skipped := map[string]checktest.Result{"PlatformPods": {Outcome: preflight.Skipped, Reason: "PlainKubernetes"}}
	w.kubernetes = true
	if diff := cmp.Diff(skipped, checktest.Results(run(t, w))); diff != "" {
		t.Errorf("a cluster that is not OpenShift: -want, +got:\n%s", diff)
	}
}
