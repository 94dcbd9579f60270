package survey

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
)

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
