package signature

import (
	"context"
	"crypto/x509"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// The names in the namespace (cluster-update-keys and library-go pkg/verify).
	verification    = "release-verification"
	signaturesLabel = "release.openshift.io/verification-signatures"
	keyPrefix       = "verifier-public-key-"
	storePrefix     = "store-"

	// The signature stores of ClusterVersion (openshift/api config/v1).
	ownNamespace = "openshift-config"
	customField  = "spec.signatureStores of ClusterVersion version"
	customCAKey  = "ca.crt"
)

// maxCustomStores is how many signature stores ClusterVersion may name
// (openshift/api config/v1).
const maxCustomStores = 32

// The ConfigMap in which the network operator merges the certificate authorities
// of the system and of Proxy spec.trustedCA, and its key as CVO reads it
// (cluster-version-operator pkg/cvo/egress.go).
const (
	trustedBundle    = "trusted-ca-bundle"
	trustedBundleKey = "ca-bundle.crt"
)

// config reads the cluster's configuration.
type config interface {
	configv1client.ClusterVersionsGetter
	configv1client.ProxiesGetter
}

// clusterReader reads the keyrings and signature stores of a cluster.
type clusterReader struct {
	managed, own corev1client.ConfigMapInterface // of openshift-config-managed and openshift-config
	config       config
}

// FromCluster reads the trust of a cluster: the keyrings of ConfigMap
// openshift-config-managed/release-verification, and the signature stores in the
// order that the package comment states. It requires "get" on the ClusterVersion
// and the Proxy, "get" and "list" on ConfigMaps in openshift-config-managed and,
// for stores of spec.signatureStores with a CA, "get" on ConfigMaps in
// openshift-config. A keyring or store of the release that cannot be used is an
// *Error that names it, since the verification would be incomplete. A store of
// spec.signatureStores that cannot be used is ignored, as the API specifies, but
// its content counts as unknown.
func FromCluster(ctx context.Context, configMaps corev1client.ConfigMapsGetter, config config) (Trust, error) {
	c := clusterReader{managed: configMaps.ConfigMaps(namespace), own: configMaps.ConfigMaps(ownNamespace), config: config}
	data, err := c.verification(ctx)
	if err != nil {
		return Trust{}, err
	}
	local, err := c.managed.List(ctx, metav1.ListOptions{LabelSelector: signaturesLabel})
	if err != nil {
		return Trust{}, newError(ReasonTrustUnavailable, "list ConfigMaps in %s labeled %s: %v", namespace, signaturesLabel, err)
	}
	via, err := c.egress(ctx)
	if err != nil {
		return Trust{}, err
	}
	trust := Trust{}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if err := trust.add(key, data[key], via); err != nil {
			return Trust{}, err
		}
	}
	if len(trust.Keyrings) == 0 {
		return Trust{}, newError(ReasonNoKeys, "ConfigMap %s/%s has no %s*", namespace, verification, keyPrefix)
	}
	custom, set, err := c.customStores(ctx, via)
	if err != nil {
		return Trust{}, err
	}
	if set {
		trust.Stores = custom
	}
	trust.Stores = slices.Insert(trust.Stores, 0, Store(newConfigMapStore(local.Items)))
	return trust, nil
}

// verification is the ConfigMap in which CVO publishes the keyrings and stores of
// the current release.
func (c clusterReader) verification(ctx context.Context) (map[string]string, error) {
	config, err := c.managed.Get(ctx, verification, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, newError(ReasonNoKeys, "ConfigMap %s/%s, which holds the keyrings of releases, does not exist", namespace, verification)
	}
	if err != nil {
		return nil, newError(ReasonTrustUnavailable, "get ConfigMap %s/%s: %v", namespace, verification, err)
	}
	return config.Data, nil
}

// egress is how CVO reaches web servers from the cluster. A proxy named by this
// machine's environment takes precedence, since this machine may be outside of
// the cluster's network.
func (c clusterReader) egress(ctx context.Context) (egress, error) {
	via := egress{proxy: http.ProxyFromEnvironment}
	proxy, err := c.config.Proxies().Get(ctx, "cluster", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return egress{}, newError(ReasonTrustUnavailable, "get Proxy cluster: %v", err)
	default:
		via.proxy = proxyOf(proxy.Status)
	}
	bundle, err := c.managed.Get(ctx, trustedBundle, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return via, nil
	case err != nil:
		return egress{}, newError(ReasonTrustUnavailable, "get ConfigMap %s/%s: %v", namespace, trustedBundle, err)
	case bundle.Data[trustedBundleKey] == "":
		return via, nil
	}
	if via.roots, err = x509.SystemCertPool(); err != nil {
		via.roots = x509.NewCertPool()
	}
	if !via.roots.AppendCertsFromPEM([]byte(bundle.Data[trustedBundleKey])) {
		return egress{}, newError(ReasonTrustUnavailable, "%s of ConfigMap %s/%s holds no certificate", trustedBundleKey, namespace, trustedBundle)
	}
	return via, nil
}

// customStores are the stores of ClusterVersion spec.signatureStores. When the
// field is set, even to an empty list, they replace the stores of the release
// (cluster-version-operator pkg/customsignaturestore).
func (c clusterReader) customStores(ctx context.Context, via egress) (stores []Store, set bool, err error) {
	version, err := c.config.ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, newError(ReasonTrustUnavailable, "get ClusterVersion version: %v", err)
	case version.Spec.SignatureStores == nil:
		return nil, false, nil
	case len(version.Spec.SignatureStores) == 0:
		return []Store{unusableStore{name: customField, cause: newError(ReasonNoStores, "the list is empty and replaces the stores of the release")}}, true, nil
	case len(version.Spec.SignatureStores) > maxCustomStores:
		return nil, false, newError(ReasonInvalidStore, "%s has more than %d stores", customField, maxCustomStores)
	}
	for _, custom := range version.Spec.SignatureStores {
		store, violation := c.customStore(ctx, custom, via)
		if violation != nil {
			store = unusableStore{name: customField, cause: violation}
		}
		stores = append(stores, store)
	}
	return stores, true, nil
}

// customStore is one store of spec.signatureStores, with its own CA.
func (c clusterReader) customStore(ctx context.Context, custom configv1.SignatureStore, via egress) (Store, *Error) {
	u, err := url.Parse(custom.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// An invalid URL may also contain a password, so it is not repeated.
		return nil, newError(ReasonInvalidStore, "a store is not an http or https URL")
	}
	if custom.CA.Name == "" {
		return newHTTPStore(u, via), nil
	}
	ca, err := c.own.Get(ctx, custom.CA.Name, metav1.GetOptions{})
	if err != nil {
		return nil, newError(ReasonInvalidStore, "the ca of store %q cannot be read: get ConfigMap %s/%s: %v", u.Redacted(), ownNamespace, custom.CA.Name, err)
	}
	via.roots = x509.NewCertPool()
	if !via.roots.AppendCertsFromPEM([]byte(ca.Data[customCAKey])) {
		return nil, newError(ReasonInvalidStore, "the ca of store %q holds no certificate: %s of ConfigMap %s/%s", u.Redacted(), customCAKey, ownNamespace, custom.CA.Name)
	}
	return newHTTPStore(u, via), nil
}

// add adds one entry of the ConfigMap, unless it is neither a keyring nor a store.
func (t *Trust) add(key, value string, via egress) error {
	switch {
	case strings.HasPrefix(key, keyPrefix):
		keyring, err := ReadKeyring(key, strings.NewReader(value))
		if err != nil {
			return err
		}
		t.Keyrings = append(t.Keyrings, keyring)
	case strings.HasPrefix(key, storePrefix):
		// NewStore accepts a directory, which the cluster cannot mean.
		if !strings.Contains(value, "://") {
			return newError(ReasonInvalidStore, "entry %q of ConfigMap %s/%s is not a URL", key, namespace, verification)
		}
		store, err := newStore(strings.TrimSpace(value), via)
		if err != nil {
			return newError(ReasonInvalidStore, "entry %q of ConfigMap %s/%s: %v", key, namespace, verification, err)
		}
		t.Stores = append(t.Stores, store)
	}
	return nil
}
