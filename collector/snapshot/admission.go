package snapshot

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/gap"
)

// Namespaces are the metadata of all namespaces, sorted by name, of the annotations those with the nodes that
// their pods select (OpenShift's project node selector, and the admission plugin PodNodeSelector).
func (c *Cluster) Namespaces(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return once(ctx, c, "namespaces", func(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(ctx, options)
		}
		return list(ctx, page, func(namespace *metav1.PartialObjectMetadata) {
			maps.DeleteFunc(namespace.Annotations, func(name, _ string) bool {
				return name != "openshift.io/node-selector" && name != "scheduler.alpha.kubernetes.io/node-selector"
			})
		})
	})
}

// Services are all Services, sorted by namespace and name: their type, selector, ports and load balancer.
func (c *Cluster) Services(ctx context.Context) ([]corev1.Service, error) {
	return once(ctx, c, "services", func(ctx context.Context) ([]corev1.Service, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Kubernetes.CoreV1().Services(corev1.NamespaceAll).List(ctx, options)
		}, func(service *corev1.Service) {
			service.Annotations, service.Labels, service.Status.Conditions = nil, nil, nil
			service.Spec = corev1.ServiceSpec{Type: service.Spec.Type, Selector: service.Spec.Selector, Ports: service.Spec.Ports}
		})
	})
}

// Listed returns an error where not all objects of the resources in a namespace can be listed, so that one
// which the lists of all namespaces lack may exist.
func (c *Cluster) Listed(ctx context.Context, namespace string, resources ...schema.GroupVersionResource) error {
	for _, resource := range resources {
		_, err := once(ctx, c, "listed "+resource.String()+" of "+namespace, func(ctx context.Context) (struct{}, error) {
			ctx, log := gap.Watch(ctx)
			_, err := c.api.Metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil {
				err = log.Err()
			}
			return struct{}{}, err
		})
		if err != nil {
			return fmt.Errorf("could not list all %s of namespace %s: %w", resource.Resource, namespace, err)
		}
	}
	return nil
}

// EndpointSlices are all EndpointSlices, sorted by namespace and name, without the addresses of the endpoints.
func (c *Cluster) EndpointSlices(ctx context.Context) ([]discoveryv1.EndpointSlice, error) {
	return once(ctx, c, "endpointSlices", func(ctx context.Context) ([]discoveryv1.EndpointSlice, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Kubernetes.DiscoveryV1().EndpointSlices(corev1.NamespaceAll).List(ctx, options)
		}, func(slice *discoveryv1.EndpointSlice) {
			slice.Annotations, slice.OwnerReferences = nil, nil
			for i := range slice.Endpoints {
				endpoint := &slice.Endpoints[i]
				slice.Endpoints[i] = discoveryv1.Endpoint{Conditions: endpoint.Conditions, NodeName: endpoint.NodeName}
			}
		})
	})
}

// Replicas are one pod of each controller, and every pod that has none or is a mirror
// of a static pod, sorted by namespace and name. Of a pod, name, namespace, labels and
// controller are read. Pods that are pending or have ended are left out.
func (c *Cluster) Replicas(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return once(ctx, c, "replicas", func(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
		pods, err := c.Pods(ctx)
		if err != nil {
			return nil, err
		}
		found := firstReplicas(pods)
		if len(found) > maxObjects {
			return nil, fmt.Errorf("the pods of the cluster have more than %d controllers", maxObjects)
		}
		return found, nil
	})
}

// firstReplicas are the first running pod of each controller, given the pods by namespace and name.
func firstReplicas(pods []corev1.Pod) []metav1.PartialObjectMetadata {
	var found []metav1.PartialObjectMetadata
	known := map[string]bool{}
	for i := range pods {
		pod := &metav1.PartialObjectMetadata{ObjectMeta: pods[i].ObjectMeta}
		if key := controllerKey(pod); running(&pods[i]) && !known[key] {
			known[key] = true
			found = append(found, *replica(pod))
		}
	}
	return found
}

// running is false for a pod that is pending or has ended.
func running(pod *corev1.Pod) bool {
	phase := pod.Status.Phase
	return phase != corev1.PodPending && phase != corev1.PodSucceeded && phase != corev1.PodFailed
}

// controllerKey identifies the controller of a pod, or the pod if it has none.
func controllerKey(pod *metav1.PartialObjectMetadata) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind == "Node" {
		return pod.Namespace + "/" + pod.Name
	}
	return pod.Namespace + "/" + owner.Kind + "/" + owner.Name
}

// replica is a pod with the fields that are kept.
func replica(pod *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels}}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return kept
}
