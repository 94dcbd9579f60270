package sample

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = catalog.Reasons("A Service, or a webhook by its Service, has a problem after the update that it did not have before.", `
NoEndpoints | The Service selects no pod; its workload may be scaled to zero on purpose. | Scale the workload, or delete the webhook configuration.
NoCABundle | The webhook has no caBundle, so the API server trusts no certificate of its Service. | Check what injects it: the service CA operator, or
	cert-manager. | oc describe validatingwebhookconfiguration NAME
NoReadyEndpoints | No pod of the Service is ready, or the Service or its port does not exist. | Check the pods that it selects. | oc describe service NAME -n NAMESPACE`)

// noReadyEndpoints is the reason of a Service, and of a webhook by its Service.
const noReadyEndpoints = "NoReadyEndpoints"

// serving are the Services, the APIs and the webhooks.
type serving struct {
	sampler  *sampler
	backends *backend.Backends
	// pods are those that have not ended and are not being deleted, by their labels and by their namespaces: each Service is compared
	// with few.
	pods map[label][]int
}

// label is a label in a namespace; of no key for all pods of that.
type label struct{ namespace, key, value string }

func (v *serving) read(ctx context.Context) {
	s := v.sampler
	services := read(ctx, s, s.cluster.Services, "Services", baseline.Service, baseline.ValidatingWebhook, baseline.MutatingWebhook)
	endpoints := read(ctx, s, s.cluster.EndpointSlices, "EndpointSlices", baseline.Service, baseline.ValidatingWebhook,
		baseline.MutatingWebhook)
	v.backends = backend.NewBackends(services, endpoints)
	read(ctx, s, s.cluster.Pods, "pods", baseline.Service, baseline.ValidatingWebhook, baseline.MutatingWebhook)
	v.pods = podsByLabel(s.pods)
	v.services(ctx, kept(s, baseline.Service, services), endpoints)
	v.webhooks(ctx)
	apis := read(ctx, s, s.cluster.APIServices, "APIServices", baseline.APIService)
	for i := range apis {
		object := baseline.Object{}
		s.describe(&object, &apis[i], "apiregistration.k8s.io", "apiservices")
		if service := apis[i].Spec.Service; service != nil {
			object.Detail = fact(service.Namespace + "/" + service.Name)
		}
		if of := conditionsOf(apis[i].Status.Conditions, ofStandard).of("Available"); of.Status != conditionTrue {
			object.Add(of.problem("Unavailable"))
		}
		s.keep(baseline.Key{Kind: baseline.APIService, Name: apis[i].Name}, object)
	}
	v.conversions(ctx)
}

// services are all Services. One that selects pods of which there are none may be scaled down by choice: its problem has another reason.
func (v *serving) services(ctx context.Context, services []corev1.Service, endpoints []discoveryv1.EndpointSlice) {
	ready := readyEndpoints(endpoints)
	for i := range services {
		of := &services[i]
		object := baseline.Object{Ready: ready[name{of.Namespace, of.Name}], Revision: selectionOf(of.Spec.Selector)}
		selects := len(of.Spec.Selector) > 0 && of.Spec.Type != corev1.ServiceTypeExternalName
		v.sampler.describe(&object, of, "", "services")
		if selects {
			object.Refs = v.selected(of.Namespace, labels.SelectorFromSet(of.Spec.Selector))
		}
		if of.Spec.Type == corev1.ServiceTypeLoadBalancer && len(of.Status.LoadBalancer.Ingress) == 0 {
			object.Add(baseline.Problem{Reason: "NoAddress", Message: "its load balancer has no address"})
		}
		if selects && v.ephemeral(of.Namespace, labels.SelectorFromSet(of.Spec.Selector)) {
			object.Detail = baseline.Ephemeral
		}
		if selects && object.Ready == 0 && v.listed(ctx, of.Namespace) {
			object.Add(v.endpointless(of.Namespace, labels.SelectorFromSet(of.Spec.Selector)))
		}
		v.sampler.keep(baseline.Key{Kind: baseline.Service, Namespace: of.Namespace, Name: of.Name}, object)
	}
}

// selectionOf identifies the pods that a Service selects; empty for one without a selector, whose endpoints another process makes.
func selectionOf(selector map[string]string) string {
	if len(selector) == 0 {
		return ""
	}
	const bytes = 4 // one of many changes may not be noticed
	sum := sha256.Sum256([]byte(labels.Set(selector).String()))
	return hex.EncodeToString(sum[:bytes])
}

// readyEndpoints counts the ready endpoints of Services. One with addresses of several types has each endpoint as often.
func readyEndpoints(all []discoveryv1.EndpointSlice) map[name]int32 {
	type family struct {
		name

		addresses discoveryv1.AddressType
	}
	counts := map[family]int32{}
	ready := map[name]int32{}
	for i := range all {
		of := family{name{all[i].Namespace, all[i].Labels[discoveryv1.LabelServiceName]}, all[i].AddressType}
		for j := range all[i].Endpoints {
			if condition := all[i].Endpoints[j].Conditions.Ready; condition == nil || *condition {
				counts[of]++
			}
		}
		ready[of.name] = max(ready[of.name], counts[of])
	}
	return ready
}

// podsByLabel are the places of the pods in their list.
func podsByLabel(pods []corev1.Pod) map[label][]int {
	found := map[label][]int{}
	for i := range pods {
		if pods[i].DeletionTimestamp != nil || hasEnded(&pods[i]) {
			continue
		}
		at := label{namespace: pods[i].Namespace}
		found[at] = append(found[at], i)
		for at.key, at.value = range pods[i].Labels {
			found[at] = append(found[at], i)
		}
	}
	return found
}

// selects are the pods of a namespace that a selector selects.
func (v *serving) selects(namespace string, selector labels.Selector) iter.Seq[*corev1.Pod] {
	requirements, selectable := selector.Requirements()
	candidates := v.pods[label{namespace: namespace}]
	for _, each := range requirements {
		if value, exact := each.Values().PopAny(); exact && each.Operator() == selection.Equals {
			if some := v.pods[label{namespace, each.Key(), value}]; len(some) < len(candidates) {
				candidates = some
			}
		}
	}
	return func(yield func(*corev1.Pod) bool) {
		for _, at := range candidates {
			pod := &v.sampler.pods[at]
			if selectable && selector.Matches(labels.Set(pod.Labels)) && !yield(pod) {
				return
			}
		}
	}
}

// selected are the controllers of the pods that a selector selects, sorted.
func (v *serving) selected(namespace string, selector labels.Selector) []baseline.Key {
	found := map[baseline.Key]bool{}
	for pod := range v.selects(namespace, selector) {
		if controller := v.sampler.controllers[pod]; controller != (baseline.Key{}) {
			found[controller] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), baseline.Key.Compare)
}

// conversions adds the problem of a CustomResourceDefinition whose webhook has no Service that can respond.
func (v *serving) conversions(ctx context.Context) {
	found := read(ctx, v.sampler, v.sampler.cluster.Definitions, "CustomResourceDefinitions", baseline.CustomResourceDefinition)
	for i := range found {
		webhook := found[i].Webhook()
		key := baseline.Key{Kind: baseline.CustomResourceDefinition, Name: found[i].Name}
		object, exists := v.sampler.state.Objects[key]
		if webhook == nil || !exists {
			continue
		}
		v.webhook(ctx, &object, admissionregistrationv1.WebhookClientConfig{Service: serviceOf(webhook), URL: webhook.URL})
		v.sampler.state.Objects[key] = object
	}
}

func serviceOf(webhook *apiextensionsv1.WebhookClientConfig) *admissionregistrationv1.ServiceReference {
	if webhook.Service == nil {
		return nil
	}
	return &admissionregistrationv1.ServiceReference{
		Namespace: webhook.Service.Namespace, Name: webhook.Service.Name,
		Path: webhook.Service.Path, Port: webhook.Service.Port,
	}
}

// isEphemeral reports whether nothing makes a pod again: it has no owner, or a Job, which ends. Some owners that make pods
// again are no controllers of them, such as a CatalogSource.
func isEphemeral(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind != "Job" || !strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/")
	})
}

// ephemeral reports whether a selector selects pods, and only those that nothing makes again.
func (v *serving) ephemeral(namespace string, selector labels.Selector) bool {
	some := false
	for pod := range v.selects(namespace, selector) {
		if !isEphemeral(pod) {
			return false
		}
		some = true
	}
	return some
}

// endpointless is the problem of a Service without a ready endpoint, by the pods that it selects.
func (v *serving) endpointless(namespace string, selector labels.Selector) baseline.Problem {
	for range v.selects(namespace, selector) {
		return baseline.Problem{Reason: noReadyEndpoints, Message: "none of its endpoints is ready"}
	}
	return baseline.Problem{Reason: baseline.NoEndpoints, Message: "it selects no pod"}
}

// listed reports whether all Services, EndpointSlices and pods of a namespace were read, so that one which is not there does not exist. An
// archive may have all of a namespace without all of the cluster.
func (v *serving) listed(ctx context.Context, namespace string) bool {
	if v.sampler.complete(baseline.Service) {
		return true
	}
	err := v.sampler.cluster.Listed(ctx, namespace, corev1.SchemeGroupVersion.WithResource("services"),
		discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), corev1.SchemeGroupVersion.WithResource("pods"))
	return err == nil
}

// webhooks are without generation, which controllers change that rotate certificates.
func (v *serving) webhooks(ctx context.Context) {
	validating := kept(v.sampler, baseline.ValidatingWebhook,
		readAs[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, v.sampler, validatingWebhooks(), baseline.ValidatingWebhook))
	for i := range validating {
		object := baseline.Object{}
		v.sampler.describe(&object, &validating[i], admissionregistrationv1.GroupName, "validatingwebhookconfigurations")
		for j := range validating[i].Webhooks {
			addBundle(&object, validating[i].Webhooks[j].ClientConfig)
			v.webhook(ctx, &object, validating[i].Webhooks[j].ClientConfig)
		}
		v.sampler.keep(baseline.Key{Kind: baseline.ValidatingWebhook, Name: validating[i].Name}, object)
	}
	mutating := kept(v.sampler, baseline.MutatingWebhook,
		readAs[admissionregistrationv1.MutatingWebhookConfiguration](ctx, v.sampler, mutatingWebhooks(), baseline.MutatingWebhook))
	for i := range mutating {
		object := baseline.Object{}
		v.sampler.describe(&object, &mutating[i], admissionregistrationv1.GroupName, "mutatingwebhookconfigurations")
		for j := range mutating[i].Webhooks {
			addBundle(&object, mutating[i].Webhooks[j].ClientConfig)
			v.webhook(ctx, &object, mutating[i].Webhooks[j].ClientConfig)
		}
		v.sampler.keep(baseline.Key{Kind: baseline.MutatingWebhook, Name: mutating[i].Name}, object)
	}
}

// addBundle adds the problem of a webhook behind a Service whose certificate nothing can verify: only a public certificate, which
// no Service has, is verified without a bundle.
func addBundle(object *baseline.Object, config admissionregistrationv1.WebhookClientConfig) {
	if config.Service != nil && len(config.CABundle) == 0 {
		object.Add(baseline.Problem{Reason: "NoCABundle", Message: fmt.Sprintf("a webhook with Service %s/%s has no CA certificates to "+
			"verify it",
			words.External(config.Service.Namespace), words.External(config.Service.Name))})
	}
}

// errUnlisted is why the Service of a webhook is not evaluated.
var errUnlisted = errors.New("the Service of a webhook could not be read")

// webhook adds the problem of a configuration one of whose webhooks has no Service that can respond.
func (v *serving) webhook(ctx context.Context, object *baseline.Object, config admissionregistrationv1.WebhookClientConfig) {
	reference, ok := backend.ReferenceOf(config)
	if !ok {
		return
	}
	object.Detail = words.External(reference.String())
	reason, state, found := noReadyEndpoints, "", v.backends.Of(reference)
	switch found.State {
	case backend.Missing:
		state = "does not exist"
	case backend.NoPort:
		state = fmt.Sprintf("has no port %d", reference.Port)
	case backend.Empty:
		reason, state = v.endpointless(reference.Namespace, found.Selector).Reason, "has no ready endpoint"
	case backend.Serving, backend.Elsewhere:
		return
	}
	if !v.listed(ctx, reference.Namespace) {
		v.sampler.unread(errUnlisted, baseline.ValidatingWebhook, baseline.MutatingWebhook)
		return
	}
	object.Add(baseline.Problem{Reason: reason, Message: fmt.Sprintf("its Service %s %s", words.External(reference.String()), state)})
}
