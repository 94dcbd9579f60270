// Package snapshot answers: what is in this cluster now? Every resource is read
// once, when the first check asks for it, for all checks and all targets; lists
// are read in pages, and only what a check looks at is kept.
package snapshot

import (
	"context"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Clients reach the cluster. All are required. Errors of what they read are
// returned as they are, so that a check can tell Forbidden from NotFound.
type Clients struct {
	Kubernetes kubernetes.Interface
	OpenShift  configclient.Interface
	// Dynamic reads the APIs that have no client of their own here.
	Dynamic dynamic.Interface
}

// Cluster is what was read of one cluster. Its methods may be called
// concurrently; what they return is shared, and must not be changed.
type Cluster struct {
	clients Clients

	version        reading[*configv1.ClusterVersion]
	operators      reading[[]configv1.ClusterOperator]
	infrastructure reading[*configv1.Infrastructure]
	nodes          reading[[]corev1.Node]
	pools          reading[[]machineconfigurationv1.MachineConfigPool]
	kubelets       reading[[]Kubelets]
	apiUses        reading[[]APIUse]
	deprecatedAPIs reading[[]DeprecatedAPI]
	operatorsOfOLM reading[[]metav1.PartialObjectMetadata]
	definitions    reading[[]metav1.PartialObjectMetadata]
	configMaps     readings[*corev1.ConfigMap]

	conditionalUpdates reading[*ConditionalUpdates]

	budgets        reading[[]policyv1.PodDisruptionBudget]
	contentions    reading[[]Contention]
	machineSets    reading[[]machinev1beta1.MachineSet]
	upgradeConfigs reading[[]UpgradeConfig]
}

// Of makes a Cluster of which nothing is read yet.
func Of(clients Clients) *Cluster { return &Cluster{clients: clients} }

// reading is what came of reading one thing.
type reading[T any] struct {
	once  sync.Once
	value T
	err   error
}

// get reads on the first call only.
func (r *reading[T]) get(read func() (T, error)) (T, error) {
	r.once.Do(func() { r.value, r.err = read() })
	return r.value, r.err
}

// readings are those of many things, by name.
type readings[T any] struct {
	mutex  sync.Mutex
	byName map[string]*reading[T]
}

// of is the reading of one of them.
func (r *readings[T]) of(name string) *reading[T] {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.byName == nil {
		r.byName = map[string]*reading[T]{}
	}
	if r.byName[name] == nil {
		r.byName[name] = &reading[T]{}
	}
	return r.byName[name]
}

// ClusterVersion is the one that is named "version".
func (c *Cluster) ClusterVersion(ctx context.Context) (*configv1.ClusterVersion, error) {
	return c.version.get(func() (*configv1.ClusterVersion, error) {
		return c.clients.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	})
}

// Infrastructure is the one that is named "cluster".
func (c *Cluster) Infrastructure(ctx context.Context) (*configv1.Infrastructure, error) {
	return c.infrastructure.get(func() (*configv1.Infrastructure, error) {
		return c.clients.OpenShift.ConfigV1().Infrastructures().Get(ctx, "cluster", metav1.GetOptions{})
	})
}

// ConfigMap is one ConfigMap, read once whoever asks for it.
func (c *Cluster) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return c.configMaps.of(namespace + "/" + name).get(func() (*corev1.ConfigMap, error) {
		return c.clients.Kubernetes.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// ClusterOperators are all of them, by name.
func (c *Cluster) ClusterOperators(ctx context.Context) ([]configv1.ClusterOperator, error) {
	return c.operators.get(func() ([]configv1.ClusterOperator, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.clients.OpenShift.ConfigV1().ClusterOperators().List(ctx, options)
		}, func(operator *configv1.ClusterOperator) {
			operator.Status.RelatedObjects, operator.Status.Extension.Raw = nil, nil
		})
	})
}

// Nodes are all of them, by name, without their images and volumes.
func (c *Cluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	return c.nodes.get(func() ([]corev1.Node, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.clients.Kubernetes.CoreV1().Nodes().List(ctx, options)
		}, func(node *corev1.Node) {
			node.Status.Images, node.Status.VolumesAttached, node.Status.VolumesInUse = nil, nil, nil
		})
	})
}

// MachineConfigPools are all of them, by name.
func (c *Cluster) MachineConfigPools(ctx context.Context) ([]machineconfigurationv1.MachineConfigPool, error) {
	return c.pools.get(func() ([]machineconfigurationv1.MachineConfigPool, error) {
		resource := machineconfigurationv1.GroupVersion.WithResource("machineconfigpools")
		return listAs(ctx, c.clients.Dynamic, resource, func(*machineconfigurationv1.MachineConfigPool) {})
	})
}
