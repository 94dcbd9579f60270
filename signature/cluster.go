package signature

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"

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
)

// FromCluster reads whom a cluster trusts: the keys and stores of ConfigMap
// openshift-config-managed/release-verification, sorted by name, and before
// those stores the signatures in ConfigMaps labelled
// release.openshift.io/verification-signatures. It takes "get" and "list" on
// ConfigMaps there. One key or store that cannot be used is an *Error which
// names it: with part of the trust missing, nothing can be said.
func FromCluster(ctx context.Context, configMaps corev1client.ConfigMapsGetter) (Trust, error) {
	client := configMaps.ConfigMaps(namespace)
	config, err := client.Get(ctx, verification, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Trust{}, newError(reasonNoKeys, "ConfigMap %s/%s, which holds the keys that sign releases, does not exist", namespace, verification)
	}
	if err != nil {
		return Trust{}, newError(reasonTrustUnavailable, "get ConfigMap %s/%s: %v", namespace, verification, err)
	}
	signatures, err := client.List(ctx, metav1.ListOptions{LabelSelector: signaturesLabel})
	if err != nil {
		return Trust{}, newError(reasonTrustUnavailable, "list ConfigMaps in %s labelled %s: %v", namespace, signaturesLabel, err)
	}
	trust := Trust{Stores: []Store{newConfigMapStore(signatures.Items)}}
	for _, key := range slices.Sorted(maps.Keys(config.Data)) {
		if err := trust.add(key, config.Data[key]); err != nil {
			return Trust{}, err
		}
	}
	if len(trust.Keyrings) == 0 {
		return Trust{}, newError(reasonNoKeys, "ConfigMap %s/%s has no %s*", namespace, verification, keyPrefix)
	}
	return trust, nil
}

// add takes one entry of the ConfigMap; an entry that is neither key nor store
// is none of our business.
func (t *Trust) add(key, value string) error {
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
		store, err := NewStore(strings.TrimSpace(value))
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
