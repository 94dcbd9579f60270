package sample

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/words"
)

// noReadyEndpoints is the reason of a Service, and of a webhook by its Service.
const noReadyEndpoints = "NoReadyEndpoints"

// serving are the Services, the APIs and the webhooks.
func (s *sampler) serving(ctx context.Context) {
	services := read(ctx, s, s.cluster.Services, "Services", baseline.Service, baseline.ValidatingWebhook, baseline.MutatingWebhook)
	endpoints := read(ctx, s, s.cluster.EndpointSlices, "EndpointSlices", baseline.Service, baseline.ValidatingWebhook, baseline.MutatingWebhook)
	pods := podsByNamespace(read(ctx, s, s.cluster.Pods, "pods", baseline.Service, baseline.ValidatingWebhook, baseline.MutatingWebhook))
	s.services(ctx, services, readyEndpoints(endpoints), pods)
	s.webhooks(ctx, backends{Backends: backend.NewBackends(services, endpoints), pods: pods})
	apis := read(ctx, s, s.cluster.APIServices, "APIServices", baseline.APIService)
	for i := range apis {
		object := baseline.Object{}
		if of := conditionsOf(apis[i].Status.Conditions, ofStandard).of("Available"); of.Status != conditionTrue {
			object.Add(of.problem("Unavailable"))
		}
		s.keep(baseline.Key{Kind: baseline.APIService, Name: apis[i].Name}, object)
	}
	definitions := read(ctx, s, s.cluster.CustomResourceDefinitions, "CustomResourceDefinitions", baseline.CustomResourceDefinition)
	for i := range definitions {
		s.keep(baseline.Key{Kind: baseline.CustomResourceDefinition, Name: definitions[i].Name}, baseline.Object{Generation: definitions[i].Generation})
	}
}

// services are all Services. One that selects pods of which there are none may be scaled down by choice: its problem has another reason.
func (s *sampler) services(ctx context.Context, services []corev1.Service, ready map[name]int32, pods map[string][]labels.Set) {
	for i := range services {
		of := &services[i]
		object := baseline.Object{Ready: ready[name{of.Namespace, of.Name}]}
		selects := len(of.Spec.Selector) > 0 && of.Spec.Type != corev1.ServiceTypeExternalName
		if selects && object.Ready == 0 && s.listed(ctx, of.Namespace) {
			object.Add(endpointless(labels.SelectorFromSet(of.Spec.Selector), pods[of.Namespace]))
		}
		s.keep(baseline.Key{Kind: baseline.Service, Namespace: of.Namespace, Name: of.Name}, object)
	}
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

// podsByNamespace are the labels of the pods that have not ended and are not being deleted.
func podsByNamespace(pods []corev1.Pod) map[string][]labels.Set {
	found := map[string][]labels.Set{}
	for i := range pods {
		if pods[i].DeletionTimestamp == nil && !hasEnded(&pods[i]) {
			found[pods[i].Namespace] = append(found[pods[i].Namespace], pods[i].Labels)
		}
	}
	return found
}

// endpointless is the problem of a Service without a ready endpoint, by the pods that it selects.
func endpointless(selects labels.Selector, pods []labels.Set) baseline.Problem {
	if slices.ContainsFunc(pods, func(pod labels.Set) bool { return selects.Matches(pod) }) {
		return baseline.Problem{Reason: noReadyEndpoints, Message: "none of its endpoints is ready"}
	}
	return baseline.Problem{Reason: baseline.NoEndpoints, Message: "it selects no pod"}
}

// listed reports whether all Services, EndpointSlices and pods of a namespace were read, so that one which is not there does not exist. An
// archive may have all of a namespace without all of the cluster.
func (s *sampler) listed(ctx context.Context, namespace string) bool {
	if s.complete(baseline.Service) {
		return true
	}
	err := s.cluster.Listed(ctx, namespace, corev1.SchemeGroupVersion.WithResource("services"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), corev1.SchemeGroupVersion.WithResource("pods"))
	return err == nil
}

// backends are what serves webhooks, and the labels of the pods in each namespace.
type backends struct {
	*backend.Backends

	pods map[string][]labels.Set
}

func (s *sampler) webhooks(ctx context.Context, backends backends) {
	validating := readAs[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, s, validatingWebhooks(), baseline.ValidatingWebhook)
	for i := range validating {
		object := baseline.Object{Generation: validating[i].Generation}
		for j := range validating[i].Webhooks {
			s.webhook(ctx, &object, validating[i].Webhooks[j].ClientConfig, backends)
		}
		s.keep(baseline.Key{Kind: baseline.ValidatingWebhook, Name: validating[i].Name}, object)
	}
	mutating := readAs[admissionregistrationv1.MutatingWebhookConfiguration](ctx, s, mutatingWebhooks(), baseline.MutatingWebhook)
	for i := range mutating {
		object := baseline.Object{Generation: mutating[i].Generation}
		for j := range mutating[i].Webhooks {
			s.webhook(ctx, &object, mutating[i].Webhooks[j].ClientConfig, backends)
		}
		s.keep(baseline.Key{Kind: baseline.MutatingWebhook, Name: mutating[i].Name}, object)
	}
}

// errUnlisted is why the Service of a webhook is not judged.
var errUnlisted = errors.New("the Service of a webhook could not be read")

// webhook adds the problem of a configuration one of whose webhooks has no Service that can respond.
func (s *sampler) webhook(ctx context.Context, object *baseline.Object, config admissionregistrationv1.WebhookClientConfig, backends backends) {
	reference, ok := backend.ReferenceOf(config)
	if !ok {
		return
	}
	object.Detail = words.External(reference.NamespacedName.String())
	reason, state, found := noReadyEndpoints, "", backends.Of(reference)
	switch found.State {
	case backend.Missing:
		state = "does not exist"
	case backend.NoPort:
		state = fmt.Sprintf("has no port %d", reference.Port)
	case backend.Empty:
		reason, state = endpointless(found.Selector, backends.pods[reference.Namespace]).Reason, "has no ready endpoint"
	case backend.Serving, backend.Elsewhere:
		return
	}
	if !s.listed(ctx, reference.Namespace) {
		s.unread(errUnlisted, baseline.ValidatingWebhook, baseline.MutatingWebhook)
		return
	}
	object.Add(baseline.Problem{Reason: reason, Message: fmt.Sprintf("its Service %s %s", words.External(reference.String()), state)})
}
