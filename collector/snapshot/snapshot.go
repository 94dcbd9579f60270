// Package snapshot answers: what is the current state of this cluster?
//
// Every resource is read once in each form, by the first check that needs it, for all checks and all targets: as
// its objects, and as their reported status ([Cluster.Reports]). Lists are read in pages, and only fields that a
// check uses are kept. [List] reads any resource; a method exists where fields are dropped or values derived.
package snapshot

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot/field"
)

// Cluster is a snapshot of one cluster. Its methods may be called concurrently; their
// results are shared, and must not be changed. Errors of the API server are returned
// unwrapped, so that a check can distinguish Forbidden from NotFound.
type Cluster struct {
	api *cluster.Cluster

	mutex    sync.Mutex
	readings map[string]any
}

// Of makes a snapshot in which nothing is read yet.
func Of(api *cluster.Cluster) *Cluster { return &Cluster{api: api, readings: map[string]any{}} }

// List reads all objects of a resource as T, sorted by namespace and name. An object
// that cannot be decoded as T is an error that names it.
func List[T any](ctx context.Context, c *Cluster, resource schema.GroupVersionResource) ([]T, error) {
	return once(ctx, c, "list "+resource.String(), func(ctx context.Context) ([]T, error) {
		if _, ok := any(new(T)).(message); ok {
			return (&reader[T]{cluster: c, resource: resource, rules: allBut[T]()}).all(ctx)
		}
		return listAs(ctx, c.api.Dynamic, resource, func(*T) {})
	})
}

// once reads what key identifies, on the first call only, and records whether that succeeded: the
// API server's response proves a list, and that there is no such object. A gap that the response
// states is recorded by its warning.
func once[T any](ctx context.Context, c *Cluster, key string, read func(context.Context) (T, error)) (T, error) {
	return kept(ctx, c, key, func(ctx context.Context) (T, error) {
		reading, done := cluster.Reading(ctx)
		defer done()
		value, err := read(reading)
		if err == nil || apierrors.IsNotFound(err) {
			gap.Prove(ctx, "the response of the API server: "+key)
		} else {
			gap.Fail(ctx, err)
		}
		return value, err
	})
}

// kept computes what key identifies, on the first call only.
func kept[T any](ctx context.Context, c *Cluster, key string, read func(context.Context) (T, error)) (T, error) {
	c.mutex.Lock()
	r, ok := c.readings[key].(*gap.Once[T])
	if !ok {
		r = &gap.Once[T]{}
		c.readings[key] = r
	}
	c.mutex.Unlock()
	return r.Get(ctx, read)
}

// Derived caches a value computed from the cluster, so that all checks share it. The key begins with the name of
// the package.
func Derived[T any](ctx context.Context, c *Cluster, key string, compute func(context.Context) (T, error)) (T, error) {
	return kept(ctx, c, "derived "+key, compute)
}

// ClusterVersion is the ClusterVersion "version".
func (c *Cluster) ClusterVersion(ctx context.Context) (*configv1.ClusterVersion, error) {
	return once(ctx, c, "version", func(ctx context.Context) (*configv1.ClusterVersion, error) {
		return c.api.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	})
}

// Infrastructure is the Infrastructure "cluster".
func (c *Cluster) Infrastructure(ctx context.Context) (*configv1.Infrastructure, error) {
	return once(ctx, c, "infrastructure", func(ctx context.Context) (*configv1.Infrastructure, error) {
		return c.api.OpenShift.ConfigV1().Infrastructures().Get(ctx, "cluster", metav1.GetOptions{})
	})
}

// ConfigMap is one ConfigMap.
func (c *Cluster) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return once(ctx, c, "configMap "+namespace+"/"+name, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return c.api.Kubernetes.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// Permitted is true if the API server confirms that the user may make a request.
func (c *Cluster) Permitted(ctx context.Context, request access.Request) (bool, error) {
	return once(ctx, c, "may "+access.Describe(request), func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &request}}
		reviewed, err := c.api.Kubernetes.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return reviewed.Status.Allowed, nil
	})
}

// SecretMetadata are the metadata of the Secrets in a namespace, by name: the API server sends nothing else.
func (c *Cluster) SecretMetadata(ctx context.Context, namespace string) (map[string]*metav1.PartialObjectMetadata, error) {
	return once(ctx, c, "metadata of secrets in "+namespace, func(ctx context.Context) (map[string]*metav1.PartialObjectMetadata, error) {
		secrets := c.api.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
		all, err := list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return secrets.List(ctx, options)
		}, func(secret *metav1.PartialObjectMetadata) { secret.OwnerReferences, secret.Labels = nil, nil })
		found := make(map[string]*metav1.PartialObjectMetadata, len(all))
		for i := range all {
			found[all[i].Name] = &all[i]
		}
		return found, err
	})
}

// ClusterOperators are all ClusterOperators, sorted by name.
func (c *Cluster) ClusterOperators(ctx context.Context) ([]configv1.ClusterOperator, error) {
	return once(ctx, c, "operators", func(ctx context.Context) ([]configv1.ClusterOperator, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.OpenShift.ConfigV1().ClusterOperators().List(ctx, options)
		}, func(operator *configv1.ClusterOperator) {
			operator.Status.Extension.Raw = nil
		})
	})
}

// Nodes are all nodes, sorted by name, without their images and volumes.
func (c *Cluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	return once(ctx, c, "nodes", func(ctx context.Context) ([]corev1.Node, error) {
		r := &reader[corev1.Node]{cluster: c, resource: corev1.SchemeGroupVersion.WithResource("nodes")}
		r.rules = allBut[corev1.Node]("status.images", "status.volumesAttached", "status.volumesInUse")
		return r.all(ctx)
	})
}

// MachineConfigPools are all MachineConfigPools, sorted by name.
func (c *Cluster) MachineConfigPools(ctx context.Context) ([]machineconfigurationv1.MachineConfigPool, error) {
	return List[machineconfigurationv1.MachineConfigPool](ctx, c, machineconfigurationv1.GroupVersion.WithResource("machineconfigpools"))
}

// Topology is where the control plane runs, which decides which checks apply.
type Topology string

// The topologies.
const (
	// SelfManaged is an OpenShift cluster that runs its own control plane.
	SelfManaged Topology = "SelfManaged"
	// HyperShift is a hosted cluster: its control plane, with etcd and the machine
	// configuration, runs in another cluster (Infrastructure
	// status.controlPlaneTopology: External).
	HyperShift Topology = "HyperShift"
	// Kubernetes is a cluster without OpenShift's Infrastructure, such as MicroShift, which has no ClusterVersion.
	Kubernetes Topology = "Kubernetes"
)

// Topology is read from the Infrastructure.
func (c *Cluster) Topology(ctx context.Context) (Topology, error) {
	infrastructure, err := c.Infrastructure(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return Kubernetes, nil
	case err != nil:
		return "", err
	case infrastructure.Status.ControlPlaneTopology == configv1.ExternalTopologyMode:
		return HyperShift, nil
	}
	return SelfManaged, nil
}

// CustomResourceDefinitions are the metadata of all CustomResourceDefinitions, sorted
// by name. Their schemas, which have many megabytes, are not read.
func (c *Cluster) CustomResourceDefinitions(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return once(ctx, c, "definitions", func(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
		resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Metadata.Resource(resource).List(ctx, options)
		}
		return list(ctx, page, func(definition *metav1.PartialObjectMetadata) { definition.Annotations, definition.Labels = nil, nil })
	})
}

// notCopied leaves out the copies of ClusterServiceVersions that OLM makes in every
// namespace that an operator watches.
const notCopied = "!olm.copiedFrom"

// ClusterServiceVersions are the metadata of the operators that OLM installed, sorted
// by namespace and name. Their content, many kilobytes each, is not read.
func (c *Cluster) ClusterServiceVersions(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return once(ctx, c, "operatorsOfOLM", func(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
		resource := schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"}
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = notCopied
			return c.api.Metadata.Resource(resource).List(ctx, options)
		}
		return list(ctx, page, func(*metav1.PartialObjectMetadata) {})
	})
}

// DaemonSets returns all DaemonSets, sorted by namespace and name, without the programs of their containers.
func (c *Cluster) DaemonSets(ctx context.Context) ([]appsv1.DaemonSet, error) {
	return once(ctx, c, "daemonSets", func(ctx context.Context) ([]appsv1.DaemonSet, error) {
		resource := appsv1.SchemeGroupVersion.WithResource("daemonsets")
		return (&reader[appsv1.DaemonSet]{cluster: c, resource: resource, rules: templateRules[appsv1.DaemonSet]()}).all(ctx)
	})
}

// Namespaces returns the metadata of all namespaces, sorted by name; of the annotations, only the node selectors
// of their pods (OpenShift's project node selector, and the admission plugin PodNodeSelector).
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

// Replicas returns one pod of each controller, and every pod that has none or is a mirror of a static pod, sorted
// by namespace and name. Of a pod, name, namespace, labels and controller are read. Pods that are pending or have
// ended are omitted.
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

// Deployments returns all Deployments, sorted by namespace and name, without the programs of their containers.
func (c *Cluster) Deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	return once(ctx, c, "deployments", func(ctx context.Context) ([]appsv1.Deployment, error) {
		resource := appsv1.SchemeGroupVersion.WithResource("deployments")
		return (&reader[appsv1.Deployment]{cluster: c, resource: resource, rules: templateRules[appsv1.Deployment]()}).all(ctx)
	})
}

// ReplicaSets returns all ReplicaSets, sorted by namespace and name, without the programs of their containers.
// ReplicaSets of earlier revisions, which have no pods, also lack the template of their pods: a Deployment has ten
// of them.
func (c *Cluster) ReplicaSets(ctx context.Context) ([]appsv1.ReplicaSet, error) {
	return once(ctx, c, "replicaSets", func(ctx context.Context) ([]appsv1.ReplicaSet, error) {
		r := &reader[appsv1.ReplicaSet]{
			cluster: c, resource: appsv1.SchemeGroupVersion.WithResource("replicasets"),
			rules: templateRules[appsv1.ReplicaSet](),
		}
		r.keep = func(set *appsv1.ReplicaSet) {
			if set.Spec.Replicas != nil && *set.Spec.Replicas == 0 && set.Status.Replicas == 0 {
				set.Spec.Template = corev1.PodTemplateSpec{}
			}
		}
		return r.all(ctx)
	})
}

// StatefulSets returns all StatefulSets, sorted by namespace and name, without the programs of their containers.
func (c *Cluster) StatefulSets(ctx context.Context) ([]appsv1.StatefulSet, error) {
	return once(ctx, c, "statefulSets", func(ctx context.Context) ([]appsv1.StatefulSet, error) {
		return (&reader[appsv1.StatefulSet]{
			cluster: c, resource: appsv1.SchemeGroupVersion.WithResource("statefulsets"),
			rules: templateRules[appsv1.StatefulSet](),
		}).all(ctx)
	})
}

// ReplicationControllers returns all ReplicationControllers, sorted by namespace and name, without the programs of
// their containers.
func (c *Cluster) ReplicationControllers(ctx context.Context) ([]corev1.ReplicationController, error) {
	return once(ctx, c, "replicationControllers", func(ctx context.Context) ([]corev1.ReplicationController, error) {
		return (&reader[corev1.ReplicationController]{
			cluster: c, resource: corev1.SchemeGroupVersion.WithResource("replicationcontrollers"),
			rules: templateRules[corev1.ReplicationController](),
		}).all(ctx)
	})
}

// Jobs returns all Jobs, sorted by namespace and name, without the programs of their containers.
func (c *Cluster) Jobs(ctx context.Context) ([]batchv1.Job, error) {
	return once(ctx, c, "jobs", func(ctx context.Context) ([]batchv1.Job, error) {
		return (&reader[batchv1.Job]{
			cluster: c, resource: batchv1.SchemeGroupVersion.WithResource("jobs"),
			rules: templateRules[batchv1.Job](),
		}).all(ctx)
	})
}

// templateRules are the rules for the fields of a controller with a template of pods. Revisions of a Deployment, and
// Jobs of a CronJob, share the specs of their pods.
func templateRules[T any]() field.Rules {
	of, controller := allBut[T](), reflect.TypeFor[T]()
	dropContent(of, controller, "spec.template.spec")
	if controller != reflect.TypeFor[corev1.ReplicationController]() { // whose template is a pointer
		of.Own(controller, "metadata", "status", "spec.replicas", "spec.selector", "spec.template.metadata")
	}
	return of
}
