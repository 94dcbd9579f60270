package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	helpers "k8s.io/component-helpers/resource"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

// Resources of operators that move their pods.
func machines() resource {
	return of(schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}, "virtualmachineinstances", "VirtualMachineInstances")
}

func virts() resource {
	return of(schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}, "kubevirts", "KubeVirts")
}

func postgres() resource {
	return of(schema.GroupVersion{Group: "postgresql.cnpg.io", Version: "v1"}, "clusters", "Clusters of CloudNativePG")
}

// object is an object of an operator, with the parts that package owner reads.
type object struct {
	Metadata map[string]any `json:"metadata"`
	Spec     map[string]any `json:"spec,omitempty"`
	Status   map[string]any `json:"status,omitempty"`
}

func (o object) of(version schema.GroupVersion, kind string) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(), "kind": kind, "metadata": o.Metadata, "spec": o.Spec, "status": o.Status,
	}}
}

// owners are the operators that move their pods, by their objects, and the names of webhooks that
// receive evictions.
func (r *reader) owners(ctx context.Context, webhooks []string) *owner.Owners {
	var objects []unstructured.Unstructured
	for _, each := range few[object](ctx, r, machines()) {
		objects = append(objects, each.of(machines().GroupVersion(), "VirtualMachineInstance"))
	}
	for _, each := range few[object](ctx, r, virts()) {
		objects = append(objects, each.of(virts().GroupVersion(), "KubeVirt"))
	}
	for _, each := range few[object](ctx, r, postgres()) {
		objects = append(objects, each.of(postgres().GroupVersion(), "Cluster"))
	}
	return owner.New(objects, webhooks)
}

// maxSurge bounds the nodes that are made for one pool.
const maxSurge = 100

// surgeNodes are the nodes that NodePools add before they drain others: each like a node of its pool,
// with the pods of DaemonSets alone. Cluster API drains none before they are ready.
func surgeNodes(pools []order.Pool, nodes []corev1.Node, pods []corev1.Pod) []corev1.Node {
	var made []corev1.Node
	for i := range pools {
		pool := &pools[i]
		if pool.Surge == 0 || len(pool.Nodes) == 0 {
			continue
		}
		at := slices.IndexFunc(nodes, func(node corev1.Node) bool { return node.Name == pool.Nodes[0] })
		if at < 0 {
			continue
		}
		for number := range min(pool.Surge, maxSurge) {
			made = append(made, likeNode(&nodes[at], fmt.Sprintf("%s-surge-%d", pool.Name, number), pods))
		}
	}
	return made
}

// likeNode is a node without other pods than those of DaemonSets, whose requests are taken from what it has.
func likeNode(of *corev1.Node, name string, pods []corev1.Pod) corev1.Node {
	made := *of.DeepCopy()
	made.Name, made.UID = name, ""
	if made.Labels == nil {
		made.Labels = map[string]string{}
	}
	made.Labels[corev1.LabelHostname] = name
	for i := range pods {
		if pods[i].Spec.NodeName != of.Name || eviction.PodOf(&pods[i], nil).Kept != eviction.KeptDaemonSet {
			continue
		}
		requests := helpers.PodRequests(&pods[i], helpers.PodResourcesOptions{})
		for name, available := range made.Status.Allocatable {
			if name == corev1.ResourcePods {
				available.Sub(*quantity.NewQuantity(1, quantity.DecimalSI))
			}
			if requested, ok := requests[name]; ok {
				available.Sub(requested)
			}
			made.Status.Allocatable[name] = available
		}
	}
	return made
}

// Resources that decide on evictions. Policies are served since Kubernetes 1.30.
func validating() resource {
	return of(admissionregistrationv1.SchemeGroupVersion, "validatingwebhookconfigurations", "ValidatingWebhookConfigurations")
}

func mutating() resource {
	return of(admissionregistrationv1.SchemeGroupVersion, "mutatingwebhookconfigurations", "MutatingWebhookConfigurations")
}

func policies() resource {
	return of(admissionregistrationv1.SchemeGroupVersion, "validatingadmissionpolicies", "ValidatingAdmissionPolicies")
}

func bindings() resource {
	return of(admissionregistrationv1.SchemeGroupVersion, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBindings")
}

func endpoints() resource {
	return of(discoveryv1.SchemeGroupVersion, "endpointslices", "EndpointSlices")
}

func (r *reader) reviewers(ctx context.Context, namespaces []metav1.PartialObjectMetadata) reviewer.Input {
	input := reviewer.Input{
		Namespaces: namespaces,
		Validating: list[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, r, validating()),
		Mutating:   list[admissionregistrationv1.MutatingWebhookConfiguration](ctx, r, mutating()),
		Policies:   list[admissionregistrationv1.ValidatingAdmissionPolicy](ctx, r, policies()),
		Bindings:   list[admissionregistrationv1.ValidatingAdmissionPolicyBinding](ctx, r, bindings()),
	}
	var err error
	if input.Services, err = r.cluster.Services(ctx); err != nil {
		r.gap(services, err)
	}
	if input.Endpoints, err = r.cluster.EndpointSlices(ctx); err != nil {
		r.gap(endpoints().name, err)
	}
	var unread []string
	for _, gap := range r.gaps {
		switch gap.Resource {
		case validating().name, mutating().name, policies().name, bindings().name, endpoints().name, services, allNamespaces:
			unread = append(unread, gap.Resource)
		}
	}
	input.Unread = strings.Join(unread, ", ")
	input.Listed = func(namespace string) bool {
		return r.cluster.Listed(ctx, namespace, corev1.SchemeGroupVersion.WithResource("services"), endpoints().GroupVersionResource) == nil
	}
	return input
}
