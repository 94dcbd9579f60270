package release

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const managedNamespace = "openshift-config-managed"

// Store has signatures by the signed digest ("sha256:…"), in the order in which they were
// added. It is an http.Handler that serves /sha256=<hex>/signature-<N> with N from 1. Add
// all signatures before serving.
type Store map[string][][]byte

// Add adds a signature of the digest of pullSpec (repository@sha256:…).
func (s Store) Add(pullSpec string, signature []byte) {
	_, digest, _ := strings.Cut(pullSpec, "@")
	s[digest] = append(s[digest], signature)
}

// ServeHTTP serves the store under any prefix.
func (s Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) < 2 {
		http.NotFound(w, r)
		return
	}
	digest := strings.Replace(parts[len(parts)-2], "=", ":", 1)
	number, ok := strings.CutPrefix(parts[len(parts)-1], "signature-")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 || n > len(s[digest]) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(s[digest][n-1])
}

// WriteDirectory writes the store as files under directory.
func (s Store) WriteDirectory(directory string) error {
	for digest, signatures := range s {
		sub := filepath.Join(directory, strings.Replace(digest, ":", "=", 1))
		if err := os.MkdirAll(sub, 0o750); err != nil {
			return fmt.Errorf("write the signature store: %w", err)
		}
		for i, signature := range signatures {
			if err := os.WriteFile(filepath.Join(sub, "signature-"+strconv.Itoa(i+1)), signature, 0o600); err != nil {
				return fmt.Errorf("write the signature store: %w", err)
			}
		}
	}
	return nil
}

// ConfigMap returns the store as the signatures of a disconnected cluster: an object with
// the given name in openshift-config-managed.
func (s Store) ConfigMap(name string) *corev1.ConfigMap {
	configMap := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: managedNamespace, Name: name,
			Labels: map[string]string{"release.openshift.io/verification-signatures": ""},
		},
		BinaryData: map[string][]byte{},
	}
	for digest, signatures := range s {
		for i, signature := range signatures {
			key := strings.Replace(digest, ":", "-", 1) + "-" + strconv.Itoa(i+1)
			configMap.BinaryData[key] = signature
		}
	}
	return configMap
}

// VerificationConfigMap returns the ConfigMap with the keys that sign releases and the
// locations of their signatures, as CVO applies it. Keys are armored keyrings by the name
// after verifier-public-key-, stores are URLs by the name after store-.
func VerificationConfigMap(keys map[string][]byte, stores map[string]string) *corev1.ConfigMap {
	configMap := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: managedNamespace, Name: "release-verification",
			Annotations: map[string]string{"release.openshift.io/verification-config-map": ""},
		},
		Data: map[string]string{},
	}
	for name, key := range keys {
		configMap.Data["verifier-public-key-"+name] = string(key)
	}
	for name, url := range stores {
		configMap.Data["store-"+name] = url
	}
	return configMap
}
