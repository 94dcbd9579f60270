// Package backend answers: can the Service of a webhook respond, and on which nodes?
//
// [NewBackends] indexes Services and their endpoints, and [Backends.Of] finds the backend of one webhook. The
// package reads nothing itself.
package backend

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Reference is a port of a Service.
type Reference struct {
	types.NamespacedName

	Port int32
}

// webhookPort is the default port of a webhook's Service.
const webhookPort = 443

// ReferenceOf is the Service that a webhook names; false if it has a URL.
func ReferenceOf(config admissionregistrationv1.WebhookClientConfig) (Reference, bool) {
	if config.Service == nil {
		return Reference{}, false
	}
	reference := Reference{
		NamespacedName: types.NamespacedName{Namespace: config.Service.Namespace, Name: config.Service.Name},
		Port:           webhookPort,
	}
	if config.Service.Port != nil {
		reference.Port = *config.Service.Port
	}
	return reference, true
}

// ReferenceIn is the Service whose DNS name is the host of a webhook's URL; false if the URL has none.
func ReferenceIn(config admissionregistrationv1.WebhookClientConfig) (Reference, bool) {
	if config.URL == nil {
		return Reference{}, false
	}
	parsed, err := url.Parse(*config.URL)
	if err != nil {
		return Reference{}, false
	}
	parts := strings.Split(strings.TrimSuffix(parsed.Hostname(), "."), ".")
	if len(parts) < 3 || parts[2] != "svc" {
		return Reference{}, false
	}
	port, err := strconv.ParseInt(parsed.Port(), 10, 32)
	if err != nil {
		port = webhookPort
	}
	return Reference{NamespacedName: types.NamespacedName{Namespace: parts[1], Name: parts[0]}, Port: int32(port)}, true
}

// State is whether a Service can serve a webhook.
type State int

// The states.
const (
	// Serving has a ready endpoint.
	Serving State = iota
	// Missing does not exist.
	Missing
	// NoPort does not have the port.
	NoPort
	// Empty has no ready endpoint.
	Empty
	// Elsewhere has a DNS name instead of endpoints.
	Elsewhere
)

// Backend describes the Service that serves a webhook.
type Backend struct {
	State State
	// Nodes are the nodes of the ready endpoints, sorted; nil if the node of an endpoint is unknown.
	Nodes []string
	// Selector selects the pods in the namespace of the Service; it selects none if the endpoints are not pods.
	Selector labels.Selector
}

// Backends are the Services of a cluster.
type Backends struct {
	services map[types.NamespacedName]*corev1.Service
	slices   map[types.NamespacedName][]*discoveryv1.EndpointSlice
}

// NewBackends indexes Services and EndpointSlices, which are kept.
func NewBackends(services []corev1.Service, endpoints []discoveryv1.EndpointSlice) *Backends {
	b := &Backends{
		services: make(map[types.NamespacedName]*corev1.Service, len(services)),
		slices:   make(map[types.NamespacedName][]*discoveryv1.EndpointSlice, len(endpoints)),
	}
	for i := range services {
		b.services[types.NamespacedName{Namespace: services[i].Namespace, Name: services[i].Name}] = &services[i]
	}
	for i := range endpoints {
		name := types.NamespacedName{Namespace: endpoints[i].Namespace, Name: endpoints[i].Labels[discoveryv1.LabelServiceName]}
		b.slices[name] = append(b.slices[name], &endpoints[i])
	}
	return b
}

// Of is the backend at a reference, found as the API server does (k8s.io/apiserver
// pkg/util/proxy, ResolveEndpoint).
func (b *Backends) Of(reference Reference) Backend {
	service, ok := b.services[reference.NamespacedName]
	if !ok {
		return Backend{State: Missing, Selector: labels.Nothing()}
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return Backend{State: Elsewhere, Selector: labels.Nothing()}
	}
	at := slices.IndexFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == reference.Port })
	if at < 0 {
		return Backend{State: NoPort, Selector: labels.Nothing()}
	}
	var ready []*discoveryv1.Endpoint
	for _, slice := range b.slices[reference.NamespacedName] {
		if serves(slice, service.Spec.Ports[at].Name) {
			ready = append(ready, readyIn(slice)...)
		}
	}
	backend := Backend{State: Empty, Nodes: nodesOf(ready), Selector: labels.Nothing()}
	if len(ready) > 0 {
		backend.State = Serving
	}
	if len(service.Spec.Selector) > 0 {
		backend.Selector = labels.SelectorFromSet(service.Spec.Selector)
	}
	return backend
}

func serves(slice *discoveryv1.EndpointSlice, portName string) bool {
	return slices.ContainsFunc(slice.Ports, func(port discoveryv1.EndpointPort) bool {
		return port.Name != nil && *port.Name == portName && port.Port != nil
	})
}

func readyIn(slice *discoveryv1.EndpointSlice) []*discoveryv1.Endpoint {
	var ready []*discoveryv1.Endpoint
	for i := range slice.Endpoints {
		if condition := slice.Endpoints[i].Conditions.Ready; condition == nil || *condition {
			ready = append(ready, &slice.Endpoints[i])
		}
	}
	return ready
}

// nodesOf are the nodes of endpoints, sorted; nil if one is not known.
func nodesOf(endpoints []*discoveryv1.Endpoint) []string {
	var nodes []string
	for _, endpoint := range endpoints {
		if endpoint.NodeName == nil {
			return nil
		}
		nodes = append(nodes, *endpoint.NodeName)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
