package intrusion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	namePlatformPodsWebhook = finding.NewName("PlatformPodsWebhook",
		"A mutating webhook of a user, found by the check PlatformPods: PlatformPodsWebhook-<configuration>.")

	reasonUsersWebhook = finding.NewReason("UsersWebhookChangesPlatformPods", finding.Explanation{
		Meaning: "A mutating webhook of a user changes pods of the platform: running pods have a container, a label or an annotation " +
			"that their template does not have. The update recreates these pods from other templates, for which the webhook and its " +
			"policies were not written.",
		Cause:  "The namespaceSelector of the webhook does not exclude the namespaces of the platform.",
		Remedy: "Exclude the openshift-* and kube-* namespaces from the webhook: `oc get mutatingwebhookconfiguration NAME -o yaml`.",
	})
)

// injector is a mutating webhook of a user.
type injector struct {
	configuration, name, policy string
	hook                        *admission.Hook
	words                       []string
}

// generic are words in the names of webhooks of any program.
func generic() []string {
	return []string{
		"admission", "cluster", "controller", "default", "inject", "injector", "internal", "kubernetes", "kube", "mutate", "mutating", "mutation",
		"openshift",
		"operator", "pods", "policies", "policy", "proxy", "resource", "security", "service", "sidecar", "system", "webhook", "webhooks",
	}
}

// wordsOf are the words of a name that may identify a program, in their order.
func wordsOf(name string) []string {
	all := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '.' || r == '-' || r == '/' || r == ':' })
	return slices.DeleteFunc(all, func(word string) bool { return len(word) < 4 || slices.Contains(generic(), word) })
}

// injectors are the mutating webhooks that are neither of the release nor of an operator in a namespace of the platform.
func (i *inspection) injectors(ctx context.Context) ([]injector, error) {
	all, err := snapshot.List[admissionregistrationv1.MutatingWebhookConfiguration](ctx, i.cluster,
		admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"))
	var found []injector
	for at := range all {
		for of := range all[at].Webhooks {
			webhook := &all[at].Webhooks[of]
			service := serviceOf(webhook)
			ofPlatform := strings.HasPrefix(service.Namespace, "openshift-") && service.Namespace != "openshift-operators" // where users install
			if ofPlatform || check.OfRelease(&all[at]) {
				continue
			}
			added, err := injectorOf(all[at].Name, webhook, service)
			if err != nil {
				return nil, err
			}
			found = append(found, added)
		}
	}
	return found, err
}

// serviceOf is the Service of a webhook; empty for one that is not in the cluster.
func serviceOf(webhook *admissionregistrationv1.MutatingWebhook) backend.Reference {
	service, ok := backend.ReferenceOf(webhook.ClientConfig)
	if !ok {
		service, _ = backend.ReferenceIn(webhook.ClientConfig)
	}
	return service
}

func injectorOf(configuration string, webhook *admissionregistrationv1.MutatingWebhook, service backend.Reference) (injector, error) {
	hook, err := admission.Webhook(admission.Mutating(webhook))
	if err != nil {
		return injector{}, fmt.Errorf("a selector of webhook %q of MutatingWebhookConfiguration %q is invalid: %w", webhook.Name, configuration,
			err)
	}
	made := injector{configuration: configuration, name: webhook.Name, policy: string(admissionregistrationv1.Fail), hook: hook}
	if webhook.FailurePolicy != nil {
		made.policy = string(*webhook.FailurePolicy)
	}
	made.words = wordsOf(strings.Join([]string{configuration, webhook.Name, service.Namespace, service.Name}, "."))
	return made, nil
}

// trace is a part of a pod that its template does not have.
type trace struct {
	text string
	// words are those that name the program, the most telling ones last: the domain of a key, without its top level.
	words []string
	// plain is true where any webhook that receives the pod may have left it, so that no word need name the program.
	plain bool
}

// traces of a pod. A label or an annotation may be of a controller, which updates pods, so its domain must name the webhook.
func traces(pod created) []trace {
	if pod.template == nil {
		return nil
	}
	var found []trace
	keys := func(kind string, has, template map[string]string) {
		for key := range has {
			if _, known := template[key]; known || !snapshot.Foreign(key) {
				continue
			}
			domain, _, _ := strings.Cut(key, "/")
			domain = domain[:max(strings.LastIndexByte(domain, '.'), 0)]
			found = append(found, trace{text: kind + " " + key, words: wordsOf(domain)})
		}
	}
	keys("annotation", pod.Annotations, pod.template.Annotations)
	keys("label", pod.Labels, pod.template.Labels)
	containers := func(kind string, has, template []corev1.Container) {
		for at := range has {
			if !slices.ContainsFunc(template, func(each corev1.Container) bool { return each.Name == has[at].Name }) {
				found = append(found, trace{text: kind + " " + has[at].Name, words: wordsOf(has[at].Name), plain: true})
			}
		}
	}
	containers("container", pod.Spec.Containers, pod.template.Spec.Containers)
	containers("init container", pod.Spec.InitContainers, pod.template.Spec.InitContainers)
	return found
}

// receiver is a webhook that receives the request for a pod, or may do so.
type receiver struct {
	*injector

	match admission.Match
}

// origins are the webhooks that left a trace: those with the most telling word of it.
func (t trace) origins(receivers []receiver) []*injector {
	for _, word := range slices.Backward(t.words) {
		var named []*injector
		for _, each := range receivers {
			if slices.Contains(each.words, word) {
				named = append(named, each.injector)
			}
		}
		if named != nil {
			return named
		}
	}
	var any []*injector
	for _, each := range receivers {
		if t.plain && each.match == admission.Matched {
			any = append(any, each.injector)
		}
	}
	return any
}

// changed lists the changes by the webhooks of a configuration.
type changed struct {
	configuration                string
	webhooks, namespaces, traces map[string]bool
	pods                         map[*corev1.Pod]bool
}

// webhooks returns a finding for each configuration whose webhooks have left traces on pods of the platform.
func (i *inspection) webhooks(ctx context.Context, pods []created) []finding.Finding {
	injectors, err := i.injectors(ctx)
	if !i.lists("MutatingWebhookConfigurations", err) || len(injectors) == 0 {
		return nil
	}
	namespaces, err := i.cluster.Namespaces(ctx)
	if !i.lists("namespaces", err) {
		return nil
	}
	matcher := admission.NewMatcher(namespaces)
	receivers := map[*corev1.PodTemplateSpec][]receiver{}
	found := map[string]*changed{}
	for _, pod := range pods {
		for _, each := range traces(pod) {
			if _, known := receivers[pod.template]; !known {
				receivers[pod.template] = receiversOf(ctx, matcher, injectors, pod)
			}
			for _, origin := range each.origins(receivers[pod.template]) {
				origin.record(found, pod, each)
			}
		}
	}
	var findings []finding.Finding
	for at := range injectors { // in the order of the list
		if of := found[injectors[at].configuration]; of != nil {
			findings = append(findings, of.describe())
			delete(found, of.configuration)
		}
	}
	return findings
}

// receiversOf are the webhooks that receive the request which creates a pod, as its controller makes it.
func receiversOf(ctx context.Context, matcher *admission.Matcher, injectors []injector, pod created) []receiver {
	like := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, Labels: pod.template.Labels, OwnerReferences: pod.OwnerReferences,
	}}
	request := admission.CreatePods([]metav1.PartialObjectMetadata{like}, "")[0]
	var found []receiver
	for at := range injectors {
		if match := matcher.Match(ctx, injectors[at].hook, request); match != admission.Excluded {
			found = append(found, receiver{&injectors[at], match})
		}
	}
	return found
}

func (i *injector) record(in map[string]*changed, pod created, by trace) {
	of := in[i.configuration]
	if of == nil {
		of = &changed{
			configuration: i.configuration, webhooks: map[string]bool{}, namespaces: map[string]bool{}, traces: map[string]bool{},
			pods: map[*corev1.Pod]bool{},
		}
		in[i.configuration] = of
	}
	of.webhooks[fmt.Sprintf("%s (failurePolicy %s)", i.name, i.policy)] = true
	of.namespaces[pod.Namespace] = true
	of.traces[by.text] = true
	of.pods[pod.Pod] = true
}

func (c *changed) describe() finding.Finding {
	name := words.Line(c.configuration, maxText)
	return finding.Warn(reasonUsersWebhook,
		"MutatingWebhookConfiguration %q changes pods of the platform when they are created, by webhook %s: %s in %s differ from their "+
			"template: %s",
		name, texts(c.webhooks), words.Count(len(c.pods), "pod"), places(c.namespaces), texts(c.traces)).
		Named(finding.NameOf(namePlatformPodsWebhook, c.configuration)).
		Remedy("Exclude the openshift-* and kube-* namespaces from MutatingWebhookConfiguration %s, with namespaceSelector or in the "+
			"configuration of the program that writes it. Then restart the workloads that it changed.", name).
		Do(finding.Read("oc get mutatingwebhookconfiguration %s -o yaml", c.configuration)).
		About(finding.Object{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration",
			Name: c.configuration,
		})
}
