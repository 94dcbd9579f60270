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

	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
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

// maxCustomStores is how many signature stores ClusterVersion may name (openshift/api config/v1).
const maxCustomStores = 32

// The ConfigMap in which the network operator merges the certificate authorities
// of the system and of Proxy spec.trustedCA, and its key as CVO reads it
// (cluster-version-operator pkg/cvo/egress.go).
const (
	trustedBundle    = "trusted-ca-bundle"
	trustedBundleKey = "ca-bundle.crt"
)

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
	c := clusterReader{managed: configMaps.ConfigMaps(store.Namespace), own: configMaps.ConfigMaps(ownNamespace), config: config}
	data, err := c.verification(ctx)
	if err != nil {
		return Trust{}, err
	}
	local, err := c.managed.List(ctx, metav1.ListOptions{LabelSelector: signaturesLabel})
	if err != nil {
		return Trust{}, refusal.New(refusal.ReasonTrustUnavailable, "list ConfigMaps in %s labeled %s: %w", store.Namespace, signaturesLabel, err)
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
		return Trust{}, refusal.New(refusal.ReasonNoKeys, "ConfigMap %s/%s has no %s*", store.Namespace, verification, keyPrefix)
	}
	custom, set, err := c.customStores(ctx, via)
	if err != nil {
		return Trust{}, err
	}
	if set {
		trust.Stores = custom
	}
	trust.Stores = slices.Insert(trust.Stores, 0, store.Store(store.OfConfigMaps(local.Items)))
	return trust, nil
}

// verification is the ConfigMap in which CVO publishes the keyrings and stores of the current release.
func (c clusterReader) verification(ctx context.Context) (map[string]string, error) {
	config, err := c.managed.Get(ctx, verification, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, refusal.New(refusal.ReasonNoKeys, "ConfigMap %s/%s, which contains the keyrings of releases, "+
			"does not exist", store.Namespace,
			verification)
	}
	if err != nil {
		return nil, refusal.New(refusal.ReasonTrustUnavailable, "get ConfigMap %s/%s: %w", store.Namespace, verification, err)
	}
	return config.Data, nil
}

// egress is how CVO reaches web servers from the cluster. A proxy named by this
// machine's environment takes precedence, since this machine may be outside of
// the cluster's network.
func (c clusterReader) egress(ctx context.Context) (store.Egress, error) {
	via := store.Egress{Proxy: http.ProxyFromEnvironment}
	proxy, err := c.config.Proxies().Get(ctx, "cluster", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return store.Egress{}, refusal.New(refusal.ReasonTrustUnavailable, "get Proxy cluster: %w", err)
	default:
		via.Proxy = store.ProxyOf(proxy.Status)
	}
	bundle, err := c.managed.Get(ctx, trustedBundle, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return via, nil
	case err != nil:
		return store.Egress{}, refusal.New(refusal.ReasonTrustUnavailable, "get ConfigMap %s/%s: %w", store.Namespace, trustedBundle, err)
	case bundle.Data[trustedBundleKey] == "":
		return via, nil
	}
	if via.Roots, err = x509.SystemCertPool(); err != nil {
		via.Roots = x509.NewCertPool()
	}
	if !via.Roots.AppendCertsFromPEM([]byte(bundle.Data[trustedBundleKey])) {
		return store.Egress{}, refusal.New(refusal.ReasonTrustUnavailable, "%s of ConfigMap %s/%s contains no "+
			"certificate", trustedBundleKey,
			store.Namespace, trustedBundle)
	}
	return via, nil
}

// customStores are the stores of ClusterVersion spec.signatureStores. When the
// field is set, even to an empty list, they replace the stores of the release
// (cluster-version-operator pkg/customsignaturestore).
func (c clusterReader) customStores(ctx context.Context, via store.Egress) (stores []store.Store, set bool, err error) {
	version, err := c.config.ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, refusal.New(refusal.ReasonTrustUnavailable, "get ClusterVersion version: %w", err)
	case version.Spec.SignatureStores == nil:
		return nil, false, nil
	case len(version.Spec.SignatureStores) == 0:
		return []store.Store{store.Unusable{
			Name:  customField,
			Cause: refusal.New(refusal.ReasonNoStores, "the list is empty and replaces the stores of the release"),
		}}, true, nil
	case len(version.Spec.SignatureStores) > maxCustomStores:
		return nil, false, refusal.New(refusal.ReasonInvalidStore, "%s has more than %d stores", customField, maxCustomStores)
	}
	for _, custom := range version.Spec.SignatureStores {
		usable, violation := c.customStore(ctx, custom, via)
		if violation != nil {
			usable = store.Unusable{Name: customField, Cause: violation}
		}
		stores = append(stores, usable)
	}
	return stores, true, nil
}

func (c clusterReader) customStore(ctx context.Context, custom configv1.SignatureStore, via store.Egress) (store.Store, *refusal.Error) {
	u, err := url.Parse(custom.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// An invalid URL may also contain a password, so it is not repeated.
		return nil, refusal.New(refusal.ReasonInvalidStore, "a store is not an http or https URL")
	}
	if custom.CA.Name == "" {
		return store.OfServer(u, via), nil
	}
	ca, err := c.own.Get(ctx, custom.CA.Name, metav1.GetOptions{})
	if err != nil {
		return nil, refusal.New(refusal.ReasonInvalidStore, "the ca of store %q cannot be read: get ConfigMap %s/%s: %w", u.Redacted(),
			ownNamespace, custom.CA.Name, err)
	}
	via.Roots = x509.NewCertPool()
	if !via.Roots.AppendCertsFromPEM([]byte(ca.Data[customCAKey])) {
		return nil, refusal.New(refusal.ReasonInvalidStore, "the ca of store %q contains no certificate: %s of "+
			"ConfigMap %s/%s", u.Redacted(),
			customCAKey, ownNamespace, custom.CA.Name)
	}
	return store.OfServer(u, via), nil
}

// add adds one entry of the ConfigMap, unless it is neither a keyring nor a store.
func (t *Trust) add(key, value string, via store.Egress) error {
	switch {
	case strings.HasPrefix(key, keyPrefix):
		keyring, err := ReadKeyring(key, strings.NewReader(value))
		if err != nil {
			return err
		}
		t.Keyrings = append(t.Keyrings, keyring)
	case strings.HasPrefix(key, storePrefix):
		// A store may be a directory, which the cluster cannot mean.
		if !strings.Contains(value, "://") {
			return refusal.New(refusal.ReasonInvalidStore, "entry %q of ConfigMap %s/%s is not a URL", key, store.Namespace, verification)
		}
		entry, err := store.Via(strings.TrimSpace(value), via)
		if err != nil {
			return refusal.New(refusal.ReasonInvalidStore, "entry %q of ConfigMap %s/%s: %w", key, store.Namespace, verification, err)
		}
		t.Stores = append(t.Stores, entry)
	}
	return nil
}

// Override returns the trust of the cluster, with its keyrings and its stores each
// replaced by those given, if any. When both are given, the cluster is not read.
func Override(ctx context.Context, core corev1client.ConfigMapsGetter,
	config configv1client.ConfigV1Interface, given Trust,
) (Trust, error) {
	if len(given.Keyrings) > 0 && len(given.Stores) > 0 {
		return given, nil
	}
	trust, err := FromCluster(ctx, core, config)
	if err != nil {
		return Trust{}, err
	}
	if len(given.Keyrings) > 0 {
		trust.Keyrings = given.Keyrings
	}
	if len(given.Stores) > 0 {
		trust.Stores = given.Stores
	}
	return trust, nil
}
