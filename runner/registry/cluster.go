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
	"github.com/openshift/update-preflight/collector/finding"
	"golang.org/x/net/http/httpproxy"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

const (
	configNamespace  = "openshift-config"
	managedNamespace = "openshift-config-managed"
	pullSecret       = "pull-secret"
	trustedBundle    = "trusted-ca-bundle"

	reasonPullSecret finding.Reason = "PullSecretUnreadable"
)

// Cluster is the cluster that would pull.
type Cluster struct {
	Kubernetes kubernetes.Interface
	OpenShift  configclient.Interface
	Dynamic    dynamic.Interface
	// Release is the pull spec of the release that the cluster runs.
	Release string
}

// FromCluster reads how the cluster pulls images, once. What may not be read,
// or is not as it must be, is among the Warnings, and the rest is gone by: what
// is pulled is held against its digest wherever it comes from. It takes "list"
// on imagedigestmirrorsets, imagetagmirrorsets and imagecontentsourcepolicies,
// and "get" on image.config.openshift.io, proxies, ConfigMaps in
// openshift-config and openshift-config-managed, and Secret
// openshift-config/pull-secret.
func FromCluster(ctx context.Context, cluster Cluster, local Local) *Access {
	a := &Access{network: network{override: local.Transport}, bases: map[base]*http.Transport{}}
	read := reading{cluster: cluster, access: a}
	settings := settings{release: cluster.Release}
	settings.mirrors = append(settings.mirrors, read.digestMirrors(ctx)...)
	settings.mirrors = append(settings.mirrors, read.tagMirrors(ctx)...)
	settings.mirrors = append(settings.mirrors, read.policies(ctx)...)
	read.image(ctx, &settings)
	read.proxy(ctx)
	read.pullSecret(ctx)
	a.addLocal(local)
	rules, warnings := newRules(settings)
	a.rules = rules
	a.warnings = append(a.warnings, warnings...)
	return a
}

// reading fills in an Access.
type reading struct {
	cluster Cluster
	access  *Access
}

// failed says whether an object could not be read, and warns unless it is not
// there at all. Where an API is not served, its objects are not there.
func (r reading) failed(err error, reason finding.Reason, what string) bool {
	if err == nil {
		return false
	}
	if !apierrors.IsNotFound(err) {
		r.access.warn(reason, what+" cannot be read: "+oneLine(err.Error()),
			"Get the permission to read it; without it, this preflight may pull from elsewhere or as somebody else than the nodes.")
	}
	return true
}

const reasonMirrors = "MirrorsUnreadable"

func (r reading) digestMirrors(ctx context.Context) []mirrorSet {
	list, err := r.cluster.OpenShift.ConfigV1().ImageDigestMirrorSets().List(ctx, metav1.ListOptions{})
	if r.failed(err, reasonMirrors, "the cluster's ImageDigestMirrorSets") {
		return nil
	}
	var sets []mirrorSet
	for _, object := range list.Items {
		for _, each := range object.Spec.ImageDigestMirrors {
			sets = append(sets, mirrorSet{
				source: each.Source, mirrors: asText(each.Mirrors), never: each.MirrorSourcePolicy == configv1.NeverContactSource,
				object: fmt.Sprintf("ImageDigestMirrorSet %q", object.Name),
			})
		}
	}
	return sets
}

func (r reading) tagMirrors(ctx context.Context) []mirrorSet {
	list, err := r.cluster.OpenShift.ConfigV1().ImageTagMirrorSets().List(ctx, metav1.ListOptions{})
	if r.failed(err, reasonMirrors, "the cluster's ImageTagMirrorSets") {
		return nil
	}
	var sets []mirrorSet
	for _, object := range list.Items {
		for _, each := range object.Spec.ImageTagMirrors {
			sets = append(sets, mirrorSet{
				source: each.Source, mirrors: asText(each.Mirrors), never: each.MirrorSourcePolicy == configv1.NeverContactSource,
				object: fmt.Sprintf("ImageTagMirrorSet %q", object.Name), tags: true,
			})
		}
	}
	return sets
}

// policies reads ImageContentSourcePolicies, which are what
// ImageDigestMirrorSets were called before OpenShift 4.13.
func (r reading) policies(ctx context.Context) []mirrorSet {
	list, err := r.cluster.Dynamic.Resource(operatorv1alpha1.GroupVersion.WithResource("imagecontentsourcepolicies")).List(ctx, metav1.ListOptions{})
	if r.failed(err, reasonMirrors, "the cluster's ImageContentSourcePolicies") {
		return nil
	}
	var sets []mirrorSet
	for i := range list.Items {
		var object operatorv1alpha1.ImageContentSourcePolicy
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &object)
		if r.failed(err, reasonMirrors, fmt.Sprintf("ImageContentSourcePolicy %q", list.Items[i].GetName())) {
			continue
		}
		for _, each := range object.Spec.RepositoryDigestMirrors {
			sets = append(sets, mirrorSet{source: each.Source, mirrors: each.Mirrors, object: fmt.Sprintf("ImageContentSourcePolicy %q", object.Name)})
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

// image reads the registries that are blocked, insecure and allowed, and the
// CAs for single ones.
func (r reading) image(ctx context.Context, into *settings) {
	image, err := r.cluster.OpenShift.ConfigV1().Images().Get(ctx, "cluster", metav1.GetOptions{})
	if r.failed(err, "RegistrySourcesUnreadable", "image.config.openshift.io \"cluster\"") {
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
		r.access.warn("AdditionalTrustedCAMissing", fmt.Sprintf("additionalTrustedCA of image.config.openshift.io \"cluster\" names ConfigMap %s/%s, which does not exist", configNamespace, name),
			"Create the ConfigMap, or correct the name: oc edit image.config.openshift.io cluster")
		return
	}
	if r.failed(err, "AdditionalTrustedCAUnreadable", fmt.Sprintf("ConfigMap %s/%s", configNamespace, name)) {
		return
	}
	r.access.network.certificates = map[string][]byte{}
	for key, bundle := range configMap.Data {
		if block, _ := pem.Decode([]byte(bundle)); block == nil {
			r.access.warn("AdditionalTrustedCAInvalid", fmt.Sprintf("the entry %q of ConfigMap %s/%s has no certificate in PEM", key, configNamespace, name),
				"Put the CA of the registry there, in PEM: oc edit configmap -n "+configNamespace+" "+name)
			continue
		}
		// A key cannot have a colon.
		r.access.network.certificates[strings.Replace(key, "..", ":", 1)] = []byte(bundle)
	}
}

// proxy reads the proxy that is in effect, and the CAs that go with it.
func (r reading) proxy(ctx context.Context) {
	proxy, err := r.cluster.OpenShift.ConfigV1().Proxies().Get(ctx, "cluster", metav1.GetOptions{})
	if !r.failed(err, "ProxyUnreadable", "proxy.config.openshift.io \"cluster\"") {
		status := proxy.Status
		config := httpproxy.Config{HTTPProxy: status.HTTPProxy, HTTPSProxy: status.HTTPSProxy, NoProxy: status.NoProxy}
		if config.HTTPProxy != "" || config.HTTPSProxy != "" {
			r.access.network.proxy = withoutSecrets(config.ProxyFunc())
		}
	}
	bundle, err := r.configMap(ctx, managedNamespace, trustedBundle)
	if !r.failed(err, "TrustedBundleUnreadable", fmt.Sprintf("ConfigMap %s/%s", managedNamespace, trustedBundle)) {
		r.access.network.bundle = []byte(bundle.Data["ca-bundle.crt"])
	}
}

// withoutSecrets keeps the password of a proxy's URL out of errors.
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

func (r reading) pullSecret(ctx context.Context) {
	name := fmt.Sprintf("Secret %s/%s", configNamespace, pullSecret)
	secret, err := r.cluster.Kubernetes.CoreV1().Secrets(configNamespace).Get(ctx, pullSecret, metav1.GetOptions{})
	if r.failed(err, reasonPullSecret, name) {
		return
	}
	global, err := parseAuth(name, secret.Data[corev1.DockerConfigJsonKey])
	if err != nil {
		r.access.warn(reasonPullSecret, err.Error(), "Correct the pull secret: oc set data secret/pull-secret -n openshift-config --from-file=.dockerconfigjson=FILE")
		return
	}
	global.cluster, global.helper, global.helpers = true, "", nil
	r.access.credentials = append(r.access.credentials, global)
}
