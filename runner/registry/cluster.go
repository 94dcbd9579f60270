package registry

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	"golang.org/x/net/http/httpproxy"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry/credential"
)

const (
	configNamespace  = "openshift-config"
	managedNamespace = "openshift-config-managed"
	trustedBundle    = "trusted-ca-bundle"
)

// globalPullSecret is the Secret by which the nodes of a cluster pull.
func globalPullSecret() types.NamespacedName {
	return types.NamespacedName{Namespace: configNamespace, Name: "pull-secret"}
}

// PullConfig reads how a cluster pulls images.
type PullConfig struct {
	Kubernetes kubernetes.Interface
	OpenShift  configclient.Interface
	Dynamic    dynamic.Interface
	// Release is the pull spec of the current release of the cluster.
	Release string
	// Hosted is the configuration that a HostedCluster adds, if the release is for a hosted cluster; nil otherwise.
	Hosted *Hosted
}

// Hosted is how the release of a HostedCluster is pulled beside how its management cluster pulls images.
type Hosted struct {
	Name types.NamespacedName
	// PullSecret is the name of a Secret in the same namespace, whose credentials come first.
	PullSecret string
	Mirrors    []configv1.ImageDigestMirrors
}

// FromCluster reads once how the cluster pulls images. Configuration that cannot
// be read or is invalid is reported in Warnings and ignored; this is safe, since
// content is verified by digest. It requires "list" on imagedigestmirrorsets,
// imagetagmirrorsets and imagecontentsourcepolicies, and "get" on
// image.config.openshift.io, proxies, ConfigMaps in openshift-config and
// openshift-config-managed, and Secret openshift-config/pull-secret.
func FromCluster(ctx context.Context, cluster PullConfig, local Local) *Access {
	a := &Access{network: network{override: local.Transport}, bases: map[base]http.RoundTripper{}}
	read := reading{cluster: cluster, access: a}
	settings := settings{release: cluster.Release}
	settings.mirrors = append(settings.mirrors, read.digestMirrors(ctx)...)
	settings.mirrors = append(settings.mirrors, read.tagMirrors(ctx)...)
	settings.mirrors = append(settings.mirrors, read.policies(ctx)...)
	if of := cluster.Hosted; of != nil {
		settings.mirrors = append(settings.mirrors, digestMirrorSets(of.Mirrors, hostedCluster, of.Name.String())...)
	}
	read.image(ctx, &settings)
	read.proxy(ctx)
	if of := cluster.Hosted; of != nil {
		read.pullSecret(ctx, types.NamespacedName{Namespace: of.Name.Namespace, Name: of.PullSecret})
	}
	read.pullSecret(ctx, globalPullSecret())
	rules, warnings := newRules(settings)
	a.rules = rules
	a.warnings = append(a.warnings, warnings...)
	a.ofCluster.credentials, a.ofCluster.warnings = len(a.credentials), len(a.warnings)
	a.addLocal(ctx, local)
	return a
}

type reading struct {
	cluster PullConfig
	access  *Access
}

// failed reports whether an object could not be read, and adds a warning unless
// the object or its API does not exist.
func (r reading) failed(err error, reason finding.Reason, what string) bool {
	if err == nil {
		return false
	}
	switch {
	case apierrors.IsNotFound(err):
	case gap.Is(err):
		r.access.warn(reason, words.Line(err.Error(), maxText),
			"Configure the mirrors and credentials of the nodes on this machine; without them, this preflight may use others.")
	default:
		r.access.warn(reason, what+" cannot be read: "+words.Line(err.Error(), maxText),
			"Obtain the permission to read it; without it, this preflight may use other registries or credentials "+
				"than the nodes.", finding.Roles())
	}
	return true
}

func (r reading) digestMirrors(ctx context.Context) []mirrorSet {
	list, err := r.cluster.OpenShift.ConfigV1().ImageDigestMirrorSets().List(ctx, metav1.ListOptions{})
	if r.failed(err, reasonMirrorsUnreadable, "the cluster's ImageDigestMirrorSets") {
		return nil
	}
	var sets []mirrorSet
	for _, object := range list.Items {
		sets = append(sets, digestMirrorSets(object.Spec.ImageDigestMirrors, digestMirrorSet, object.Name)...)
	}
	return sets
}

func digestMirrorSets(mirrors []configv1.ImageDigestMirrors, kind, name string) []mirrorSet {
	var sets []mirrorSet
	for _, each := range mirrors {
		sets = append(sets, mirrorSet{
			source: each.Source, mirrors: asText(each.Mirrors), never: each.MirrorSourcePolicy == configv1.NeverContactSource, kind: kind,
			name: name,
		})
	}
	return sets
}

func (r reading) tagMirrors(ctx context.Context) []mirrorSet {
	list, err := r.cluster.OpenShift.ConfigV1().ImageTagMirrorSets().List(ctx, metav1.ListOptions{})
	if r.failed(err, reasonMirrorsUnreadable, "the cluster's ImageTagMirrorSets") {
		return nil
	}
	var sets []mirrorSet
	for _, object := range list.Items {
		for _, each := range object.Spec.ImageTagMirrors {
			sets = append(sets, mirrorSet{
				source: each.Source, mirrors: asText(each.Mirrors), never: each.MirrorSourcePolicy == configv1.NeverContactSource,
				kind: tagMirrorSet, name: object.Name, tags: true,
			})
		}
	}
	return sets
}

// policies reads ImageContentSourcePolicies, the predecessors of ImageDigestMirrorSets before OpenShift 4.13.
func (r reading) policies(ctx context.Context) []mirrorSet {
	list, err := r.cluster.Dynamic.Resource(operatorv1alpha1.GroupVersion.WithResource("imagecontentsourcepolicies")).List(ctx,
		metav1.ListOptions{})
	if r.failed(err, reasonMirrorsUnreadable, "the cluster's ImageContentSourcePolicies") {
		return nil
	}
	var sets []mirrorSet
	for i := range list.Items {
		var object operatorv1alpha1.ImageContentSourcePolicy
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &object)
		if r.failed(err, reasonMirrorsUnreadable, fmt.Sprintf("ImageContentSourcePolicy %q", list.Items[i].GetName())) {
			continue
		}
		for _, each := range object.Spec.RepositoryDigestMirrors {
			sets = append(sets, mirrorSet{source: each.Source, mirrors: each.Mirrors, kind: contentSourcePolicy, name: object.Name})
		}
	}
	return sets
}

func asText(mirrors []configv1.ImageMirror) []string {
	texts := make([]string, 0, len(mirrors))
	for _, mirror := range mirrors {
		texts = append(texts, string(mirror))
	}
	return texts
}

// image reads the blocked, insecure and allowed registries, and the CAs of single registries.
func (r reading) image(ctx context.Context, into *settings) {
	image, err := r.cluster.OpenShift.ConfigV1().Images().Get(ctx, "cluster", metav1.GetOptions{})
	if r.failed(err, reasonRegistrySourcesUnreadable, "image.config.openshift.io \"cluster\"") {
		return
	}
	sources := image.Spec.RegistrySources
	into.blocked, into.insecure, into.allowed = sources.BlockedRegistries, sources.InsecureRegistries, sources.AllowedRegistries
	name := image.Spec.AdditionalTrustedCA.Name
	if name == "" {
		return
	}
	configMap, err := r.configMap(ctx, configNamespace, name)
	if apierrors.IsNotFound(err) {
		r.access.warn(reasonAdditionalTrustedCAMissing, fmt.Sprintf(
			"additionalTrustedCA of image.config.openshift.io \"cluster\" names ConfigMap %s/%s, which does not exist", configNamespace, name),
			"Create the ConfigMap, or correct the name.", finding.Change(editImageConfig))
		return
	}
	if r.failed(err, reasonAdditionalTrustedCAUnreadable, fmt.Sprintf("ConfigMap %s/%s", configNamespace, name)) {
		return
	}
	r.access.network.certificates = map[string][]byte{}
	for key, bundle := range configMap.Data {
		if block, _ := pem.Decode([]byte(bundle)); block == nil {
			r.access.warn(reasonAdditionalTrustedCAInvalid,
				fmt.Sprintf("the entry %q of ConfigMap %s/%s contains no PEM certificate", key, configNamespace, name),
				"Set the entry to the CA of the registry in PEM format.", finding.Change("oc edit configmap -n %s %s", configNamespace, name))
			continue
		}
		// A key of a ConfigMap cannot contain a colon.
		r.access.network.certificates[strings.Replace(key, "..", ":", 1)] = []byte(bundle)
	}
}

func (r reading) proxy(ctx context.Context) {
	proxy, err := r.cluster.OpenShift.ConfigV1().Proxies().Get(ctx, "cluster", metav1.GetOptions{})
	if !r.failed(err, reasonProxyUnreadable, "proxy.config.openshift.io \"cluster\"") {
		status := proxy.Status
		config := httpproxy.Config{HTTPProxy: status.HTTPProxy, HTTPSProxy: status.HTTPSProxy, NoProxy: status.NoProxy}
		if config.HTTPProxy != "" || config.HTTPSProxy != "" {
			r.access.network.proxy = withoutSecrets(config.ProxyFunc())
		}
	}
	bundle, err := r.configMap(ctx, managedNamespace, trustedBundle)
	if !r.failed(err, reasonTrustedBundleUnreadable, fmt.Sprintf("ConfigMap %s/%s", managedNamespace, trustedBundle)) {
		r.access.network.bundle = []byte(bundle.Data["ca-bundle.crt"])
	}
}

// withoutSecrets replaces errors that may contain the password of a proxy's URL.
func withoutSecrets(find func(*url.URL) (*url.URL, error)) func(*url.URL) (*url.URL, error) {
	return func(u *url.URL) (*url.URL, error) {
		proxy, err := find(u)
		if err != nil {
			return nil, fmt.Errorf("the URL of the cluster's proxy for %s cannot be used", u.Scheme)
		}
		return proxy, nil
	}
}

func (r reading) configMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return r.cluster.Kubernetes.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (r reading) pullSecret(ctx context.Context, of types.NamespacedName) {
	name := "Secret " + of.String()
	secret, err := r.cluster.Kubernetes.CoreV1().Secrets(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if r.failed(err, reasonPullSecretUnreadable, name) {
		return
	}
	global, err := credential.ParseAuth(name, secret.Data[corev1.DockerConfigJsonKey])
	if err != nil {
		r.access.warn(reasonPullSecretUnreadable, err.Error(), "Correct the pull secret, "+entryOf(of)+".")
		return
	}
	global.Secret, global.Helper, global.Helpers = &of, "", nil
	r.access.credentials = append(r.access.credentials, global)
}

// Outbound sends requests without credentials through the proxy of the cluster, and trusts
// its CAs. It requires "get" on proxies and on ConfigMap
// openshift-config-managed/trusted-ca-bundle; what cannot be read is not used.
func Outbound(ctx context.Context, c *cluster.Cluster) http.RoundTripper {
	a := &Access{bases: map[base]http.RoundTripper{}}
	own := PullConfig{Kubernetes: c.Kubernetes, OpenShift: c.OpenShift, Dynamic: c.Dynamic}
	reading{cluster: own, access: a}.proxy(ctx)
	return a.transport("", false)
}

// OwnOutbound sends requests without credentials as this machine does.
func OwnOutbound() http.RoundTripper {
	return (&Access{bases: map[base]http.RoundTripper{}}).transport("", false)
}
