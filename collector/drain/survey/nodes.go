package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	helpers "k8s.io/component-helpers/resource"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/owner"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
	"github.com/openshift/update-preflight/collector/gap"
)

// Resources of the cluster autoscaler (openshift/cluster-autoscaler-operator pkg/apis/autoscaling).
func autoscalers() resource {
	return of(schema.GroupVersion{Group: "autoscaling.openshift.io", Version: "v1"}, "clusterautoscalers", "ClusterAutoscalers")
}

func machineAutoscalers() resource {
	return of(schema.GroupVersion{Group: "autoscaling.openshift.io", Version: "v1beta1"}, "machineautoscalers", "MachineAutoscalers")
}

func machineObjects() resource { return of(machinev1beta1.GroupVersion, "machines", "Machines") }

func machineSets() resource { return of(machinev1beta1.GroupVersion, "machinesets", "MachineSets") }

// autoscaler is a ClusterAutoscaler.
type autoscaler struct {
	Spec struct {
		PodPriorityThreshold *int32 `json:"podPriorityThreshold"`
		ResourceLimits       struct {
			MaxNodesTotal *int     `json:"maxNodesTotal"`
			Cores         *maximum `json:"cores"`
			Memory        *maximum `json:"memory"` // in GiB
		} `json:"resourceLimits"`
	} `json:"spec"`
}

type maximum struct {
	Max int64 `json:"max"`
}

// machineAutoscaler is a MachineAutoscaler.
type machineAutoscaler struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		MaxReplicas    int32 `json:"maxReplicas"`
		ScaleTargetRef struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
	} `json:"spec"`
}

const (
	// leastPriority is the lowest priority of pods for which a cluster autoscaler adds machines, if its configuration
	// sets none (kubernetes/autoscaler cluster-autoscaler, expendable-pods-priority-cutoff).
	leastPriority = -10
	machineOfNode = "machine.openshift.io/machine"
	gibibyte      = 1 << 30
)

// room returns the nodes that the cluster autoscaler can add to MachineSets that have a node, which serves as the
// model for new ones; none if some object could not be read.
func (r *reader) room(ctx context.Context, nodes []corev1.Node) []drain.Room {
	ctx, missing := gap.Track(ctx) // apart: less room is no gap of the rehearsal
	found := few[autoscaler](ctx, r, autoscalers())
	scaled, machines := few[machineAutoscaler](ctx, r, machineAutoscalers()), list[metav1.PartialObjectMetadata](ctx, r, machineObjects())
	sets := listed(ctx, r, machineSets(), r.cluster.MachineSets)
	if missing.Err() != nil || len(found) == 0 {
		return nil
	}
	likes, counted := likeNodes(nodes, machines), slices.Clip(nodes)
	var all []drain.Room
	for i := range scaled {
		by := &scaled[i]
		at := slices.IndexFunc(sets, func(set machinev1beta1.MachineSet) bool {
			return set.Namespace == by.Namespace && set.Name == by.Spec.ScaleTargetRef.Name && by.Spec.ScaleTargetRef.Kind == "MachineSet"
		})
		if at < 0 {
			continue
		}
		set := drain.Reference{Namespace: by.Namespace, Name: sets[at].Name}
		replicas, like := int32(1), likes[set]
		if sets[at].Spec.Replicas != nil {
			replicas = *sets[at].Spec.Replicas
		}
		if like == nil {
			continue
		}
		machines := min(int(by.Spec.MaxReplicas-replicas), found[0].most(counted, like), maxSurge)
		if machines <= 0 {
			continue
		}
		all = append(all, drain.Room{MachineSet: set, Node: like.Name, Machines: machines, Priority: found[0].threshold()})
		counted = append(counted, slices.Repeat([]corev1.Node{*like}, machines)...) // the limits apply to all MachineSets together
	}
	return all
}

func (a *autoscaler) threshold() int32 {
	if a.Spec.PodPriorityThreshold == nil {
		return leastPriority
	}
	return *a.Spec.PodPriorityThreshold
}

// most is how many nodes like one the limits of the autoscaler leave room for.
func (a *autoscaler) most(nodes []corev1.Node, like *corev1.Node) int {
	limits, most := &a.Spec.ResourceLimits, maxSurge
	if limits.MaxNodesTotal != nil {
		most = min(most, *limits.MaxNodesTotal-len(nodes))
	}
	for name, limit := range map[corev1.ResourceName]*maximum{corev1.ResourceCPU: limits.Cores, corev1.ResourceMemory: limits.Memory} {
		each := like.Status.Capacity[name]
		if limit == nil || each.IsZero() {
			continue
		}
		left := *quantity.NewQuantity(limit.Max, quantity.DecimalSI)
		if name == corev1.ResourceMemory {
			left = *quantity.NewQuantity(limit.Max*gibibyte, quantity.BinarySI)
		}
		for i := range nodes {
			left.Sub(nodes[i].Status.Capacity[name])
		}
		most = min(most, int(left.Value()/max(1, each.Value())))
	}
	return most
}

// likeNodes are nodes of MachineSets that take pods, one for each.
func likeNodes(nodes []corev1.Node, machines []metav1.PartialObjectMetadata) map[drain.Reference]*corev1.Node {
	sets := map[string]drain.Reference{}
	for i := range machines {
		if by := metav1.GetControllerOfNoCopy(&machines[i]); by != nil && by.Kind == "MachineSet" {
			sets[machines[i].Namespace+"/"+machines[i].Name] = drain.Reference{Namespace: machines[i].Namespace, Name: by.Name}
		}
	}
	likes := map[drain.Reference]*corev1.Node{}
	for i := range nodes {
		if set, ok := sets[nodes[i].Annotations[machineOfNode]]; ok && !nodes[i].Spec.Unschedulable {
			likes[set] = &nodes[i]
		}
	}
	return likes
}

// Resources that assign addresses to nodes.
func egressIPs() resource {
	return of(schema.GroupVersion{Group: "k8s.ovn.org", Version: "v1"}, "egressips", "EgressIPs")
}

func keepalivedGroups() resource {
	return of(schema.GroupVersion{Group: "redhatcop.redhat.io", Version: "v1alpha1"}, "keepalivedgroups", "KeepalivedGroups")
}

func l2Advertisements() resource {
	return of(schema.GroupVersion{Group: "metallb.io", Version: "v1beta1"}, "l2advertisements", "L2Advertisements")
}

// egressLabel is the label of nodes to which OVN-Kubernetes assigns EgressIPs (ovn-org/ovn-kubernetes
// go-controller/pkg/util).
const egressLabel = "k8s.ovn.org/egress-assignable"

// selecting is an object that selects nodes: a KeepalivedGroup by labels, an L2Advertisement by any of several selectors,
// and all nodes by none.
type selecting struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		NodeSelector  map[string]string      `json:"nodeSelector"`
		NodeSelectors []metav1.LabelSelector `json:"nodeSelectors"`
	} `json:"spec"`
}

// addresses are the objects with addresses for nodes, with the nodes that they select. Those that were not gathered are
// no gap of the rehearsal.
func (r *reader) addresses(ctx context.Context, nodes []corev1.Node) []drain.Address {
	ctx, _ = gap.Track(ctx)
	var all []drain.Address
	for _, kind := range []struct {
		resource
		kind  string
		every []metav1.LabelSelector
	}{
		{egressIPs(), "EgressIP", []metav1.LabelSelector{{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key:      egressLabel,
			Operator: metav1.LabelSelectorOpExists,
		}}}}},
		{keepalivedGroups(), "KeepalivedGroup", nil},
		{l2Advertisements(), "L2Advertisement", nil},
	} {
		for _, each := range few[selecting](ctx, r, kind.resource) {
			selectors := slices.Concat(kind.every, each.Spec.NodeSelectors)
			if len(selectors) == 0 {
				selectors = []metav1.LabelSelector{{MatchLabels: each.Spec.NodeSelector}}
			}
			all = append(all, drain.Address{
				APIVersion: kind.GroupVersion().String(), Kind: kind.kind, Namespace: each.Namespace, Name: each.Name,
				Nodes: selected(nodes, selectors),
			})
		}
	}
	return all
}

// selected are the nodes that one of the selectors matches. An invalid one matches none.
func selected(nodes []corev1.Node, selectors []metav1.LabelSelector) []string {
	names := []string{}
	for i := range nodes {
		matches := func(of metav1.LabelSelector) bool {
			selector, err := metav1.LabelSelectorAsSelector(&of)
			return err == nil && selector.Matches(labels.Set(nodes[i].Labels))
		}
		if slices.ContainsFunc(selectors, matches) {
			names = append(names, nodes[i].Name)
		}
	}
	return names
}

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

// likeNode returns a node without pods other than the pods of DaemonSets, whose requests are subtracted from its
// resources.
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
