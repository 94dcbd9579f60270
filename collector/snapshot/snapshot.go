// Package snapshot answers: what is the present state of this cluster?
//
// Every resource is read once in each shape, by the first check that needs it, for all
// checks and all targets: as its objects, and as what they report ([Cluster.Reports]). Lists are read in pages, and only fields that a check uses are
// kept. [List] reads any resource; a method exists where fields are dropped or
// values derived.
package snapshot

import (
	"context"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
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

// Derived is what is computed from this cluster once for all that need it, by a key that begins
// with the name of the package.
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

// Permitted is true where the API server states that the user may make a request.
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

// DaemonSets are all DaemonSets, sorted by namespace and name, without what the containers of their pods run.
func (c *Cluster) DaemonSets(ctx context.Context) ([]appsv1.DaemonSet, error) {
	return once(ctx, c, "daemonSets", func(ctx context.Context) ([]appsv1.DaemonSet, error) {
		resource := appsv1.SchemeGroupVersion.WithResource("daemonsets")
		return (&reader[appsv1.DaemonSet]{cluster: c, resource: resource, rules: templateRules[appsv1.DaemonSet]()}).all(ctx)
	})
}
