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
	s.services(ctx, services, endpoints)
	s.webhooks(ctx, backend.NewBackends(services, endpoints))
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

// services are all Services. One that selects pods of which there are none is scaled down by choice, or its workload has the problem.
func (s *sampler) services(ctx context.Context, services []corev1.Service, endpoints []discoveryv1.EndpointSlice) {
	ready := readyEndpoints(endpoints)
	pods := podsByNamespace(read(ctx, s, s.cluster.Pods, "pods", baseline.Service))
	for i := range services {
		of := &services[i]
		object := baseline.Object{Ready: ready[name{of.Namespace, of.Name}]}
		selects := len(of.Spec.Selector) > 0 && of.Spec.Type != corev1.ServiceTypeExternalName
		if selects && object.Ready == 0 && selectsAny(of.Spec.Selector, pods[of.Namespace]) && s.listed(ctx, of.Namespace) {
			object.Add(baseline.Problem{Reason: noReadyEndpoints, Message: "none of its endpoints is ready"})
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

func selectsAny(selector map[string]string, pods []labels.Set) bool {
	selects := labels.SelectorFromSet(selector)
	return slices.ContainsFunc(pods, func(pod labels.Set) bool { return selects.Matches(pod) })
}

// listed reports whether all Services and EndpointSlices of a namespace were read, so that one which is not there does not exist. An
// archive may have all of a namespace without all of the cluster.
func (s *sampler) listed(ctx context.Context, namespace string) bool {
	if s.complete(baseline.Service) {
		return true
	}
	err := s.cluster.Listed(ctx, namespace, corev1.SchemeGroupVersion.WithResource("services"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices"))
	return err == nil
}

func (s *sampler) webhooks(ctx context.Context, backends *backend.Backends) {
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
func (s *sampler) webhook(ctx context.Context, object *baseline.Object, config admissionregistrationv1.WebhookClientConfig, backends *backend.Backends) {
	reference, ok := backend.ReferenceOf(config)
	if !ok {
		return
	}
	state := ""
	switch backends.Of(reference).State {
	case backend.Missing:
		state = "does not exist"
	case backend.NoPort:
		state = fmt.Sprintf("has no port %d", reference.Port)
	case backend.Empty:
		state = "has no ready endpoint"
	case backend.Serving, backend.Elsewhere:
		return
	}
	if !s.listed(ctx, reference.Namespace) {
		s.unread(errUnlisted, baseline.ValidatingWebhook, baseline.MutatingWebhook)
		return
	}
	object.Add(baseline.Problem{Reason: noReadyEndpoints, Message: fmt.Sprintf("its Service %s %s", words.External(reference.String()), state)})
}
