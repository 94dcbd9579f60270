// Package hosted answers: may the control plane and the NodePools of this hosted cluster be updated?
//
// A hosted cluster (HyperShift) is two clusters: its control plane runs in a management cluster, and
// its nodes are the guest. [Reach] opens both, and [Estate] answers what depends on whether a cluster is hosted.
// [ControlPlane.Checks] judge the management cluster; the guest has the checks of every cluster. What
// HyperShift itself does with a request is package hypershift.
package hosted

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hosted/workload"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// operatorNamespace and supportedVersions are where the hypershift-operator states which
	// versions it supports.
	operatorNamespace, supportedVersions = "hypershift", "supported-versions"
	// maxObjects bounds the objects of a kind that are read of one hosted cluster.
	maxObjects = 1000
)

// ControlPlane is a hosted cluster as its management cluster has it.
type ControlPlane struct {
	Cluster *hypershift.HostedCluster
	// Management is the cluster that runs the control plane. It pulls the release.
	Management *cluster.Cluster
	// Monitoring reads the alerts of the management cluster, once.
	Monitoring *monitoring.Client
	// pools are the NodePools of the cluster that are selected, by name, and all are all of them; poolsError is why they
	// could not be read.
	pools, all []hypershift.NodePool
	poolsError error
	// mixed is true where the pools of the cluster have several architectures, also those that are not selected.
	mixed bool
	// supported are the minor versions that the operator supports; supportedError is why it is unknown.
	supported      hypershift.Supported
	supportedError error
	backups        []backup
	backupsError   error
	workload       *workload.State
	// guestError is why the guest cannot be reached; nil where it can.
	guestError error
	// named is true for pools that are named for this update.
	named bool
}

// State is the hosted cluster with all its NodePools, by name, also those that are not selected; nil for a nil ControlPlane.
func (c *ControlPlane) State() *hypershift.State {
	if c == nil {
		return nil
	}
	return &hypershift.State{Cluster: c.Cluster, Pools: c.all, PoolsError: c.poolsError}
}

// Reads are the requests in the management cluster for a hosted cluster in this namespace: those of Open,
// and to find the monitoring.
func Reads(namespace, name string) access.Needs {
	controlPlane := hypershift.ControlPlaneNamespace(namespace, name)
	return access.Needs{
		Required: []access.Request{check.Get(hypershift.Group, "hostedclusters", namespace, name)},
		Optional: slices.Concat([]access.Request{
			{Verb: "list", Group: hypershift.Group, Resource: "nodepools", Namespace: namespace},
			check.Get("", "configmaps", operatorNamespace, supportedVersions),
			{Verb: "list", Group: hypershift.Group, Resource: "hcpetcdbackups", Namespace: controlPlane},
		}, workload.Reads(controlPlane), check.ReadsTopology(), monitoring.Reads()),
	}
}

// Open reads a hosted cluster with its NodePools. Pools selects some of them; none selects all. An
// *input.Error is about a name that does not exist, and lists the names that do. What else cannot be
// read is a finding of the checks.
func Open(ctx context.Context, management *cluster.Cluster, namespace, name string, pools ...string) (*ControlPlane, error) {
	object, err := management.Dynamic.Resource(resource("hostedclusters")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, notFound(ctx, management, namespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("could not read HostedCluster %s/%s: %w", namespace, name, err)
	}
	c := &ControlPlane{Cluster: &hypershift.HostedCluster{}, Management: management, named: len(pools) > 0}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, c.Cluster); err != nil {
		return nil, fmt.Errorf("HostedCluster %s/%s cannot be decoded: %w", namespace, name, err)
	}
	c.pools, c.poolsError = list[hypershift.NodePool](ctx, management, "nodepools", namespace)
	c.pools = slices.DeleteFunc(c.pools, func(p hypershift.NodePool) bool { return p.Spec.ClusterName != name })
	c.all = slices.Clone(c.pools)
	c.mixed = slices.ContainsFunc(c.pools, func(p hypershift.NodePool) bool { return p.Architecture() != c.pools[0].Architecture() })
	if err := selectPools(c, pools); err != nil && c.poolsError == nil {
		return nil, err
	}
	c.backups, c.backupsError = list[backup](ctx, management, "hcpetcdbackups", c.Namespace())
	c.supported, c.supportedError = readSupported(ctx, management)
	c.workload = workload.Read(ctx, management, c.Namespace())
	c.Monitoring = monitoring.New(monitoring.Querier{Config: management.Config(), Dynamic: management.Dynamic}.Find, monitoring.DefaultTimeout)
	return c, nil
}

func resource(plural string) schema.GroupVersionResource {
	return hypershift.GroupVersion().WithResource(plural)
}

// selectPools leaves the pools of these names.
func selectPools(c *ControlPlane, names []string) error {
	if len(names) == 0 {
		return nil
	}
	var existing []string
	for i := range c.pools {
		existing = append(existing, c.pools[i].Name)
	}
	for _, name := range names {
		if !slices.Contains(existing, name) {
			return input.Errorf("HostedCluster %s has no NodePool %q; it has %s", c.name(), name, words.List(existing, 10))
		}
	}
	c.pools = slices.DeleteFunc(c.pools, func(p hypershift.NodePool) bool { return !slices.Contains(names, p.Name) })
	return nil
}

func (c *ControlPlane) name() string { return c.Cluster.Namespace + "/" + c.Cluster.Name }

// selected names what is judged: the hosted cluster, NAMESPACE/NAME, and the pools that are to be
// updated as well, sorted by name.
func (c *ControlPlane) selected() (name string, pools []string) {
	for i := range c.pools {
		if c.named {
			pools = append(pools, c.pools[i].Name)
		}
	}
	return c.name(), pools
}

// Namespace is the namespace of the pods of the control plane.
func (c *ControlPlane) Namespace() string {
	return hypershift.ControlPlaneNamespace(c.Cluster.Namespace, c.Cluster.Name)
}

// list reads the objects of a namespace, sorted by name.
func list[T any](ctx context.Context, management *cluster.Cluster, plural, namespace string) ([]T, error) {
	ctx, log := gap.Track(ctx)
	objects, err := management.Dynamic.Resource(resource(plural)).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err != nil {
		return nil, fmt.Errorf("could not list the %s of namespace %s: %w", plural, namespace, err)
	}
	if objects.GetContinue() != "" {
		return nil, fmt.Errorf("namespace %s has more than %d %s", namespace, maxObjects, plural)
	}
	if gaps := log.All(); len(gaps) > 0 {
		return nil, fmt.Errorf("the archive has %s", gaps[0])
	}
	slices.SortFunc(objects.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	var all []T
	for i := range objects.Items {
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects.Items[i].Object, &typed); err != nil {
			return nil, fmt.Errorf("%s %s/%s cannot be decoded: %w", objects.Items[i].GetKind(), namespace, objects.Items[i].GetName(), err)
		}
		all = append(all, typed)
	}
	return all, nil
}

func readSupported(ctx context.Context, management *cluster.Cluster) (hypershift.Supported, error) {
	var stated *corev1.ConfigMap
	stated, err := management.Kubernetes.CoreV1().ConfigMaps(operatorNamespace).Get(ctx, supportedVersions, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("could not read ConfigMap %s/%s: %w", operatorNamespace, supportedVersions, err)
	}
	supported, err := hypershift.ParseSupported(stated.Data[supportedVersions])
	if err != nil {
		return nil, fmt.Errorf("%s of ConfigMap %s/%s: %w", supportedVersions, operatorNamespace, supportedVersions, err)
	}
	return supported, nil
}

// notFound lists the hosted clusters that exist.
func notFound(ctx context.Context, management *cluster.Cluster, namespace, name string) error {
	ctx, missing := gap.Watch(ctx)
	all, err := management.Dynamic.Resource(resource("hostedclusters")).List(ctx, metav1.ListOptions{Limit: maxObjects})
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return &input.Error{Err: errors.New("the management cluster has no HyperShift: it does not serve hostedclusters." + hypershift.Group + "; name its kubeconfig with --kubeconfig or --context")}
	case err != nil || len(all.Items) == 0 && missing.Err() != nil:
		return input.Errorf("HostedCluster %s/%s does not exist", namespace, name)
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].GetNamespace()+"/"+all.Items[i].GetName())
	}
	slices.Sort(names)
	if len(names) == 0 {
		return input.Errorf("HostedCluster %s/%s does not exist; the management cluster has none", namespace, name)
	}
	const most = 20
	return input.Errorf("HostedCluster %s/%s does not exist; there are %s", namespace, name, words.List(names, most))
}
