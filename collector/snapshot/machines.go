package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/pager"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/nodeconfig"
	"github.com/openshift/update-preflight/collector/words"
)

// MachineSets are all MachineSets, sorted by namespace and name, without the templates of their machines.
func (c *Cluster) MachineSets(ctx context.Context) ([]machinev1beta1.MachineSet, error) {
	return once(ctx, c, "machineSets", func(ctx context.Context) ([]machinev1beta1.MachineSet, error) {
		resource := machinev1beta1.GroupVersion.WithResource("machinesets")
		return listAs(ctx, c.api.Dynamic, resource, func(set *machinev1beta1.MachineSet) {
			set.Spec.Template = machinev1beta1.MachineTemplateSpec{}
		})
	})
}

// MachineHealthChecks are all MachineHealthChecks, sorted by namespace and name.
func (c *Cluster) MachineHealthChecks(ctx context.Context) ([]machinev1beta1.MachineHealthCheck, error) {
	return List[machinev1beta1.MachineHealthCheck](ctx, c, machinev1beta1.GroupVersion.WithResource("machinehealthchecks"))
}

// CertificateSigningRequests are all CertificateSigningRequests, sorted by name, without
// the requests and the certificates.
func (c *Cluster) CertificateSigningRequests(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, error) {
	return once(ctx, c, "certificateSigningRequests", func(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Kubernetes.CertificatesV1().CertificateSigningRequests().List(ctx, options)
		}, func(request *certificatesv1.CertificateSigningRequest) {
			request.Spec.Request, request.Spec.Extra, request.Status.Certificate = nil, nil, nil
		})
	})
}

// NodeConfig is the configuration of all nodes: Node "cluster" of config.openshift.io.
func (c *Cluster) NodeConfig(ctx context.Context) (*configv1.Node, error) {
	return once(ctx, c, "nodeConfig", func(ctx context.Context) (*configv1.Node, error) {
		return c.api.OpenShift.ConfigV1().Nodes().Get(ctx, "cluster", metav1.GetOptions{})
	})
}

// MachineConfiguration is the configuration of the machine-config-operator: MachineConfiguration
// "cluster" of operator.openshift.io.
func (c *Cluster) MachineConfiguration(ctx context.Context) (*operatorv1.MachineConfiguration, error) {
	return once(ctx, c, "machineConfiguration", func(ctx context.Context) (*operatorv1.MachineConfiguration, error) {
		found, err := c.api.Dynamic.Resource(operatorv1.GroupVersion.WithResource("machineconfigurations")).Get(ctx, "cluster",
			metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		configuration := &operatorv1.MachineConfiguration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, configuration); err != nil {
			return nil, fmt.Errorf("MachineConfiguration cluster cannot be decoded: %w", err)
		}
		return configuration, nil
	})
}

// Kubelets are the nodes of one pool with the same version of the kubelet.
type Kubelets struct {
	// Version is the version that the nodes report; empty where they do not.
	Version string
	// Pool is the MachineConfigPool that updates the nodes; empty if none does, as for Windows, or if it is unknown.
	Pool string
	// PoolUnknown is true where no pool is known to update the nodes, and not all pools could be read.
	PoolUnknown bool
	Paused      bool
	// PausedBy is as the function PausedBy has it.
	PausedBy string
	Nodes    []string
}

// Kubelets returns the kubelets of all nodes, sorted by pool and version. If it returns an error about the
// MachineConfigPools, it also returns the kubelets, without a pool.
func (c *Cluster) Kubelets(ctx context.Context) ([]Kubelets, error) {
	return once(ctx, c, "kubelets", func(ctx context.Context) ([]Kubelets, error) {
		nodes, err := c.Nodes(ctx)
		if err != nil {
			return nil, fmt.Errorf("could not list the nodes: %w", err)
		}
		tracked, log := gap.Watch(ctx)
		found, err := c.MachineConfigPools(tracked)
		if apierrors.IsNotFound(err) {
			return groupKubelets(nodes, nil), nil
		}
		if err != nil {
			return unknownPools(groupKubelets(nodes, nil)), fmt.Errorf("could not list the MachineConfigPools: %w", err)
		}
		pools, err := readPools(found, nodes)
		groups := groupKubelets(nodes, pools)
		if err != nil || len(log.All()) > 0 {
			groups = unknownPools(groups)
		}
		return groups, err
	})
}

// unknownPools marks the kubelets without a pool.
func unknownPools(groups []Kubelets) []Kubelets {
	for at := range groups {
		groups[at].PoolUnknown = groups[at].Pool == ""
	}
	return groups
}

func groupKubelets(nodes []corev1.Node, pools []pool) []Kubelets {
	type key struct{ version, pool string }
	at := map[key]int{}
	var groups []Kubelets
	for i := range nodes {
		node := &nodes[i]
		of := poolOf(node, pools)
		key := key{node.Status.NodeInfo.KubeletVersion, of.name}
		if _, ok := at[key]; !ok {
			at[key] = len(groups)
			groups = append(groups, Kubelets{Version: key.version, Pool: of.name, Paused: of.paused, PausedBy: of.pausedBy})
		}
		group := &groups[at[key]]
		group.Nodes = append(group.Nodes, node.Name)
	}
	slices.SortFunc(groups, func(a, b Kubelets) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Version, b.Version))
	})
	return groups
}

// PausedBy returns the program that paused a pool, by its managed fields: that program unpauses the pool, too. It
// is empty for the client of a person, and if unknown.
func PausedBy(pool *machineconfigurationv1.MachineConfigPool, nodes []corev1.Node) string {
	for _, fields := range pool.ManagedFields {
		if fields.FieldsV1 == nil || !pool.Spec.Paused || !strings.Contains(fields.FieldsV1.GetRawString(), `"f:paused":`) {
			continue
		}
		if !OfPerson(fields.Manager) {
			return words.External(fields.Manager)
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(pool.Spec.NodeSelector)
	for i := range nodes {
		if by, state := HeldBy(&nodes[i]); err == nil && pool.Spec.Paused && selector.Matches(labels.Set(nodes[i].Labels)) &&
			strings.Contains(strings.ToLower(state), "paused") {
			return by
		}
	}
	return ""
}

// OfPerson reports whether a field manager is a client by which people write: others write for a program, such as ocs-operator.
func OfPerson(manager string) bool {
	client := strings.FieldsFunc(manager, func(r rune) bool { return r == '-' || r == '.' || r == '/' })
	return len(client) > 0 && slices.Contains([]string{"oc", "kubectl", "Mozilla"}, client[0])
}

// held matches the value of an annotation by which a program states that it drains or reboots a node, or has paused its
// pool: "Draining_MCP_Paused", "Drain_Required".
var held = regexp.MustCompile(`(?i)draining|drain.?required|rebooting|reboot.?required|paused`)

// HeldBy returns the program other than the machine-config-operator that drains or reboots a node, as the domain
// of the annotation by which it says so, and the value. Both are empty if there is none.
func HeldBy(node *corev1.Node) (by, state string) {
	for _, name := range slices.Sorted(maps.Keys(node.Annotations)) {
		if value := node.Annotations[name]; Holds(name, value) {
			domain, _, _ := strings.Cut(name, "/")
			return words.External(domain), words.External(value)
		}
	}
	return "", ""
}

// maxState bounds what an annotation says of the state of a node, in bytes: a longer one is none.
const maxState = 64

// Holds reports whether an annotation of a node means that a program drains or reboots it, or has paused its pool.
// The convention is used by the SR-IOV operator (sriovnetwork.openshift.io/state and current-state) and by kured
// (weave.works/kured-reboot-in-progress).
func Holds(annotation, value string) bool {
	domain, key, ok := strings.Cut(annotation, "/")
	if !ok || domain+"/" == configAnnotations || value == "" || len(value) > maxState {
		return false
	}
	inProgress := strings.HasSuffix(key, "reboot-in-progress") || strings.HasSuffix(key, "drain-in-progress")
	return strings.HasSuffix(key, "state") && held.MatchString(value) || inProgress && value != "false"
}

// pool is the selection of nodes of a MachineConfigPool.
type pool struct {
	name     string
	paused   bool
	pausedBy string
	selector labels.Selector
}

// rank is the precedence of pools that select the same node: the control plane's,
// then custom pools, then worker, which selects their nodes too
// (machine-config-operator pkg/helpers, GetPrimaryPoolForNode).
func (p pool) rank() int {
	switch p.name {
	case "master", "arbiter":
		return 0
	case "worker":
		return 2
	}
	return 1
}

func readPools(found []machineconfigurationv1.MachineConfigPool, nodes []corev1.Node) ([]pool, error) {
	var pools []pool
	for i := range found {
		selector, err := metav1.LabelSelectorAsSelector(found[i].Spec.NodeSelector)
		if err != nil {
			return nil, fmt.Errorf("the nodeSelector of MachineConfigPool %q is invalid: %w", found[i].Name, err)
		}
		pools = append(pools, pool{name: found[i].Name, paused: found[i].Spec.Paused, pausedBy: PausedBy(&found[i], nodes), selector: selector})
	}
	slices.SortFunc(pools, func(a, b pool) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.name, b.name))
	})
	return pools, nil
}

// poolOf is the pool that updates a node, or the zero value. Where several custom
// pools select the node, none updates it; the result is the one whose configuration
// the node has.
func poolOf(node *corev1.Node, pools []pool) pool {
	if node.Labels[corev1.LabelOSStable] == string(corev1.Windows) {
		return pool{}
	}
	var best pool
	config := node.Annotations["machineconfiguration.openshift.io/currentConfig"]
	for _, candidate := range pools {
		if candidate.selector.Empty() || !candidate.selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		if best.name != "" && candidate.rank() > best.rank() {
			break
		}
		if best.name == "" || strings.HasPrefix(config, "rendered-"+candidate.name+"-") {
			best = candidate
		}
	}
	return best
}

// OSImageStream is which images of the operating system there are: OSImageStream "cluster" of
// machineconfiguration.openshift.io/v1, which 5.0 and later have.
func (c *Cluster) OSImageStream(ctx context.Context) (*machineconfigurationv1.OSImageStream, error) {
	return once(ctx, c, "osImageStream", func(ctx context.Context) (*machineconfigurationv1.OSImageStream, error) {
		found, err := c.api.Dynamic.Resource(machineconfigurationv1.GroupVersion.WithResource("osimagestreams")).Get(ctx, "cluster",
			metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		stream := &machineconfigurationv1.OSImageStream{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, stream); err != nil {
			return nil, fmt.Errorf("OSImageStream cluster cannot be decoded: %w", err)
		}
		return stream, nil
	})
}

// MachineConfig is the configuration of nodes (machineconfiguration.openshift.io/v1), with the fields that checks read:
// never the content of its files, which has secrets.
type MachineConfig struct {
	// ObjectMeta has the name, the UID, the labels, the owners and the annotations of the machine-config-operator.
	metav1.ObjectMeta

	// CgroupArguments are the kernel arguments about cgroups (package nodeconfig).
	CgroupArguments []string
	// Extensions are the first of them, at most 100.
	Extensions []string
	// KernelType is empty for the default one.
	KernelType string
	// OSImageURL is empty if the release decides. A rendered configuration always has it.
	OSImageURL string
	// DefaultRuntime is the container runtime that its files make the default of CRI-O; empty for the release's
	// default.
	DefaultRuntime string
	// RuntimeUnread is true if the default runtime is unknown, since files cannot be decoded.
	RuntimeUnread bool
	// NetworkScripts are the paths of its files that configure connections in the format ifcfg.
	NetworkScripts []string
	// ScriptsUnread is true if these are unknown, since files cannot be decoded.
	ScriptsUnread bool
	// NetworkTeam is true if a kernel argument configures a network team.
	NetworkTeam bool
}

const (
	// configsPage is the number of MachineConfigs that are read at a time: a rendered one has up to one and a half megabytes,
	// the limit of etcd, and ten where that was raised. Those that sort first are small, so their size states nothing.
	configsPage = 5
	// maxExtensions bounds the extensions that are kept of one MachineConfig.
	maxExtensions = 100
	// configAnnotations begin the annotations of the machine-config-operator.
	configAnnotations = "machineconfiguration.openshift.io/"
)

// MachineConfigs returns all MachineConfigs, including rendered ones that pools no longer use, sorted by name.
// They are decoded one by one as they arrive.
func (c *Cluster) MachineConfigs(ctx context.Context) ([]MachineConfig, error) {
	return once(ctx, c, "machineConfigs", func(ctx context.Context) ([]MachineConfig, error) {
		r := &configReader{cluster: c}
		pages := pager.New(r.page)
		pages.PageBufferSize = 1
		if err := pages.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { return nil }); err != nil {
			return nil, err
		}
		return r.found, nil
	})
}

type configReader struct {
	cluster *Cluster
	found   []MachineConfig
}

// page reads a page, and returns the metadata of its list alone.
func (r *configReader) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.Limit = configsPage
	group := machineconfigurationv1.GroupVersion
	// The client of any group decodes the error of an API server.
	body, err := r.cluster.api.Kubernetes.CoreV1().RESTClient().Get().AbsPath("/apis", group.Group, group.Version, "machineconfigs").
		SetHeader("Accept", runtime.ContentTypeJSON).VersionedParams(&options, scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	err = r.decode(json.NewDecoder(body), &list.ListMeta)
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, fmt.Errorf("the list of MachineConfigs cannot be read: %w", err)
	}
	return list, nil
}

func (r *configReader) decode(from *json.Decoder, into *metav1.ListMeta) error {
	if begin, err := from.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(err, errors.New("it is not a list"))
	}
	for from.More() {
		key, err := from.Token()
		if err == nil {
			err = r.decodeMember(from, key, into)
		}
		if err != nil {
			return err
		}
	}
	_, err := from.Token()
	return err
}

func (r *configReader) decodeMember(from *json.Decoder, key json.Token, into *metav1.ListMeta) error {
	if key == "items" {
		return r.decodeItems(from)
	}
	var value json.RawMessage
	if err := from.Decode(&value); err != nil {
		return err
	}
	if key == "metadata" {
		return kjson.UnmarshalCaseSensitivePreserveInts(value, into)
	}
	return nil
}

func (r *configReader) decodeItems(from *json.Decoder) error {
	begin, err := from.Token()
	if err != nil || begin == nil { // null is a list without items
		return err
	}
	if begin != json.Delim('[') {
		return errors.New("its items are not a list")
	}
	for from.More() {
		var item json.RawMessage
		if err := from.Decode(&item); err != nil {
			return err
		}
		if len(r.found) == maxObjects {
			return fmt.Errorf("it contains more than %d objects", maxObjects)
		}
		config, err := decodeConfig(item)
		if err != nil {
			return err
		}
		r.found = append(r.found, config)
	}
	_, err = from.Token()
	return err
}

func decodeConfig(item json.RawMessage) (MachineConfig, error) {
	var fields struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Config          json.RawMessage `json:"config"`
			KernelArguments []string        `json:"kernelArguments"`
			Extensions      []string        `json:"extensions"`
			KernelType      string          `json:"kernelType"`
			OSImageURL      string          `json:"osImageURL"`
		} `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(item, &fields); err != nil {
		var named unstructured.Unstructured
		_ = json.Unmarshal(item, &named.Object) // the name is empty otherwise
		return MachineConfig{}, fmt.Errorf("MachineConfig %q cannot be decoded: %w", named.GetName(), err)
	}
	config := MachineConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name: fields.Metadata.Name, UID: fields.Metadata.UID, Labels: fields.Metadata.Labels,
			OwnerReferences: fields.Metadata.OwnerReferences, Annotations: fields.Metadata.Annotations,
		},
		CgroupArguments: nodeconfig.CgroupArguments(fields.Spec.KernelArguments),
		Extensions:      fields.Spec.Extensions[:min(len(fields.Spec.Extensions), maxExtensions)],
		KernelType:      fields.Spec.KernelType, OSImageURL: fields.Spec.OSImageURL,
		NetworkTeam: nodeconfig.HasNetworkTeam(fields.Spec.KernelArguments),
	}
	maps.DeleteFunc(config.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, configAnnotations) })
	files := nodeconfig.FilesOf(fields.Spec.Config)
	config.DefaultRuntime, config.RuntimeUnread = files.DefaultRuntime, files.RuntimeUnread != nil
	config.NetworkScripts, config.ScriptsUnread = files.NetworkScripts, files.ScriptsUnread != nil
	return config, nil
}
