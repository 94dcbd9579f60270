package store

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Namespace has the ConfigMaps of cluster-update-keys and library-go pkg/verify: the
// signatures, and the keyrings and stores of the release.
const Namespace = "openshift-config-managed"

// ConfigMaps holds the signatures in ConfigMaps of the cluster, by key ("sha256-<hex>-<n>").
type ConfigMaps struct {
	entries []entry
}

type entry struct {
	key       string
	signature []byte
}

// OfConfigMaps returns the store in these ConfigMaps.
func OfConfigMaps(configMaps []corev1.ConfigMap) *ConfigMaps {
	s := &ConfigMaps{}
	slices.SortFunc(configMaps, func(a, b corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	for i := range configMaps {
		for _, key := range slices.Sorted(maps.Keys(configMaps[i].BinaryData)) {
			s.entries = append(s.entries, entry{key: key, signature: configMaps[i].BinaryData[key]})
		}
	}
	return s
}

// String names the namespace.
func (s *ConfigMaps) String() string {
	return "ConfigMaps in " + Namespace
}

// Signature counts duplicates once: CVO keeps copies of the signatures that it
// used in a ConfigMap with the same label.
func (s *ConfigMaps) Signature(_ context.Context, digest string, n int) ([]byte, error) {
	prefix := strings.Replace(digest, ":", "-", 1)
	var found [][]byte
	for _, e := range s.entries {
		duplicate := slices.ContainsFunc(found, func(other []byte) bool { return bytes.Equal(other, e.signature) })
		if strings.HasPrefix(e.key, prefix) && !duplicate {
			found = append(found, e.signature)
		}
	}
	if n > len(found) {
		return nil, fs.ErrNotExist
	}
	return found[n-1], nil
}
