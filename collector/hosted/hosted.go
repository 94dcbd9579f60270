// Package hosted answers: may the control plane and the NodePools of this hosted cluster be updated?
//
// A hosted cluster (HyperShift) is two clusters: its control plane runs in a management cluster, and its nodes are
// the guest. [Reach] opens both, and [Estate] hides whether a cluster is hosted. [ControlPlane.Checks] evaluate
// the management cluster; the guest has the checks of every cluster. Package hypershift predicts how HyperShift
// handles a request.
package hosted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
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

// State is the hosted cluster with all its NodePools, by name, including the ones that are not selected; nil for a
// nil ControlPlane.
func (c *ControlPlane) State() *hypershift.State {
	if c == nil {
		return nil
	}
	return &hypershift.State{Cluster: c.Cluster, Pools: c.all, PoolsError: c.poolsError}
}

// Reads returns the requests in the management cluster for a hosted cluster in this namespace: the requests of
// Open, and the requests that find the monitoring.
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

// selected names the evaluated objects: the hosted cluster, NAMESPACE/NAME, and the pools that will be updated as
// well, sorted by name.
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
		return nil, fmt.Errorf("namespace %s contains more than %d %s", namespace, maxObjects, plural)
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
		return &input.Error{Err: errors.New("the management cluster has no HyperShift: it does not serve hostedclusters." + hypershift.Group +
			"; name its kubeconfig with --kubeconfig or --context")}
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

// Selection names a hosted cluster of a management cluster.
type Selection struct {
	Namespace, Name string
	// Pools are the NodePools that will be updated as well, and are therefore evaluated; none means that all are
	// evaluated and none will be updated.
	Pools []string
	// Guest connects the guest; nil for the kubeconfig that the status of the HostedCluster names.
	Guest func() (*cluster.Cluster, error)
}

// Reach opens both clusters of a hosted cluster: it returns the guest, with its estate. An unreachable guest is
// not an error: its clients then only read ClusterVersion, built from the status of the HostedCluster. An
// *input.Error is about a name that does not exist, or a guest that is another cluster. connect creates the
// clients of a configuration; it sends no request.
func Reach(ctx context.Context, management *cluster.Cluster, selected Selection,
	connect func(*rest.Config) (*cluster.Cluster, error),
) (*cluster.Cluster, Estate, error) {
	c, err := Open(ctx, management, selected.Namespace, selected.Name, selected.Pools...)
	if err != nil {
		return nil, Estate{}, err
	}
	guest, err := c.reachGuest(ctx, selected.Guest, connect)
	if _, another := errors.AsType[*input.Error](err); another {
		return nil, Estate{}, err
	}
	if err == nil {
		return guest, c.Estate(), nil
	}
	c.guestError = err
	guest, err = connect(&rest.Config{Host: "https://guest.invalid", Transport: unread{c}})
	return guest, c.Estate(), err
}

// reachGuest connects to the guest, and confirms that it belongs to the HostedCluster.
func (c *ControlPlane) reachGuest(ctx context.Context, given func() (*cluster.Cluster, error),
	connect func(*rest.Config) (*cluster.Cluster, error),
) (*cluster.Cluster, error) {
	if given == nil {
		given = func() (*cluster.Cluster, error) {
			config, err := c.kubeconfig(ctx)
			if err != nil {
				return nil, err
			}
			return connect(config)
		}
	}
	guest, err := given()
	if err != nil {
		return nil, err
	}
	return guest, c.confirm(ctx, guest)
}

// kubeconfigKey is the key of the Secret with the kubeconfig of the guest.
const kubeconfigKey = "kubeconfig"

// maxKubeconfig bounds the kubeconfig, in bytes.
const maxKubeconfig = 1 << 20

// kubeconfig returns the configuration by which the guest is reached, from the Secret that the status of the
// HostedCluster names. It runs no program and reads no file that the kubeconfig names. The error says why there is
// none.
func (c *ControlPlane) kubeconfig(ctx context.Context) (*rest.Config, error) {
	named := c.Cluster.Status.KubeConfig
	if named == nil || named.Name == "" {
		return nil, fmt.Errorf("the status of HostedCluster %s names no kubeconfig of the guest", c.name())
	}
	secret, err := c.Management.Kubernetes.CoreV1().Secrets(c.Cluster.Namespace).Get(ctx, named.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("could not read Secret %s/%s with the kubeconfig of the guest: %w", c.Cluster.Namespace, named.Name, err)
	}
	config, err := ParseKubeconfig(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("key %s of Secret %s/%s: %w", kubeconfigKey, c.Cluster.Namespace, named.Name, err)
	}
	return config, nil
}

// ParseKubeconfig parses a kubeconfig from a Secret. It must have its credentials itself: one that runs a
// program or names a file is an error, since who may write the Secret would choose them.
func ParseKubeconfig(text []byte) (*rest.Config, error) {
	if len(text) == 0 || len(text) > maxKubeconfig {
		return nil, fmt.Errorf("it has %d bytes, want 1 to %d", len(text), maxKubeconfig)
	}
	parsed, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("it cannot be parsed: %w", err)
	}
	if err := selfContained(parsed); err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
}

// selfContained is the error for a kubeconfig that would run a program or send a local file.
func selfContained(parsed *clientcmdapi.Config) error {
	for name, user := range parsed.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil {
			return fmt.Errorf("the user %q is authenticated by a program, which is not run", name)
		}
		if user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" {
			return fmt.Errorf("the user %q has credentials in a file", name)
		}
	}
	for name, each := range parsed.Clusters {
		if each.CertificateAuthority != "" {
			return fmt.Errorf("the certificate authority of the cluster %q is in a file", name)
		}
	}
	return nil
}

// guestTimeout bounds the first request to a guest.
const guestTimeout = 30 * time.Second

// confirm is an *input.Error where the guest is another cluster; any other error means that it could not be
// read within 30 seconds.
func (c *ControlPlane) confirm(ctx context.Context, guest *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, guestTimeout)
	defer cancel()
	version, err := guest.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the guest of HostedCluster %s could not be read: %w", c.name(), err)
	}
	want := c.Cluster.Spec.ClusterID
	if want == "" {
		return errors.New("spec.clusterID of HostedCluster " + c.name() +
			" is empty, so whether the kubeconfig belongs to its guest is unknown")
	}
	if id := string(version.Spec.ClusterID); id != want {
		return input.Errorf("the kubeconfig of the guest belongs to another cluster: "+
			"HostedCluster %s has the ID %s, and the guest %q", c.name(), want,
			id)
	}
	return nil
}

var (
	nameGuest = finding.NewName("Guest", "Replaces all checks of the guest of a hosted cluster that is unreachable.")

	reasonGuestUnreachable = finding.NewReason("GuestUnreachable", finding.Explanation{
		Meaning: "The guest of a hosted cluster is unreachable, so none of its checks ran.",
		Cause:   "The kubeconfig of the guest may not be read, or its API server does not respond from here.",
		Remedy:  "Grant get on the Secret that the status of the HostedCluster names, or pass a kubeconfig with --guest-kubeconfig.",
	})
)

// guestCheck is the check of a guest that cannot be reached.
func guestCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: nameGuest, Kind: finding.SourceGate,
		Run: func(context.Context, check.Subject) ([]finding.Finding, error) {
			return []finding.Finding{c.about(finding.Unknown(reasonGuestUnreachable, "no check of the guest ran: %s", c.guestError))}, nil
		},
	}
}

// unread is the transport in place of a guest that cannot be reached. It reads ClusterVersion, made from the
// status of the HostedCluster, and nothing else.
type unread struct{ of *ControlPlane }

// RoundTrip implements http.RoundTripper.
func (u unread) RoundTrip(request *http.Request) (*http.Response, error) {
	var body any
	switch request.URL.Path {
	case "/version":
		body = map[string]string{"gitVersion": ""}
	case "/apis/config.openshift.io/v1/clusterversions/version":
		body = clusterVersionOf(u.of)
	default:
		return nil, fmt.Errorf("the guest of HostedCluster %s cannot be reached: %w", u.of.name(), u.of.guestError)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(text)), Request: request,
	}, nil
}

// clusterVersionOf is the ClusterVersion of the guest, as far as the HostedCluster repeats it.
func clusterVersionOf(c *ControlPlane) *configv1.ClusterVersion {
	v := &configv1.ClusterVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion"},
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: configv1.ClusterID(c.Cluster.Spec.ClusterID), Channel: c.Cluster.Spec.Channel},
	}
	if status := c.Cluster.Status.Version; status != nil {
		v.Status.Desired, v.Status.History = status.Desired, status.History
		v.Status.AvailableUpdates, v.Status.ConditionalUpdates = status.AvailableUpdates, status.ConditionalUpdates
	}
	return v
}
