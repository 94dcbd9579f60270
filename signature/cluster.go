package signature

import (
	"bytes"
	"context"
	"crypto/x509"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// namespace and the names in it are those of cluster-update-keys and
	// library-go pkg/verify.
	namespace       = "openshift-config-managed"
	verification    = "release-verification"
	signaturesLabel = "release.openshift.io/verification-signatures"
	keyPrefix       = "verifier-public-key-"
	storePrefix     = "store-"

	// What ClusterVersion adds to it (openshift/api config/v1).
	ownNamespace = "openshift-config"
	customField  = "spec.signatureStores of ClusterVersion version"
	customCAKey  = "ca.crt"
)

// maxCustomStores is how many signature stores ClusterVersion may name
// (openshift/api config/v1).
const maxCustomStores = 32

// config is what is read of a cluster's own configuration.
type config interface {
	configv1client.ClusterVersionsGetter
	configv1client.ProxiesGetter
}

// clusterReader reads whom a cluster trusts.
type clusterReader struct {
	managed, own corev1client.ConfigMapInterface // of openshift-config-managed and openshift-config
	config       config
}

// FromCluster reads whom a cluster trusts: the keys of ConfigMap
// openshift-config-managed/release-verification, and the stores in the order
// that the package comment says. It takes "get" on the ClusterVersion and the
// Proxy, "get" and "list" on ConfigMaps in openshift-config-managed and, where
// spec.signatureStores names some, "get" on those in openshift-config. One key
// or store of the release that cannot be used is an *Error which names it: with
// part of the trust missing, nothing can be said. A store of
// spec.signatureStores that cannot be used is not honored, as the API says, and
// what it has is not known.
func FromCluster(ctx context.Context, configMaps corev1client.ConfigMapsGetter, config config) (Trust, error) {
	c := clusterReader{managed: configMaps.ConfigMaps(namespace), own: configMaps.ConfigMaps(ownNamespace), config: config}
	data, err := c.verification(ctx)
	if err != nil {
		return Trust{}, err
	}
	local, err := c.managed.List(ctx, metav1.ListOptions{LabelSelector: signaturesLabel})
	if err != nil {
		return Trust{}, newError(reasonTrustUnavailable, "list ConfigMaps in %s labelled %s: %v", namespace, signaturesLabel, err)
	}
	way, err := c.egress(ctx)
	if err != nil {
		return Trust{}, err
	}
	trust := Trust{}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if err := trust.add(key, data[key], way); err != nil {
			return Trust{}, err
		}
	}
	if len(trust.Keyrings) == 0 {
		return Trust{}, newError(reasonNoKeys, "ConfigMap %s/%s has no %s*", namespace, verification, keyPrefix)
	}
	custom, set, err := c.customStores(ctx, way)
	if err != nil {
		return Trust{}, err
	}
	if set {
		trust.Stores = custom
	}
	trust.Stores = slices.Insert(trust.Stores, 0, Store(newConfigMapStore(local.Items)))
	return trust, nil
}

// verification is the ConfigMap that CVO writes with the keys and stores of the
// release that it runs.
func (c clusterReader) verification(ctx context.Context) (map[string]string, error) {
	config, err := c.managed.Get(ctx, verification, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, newError(reasonNoKeys, "ConfigMap %s/%s, which holds the keys that sign releases, does not exist", namespace, verification)
	}
	if err != nil {
		return nil, newError(reasonTrustUnavailable, "get ConfigMap %s/%s: %v", namespace, verification, err)
	}
	return config.Data, nil
}

// customStores are those of ClusterVersion spec.signatureStores. When the field
// is set they replace those of the release, also when the list is empty
// (cluster-version-operator pkg/customsignaturestore).
func (c clusterReader) customStores(ctx context.Context, way egress) (stores []Store, set bool, err error) {
	version, err := c.config.ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, newError(reasonTrustUnavailable, "get ClusterVersion version: %v", err)
	case version.Spec.SignatureStores == nil:
		return nil, false, nil
	case len(version.Spec.SignatureStores) == 0:
		return []Store{unusableStore{name: customField, cause: newError(reasonNoStores, "the list is empty, and replaces the stores of the release")}}, true, nil
	case len(version.Spec.SignatureStores) > maxCustomStores:
		return nil, false, newError(reasonInvalidStore, "%s has more than %d stores", customField, maxCustomStores)
	}
	for _, custom := range version.Spec.SignatureStores {
		store, refused := c.customStore(ctx, custom, way)
		if refused != nil {
			store = unusableStore{name: customField, cause: refused}
		}
		stores = append(stores, store)
	}
	return stores, true, nil
}

// customStore is one of them, with the certificate authorities of its own.
func (c clusterReader) customStore(ctx context.Context, custom configv1.SignatureStore, way egress) (Store, *Error) {
	u, err := url.Parse(custom.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// What is no URL may hold a password all the same.
		return nil, newError(reasonInvalidStore, "a store is not a URL with http:// or https://")
	}
	if custom.CA.Name == "" {
		return newHTTPStore(u, way), nil
	}
	ca, err := c.own.Get(ctx, custom.CA.Name, metav1.GetOptions{})
	if err != nil {
		return nil, newError(reasonInvalidStore, "the ca of store %q cannot be read: get ConfigMap %s/%s: %v", u.Redacted(), ownNamespace, custom.CA.Name, err)
	}
	way.roots = x509.NewCertPool()
	if !way.roots.AppendCertsFromPEM([]byte(ca.Data[customCAKey])) {
		return nil, newError(reasonInvalidStore, "the ca of store %q has no certificate: %s of ConfigMap %s/%s", u.Redacted(), customCAKey, ownNamespace, custom.CA.Name)
	}
	return newHTTPStore(u, way), nil
}

// add takes one entry of the ConfigMap; an entry that is neither key nor store
// is none of our business.
func (t *Trust) add(key, value string, way egress) error {
	switch {
	case strings.HasPrefix(key, keyPrefix):
		keyring, err := ReadKeyring(key, strings.NewReader(value))
		if err != nil {
			return err
		}
		t.Keyrings = append(t.Keyrings, keyring)
	case strings.HasPrefix(key, storePrefix):
		// A path without scheme is a directory for a user, and a mistake here.
		if !strings.Contains(value, "://") {
			return newError(reasonInvalidStore, "entry %q of ConfigMap %s/%s is not a URL", key, namespace, verification)
		}
		store, err := newStore(strings.TrimSpace(value), way)
		if err != nil {
			return newError(reasonInvalidStore, "entry %q of ConfigMap %s/%s: %v", key, namespace, verification, err)
		}
		t.Stores = append(t.Stores, store)
	}
	return nil
}

// configMapStore holds the signatures that were put into the cluster, by key
// ("sha256-<hex>-<n>").
type configMapStore struct {
	entries []entry
}

type entry struct {
	key       string
	signature []byte
}

func newConfigMapStore(configMaps []corev1.ConfigMap) *configMapStore {
	s := &configMapStore{}
	slices.SortFunc(configMaps, func(a, b corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	for i := range configMaps {
		for _, key := range slices.Sorted(maps.Keys(configMaps[i].BinaryData)) {
			s.entries = append(s.entries, entry{key: key, signature: configMaps[i].BinaryData[key]})
		}
	}
	return s
}

func (s *configMapStore) String() string {
	return "ConfigMaps in " + namespace
}

// Signature counts every signature once: CVO keeps copies of those it has used
// in a ConfigMap with the same label.
func (s *configMapStore) Signature(_ context.Context, digest string, n int) ([]byte, error) {
	prefix := strings.Replace(digest, ":", "-", 1)
	var found [][]byte
	for _, e := range s.entries {
		seen := slices.ContainsFunc(found, func(other []byte) bool { return bytes.Equal(other, e.signature) })
		if strings.HasPrefix(e.key, prefix) && !seen {
			found = append(found, e.signature)
		}
	}
	if n > len(found) {
		return nil, fs.ErrNotExist
	}
	return found[n-1], nil
}
