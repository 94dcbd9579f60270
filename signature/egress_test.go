package signature_test

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	configfake "github.com/openshift/client-go/config/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/test/release"
)

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func clusterVersion(stores ...configv1.SignatureStore) *configv1.ClusterVersion {
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	version.Spec.SignatureStores = append([]configv1.SignatureStore{}, stores...)
	return version
}

func customStore(url, ca string) configv1.SignatureStore {
	return configv1.SignatureStore{URL: url, CA: configv1.ConfigMapNameReference{Name: ca}}
}

func TestFromClusterStores(t *testing.T) {
	a := newSigner(t, "a", nil)
	signed := release.Store{}
	signed.Add(pullSpec, sign(t, a, pullSpec))
	good, empty, secure := httptest.NewServer(signed), httptest.NewServer(release.Store{}), httptest.NewTLSServer(signed)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "store.example.com" {
			signed.ServeHTTP(w, r)
		}
	}))
	for _, server := range []*httptest.Server{good, empty, secure, proxy} {
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are expected
		t.Cleanup(server.Close)
	}
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	bundle := configMap("openshift-config-managed", "trusted-ca-bundle", map[string]string{"ca-bundle.crt": authority})
	ca := configMap("openshift-config", "ca", map[string]string{"ca.crt": authority})
	badCA := configMap("openshift-config", "bad", map[string]string{"ca.crt": "not a certificate"})
	viaProxy := &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.ProxyStatus{HTTPProxy: proxy.URL}}
	noProxy := viaProxy.DeepCopy()
	noProxy.Status.NoProxy = ".example.com"
	const outside = "http://store.example.com"
	type objects = []runtime.Object
	for name, tc := range map[string]struct {
		reason  string
		store   string // of the release
		core    objects
		config  objects
		want    string
		message string
	}{
		"Release": {
			reason: "ClusterVersion names no store, the release does", store: good.URL,
			config: objects{&configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}},
		},
		"Custom": {
			reason: "a store of ClusterVersion has the signature", store: empty.URL,
			config: objects{clusterVersion(customStore(empty.URL, ""), customStore(good.URL, ""))},
		},
		"CustomReplaces": {
			reason: "the store of the release is not searched", store: good.URL,
			config: objects{clusterVersion(customStore(empty.URL, ""))}, want: "NoSignature", message: empty.URL,
		},
		"CustomEmpty": {
			reason: "an empty list also replaces the stores of the release", store: good.URL, config: objects{clusterVersion()},
			want: "NoStores", message: "spec.signatureStores",
		},
		"ConfigMapsFirst": {
			reason: "ConfigMaps come before all stores", store: good.URL, core: objects{signed.ConfigMap("a")},
			config: objects{clusterVersion()},
		},
		"CA": {
			reason: "the store has its own CA", config: objects{clusterVersion(customStore(secure.URL, "ca"))},
			core: objects{ca},
		},
		"CAMissing": {
			reason: "a store whose CA is missing is ignored", config: objects{clusterVersion(customStore(secure.URL, "ca"))},
			want: "InvalidStore", message: "openshift-config/ca",
		},
		"CAInvalid": {
			reason: "a store whose CA is invalid is ignored", config: objects{clusterVersion(customStore(secure.URL, "bad"))},
			core: objects{badCA, bundle}, want: "InvalidStore", message: "ca.crt",
		},
		"CAOfOne": {
			reason: "the other store is searched",
			config: objects{clusterVersion(customStore(secure.URL, "bad"), customStore(good.URL, ""))}, core: objects{badCA},
		},
		"CAAlone": {
			reason: "the store's own CA replaces the bundle", config: objects{clusterVersion(customStore(secure.URL, "other"))},
			core: objects{bundle, configMap("openshift-config", "other", map[string]string{"ca.crt": otherAuthority(t)})}, want: "StoreUnavailable",
			message: "certificate",
		},
		"NoURL": {
			reason: "an invalid URL is not repeated, since it may contain a password",
			config: objects{clusterVersion(customStore("https://me:secret@exa mple.com", ""))}, want: "InvalidStore",
		},
		"File": {
			reason: "ClusterVersion cannot name files of this machine",
			config: objects{clusterVersion(customStore("file:///", ""))}, want: "InvalidStore",
		},
		"TooMany": {
			reason: "more than the API allows", config: objects{clusterVersion(make([]configv1.SignatureStore, 33)...)},
			want: "InvalidStore", message: "32",
		},
		"Unknown": {
			reason: "no trusted CA issued the server's certificate", store: secure.URL, want: "StoreUnavailable",
			message: "certificate",
		},
		"Bundle": {reason: "the cluster's bundle contains the server's CA", store: secure.URL, core: objects{bundle}},
		"BundleCustom": {
			reason: "the bundle also applies to a store of ClusterVersion",
			config: objects{clusterVersion(customStore(secure.URL, ""))}, core: objects{bundle},
		},
		"BundleEmpty": {
			reason: "an empty bundle adds no CA", store: good.URL,
			core: objects{configMap("openshift-config-managed", "trusted-ca-bundle", nil)},
		},
		"BundleInvalid": {reason: "an invalid bundle", store: good.URL, core: objects{configMap("openshift-config-managed", "trusted-ca-bundle",
			map[string]string{"ca-bundle.crt": "a"})}, want: "TrustUnavailable", message: "trusted-ca-bundle"},
		"Proxy": {reason: "the store is reached through the cluster's proxy", store: outside, config: objects{viaProxy}},
		"ProxyCustom": {
			reason: "the proxy also applies to a store of ClusterVersion",
			config: objects{viaProxy, clusterVersion(customStore(outside, ""))},
		},
		"NoProxy": {
			reason: "the proxy is not for this host", store: outside, config: objects{noProxy}, want: "StoreUnavailable",
			message: "store.example.com",
		},
		"ProxyNone": {
			reason: "a proxy object without proxy", store: good.URL,
			config: objects{&configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stores := map[string]string{}
			if tc.store != "" {
				stores["a"] = tc.store
			}
			verification := release.VerificationConfigMap(map[string][]byte{"a": publicKey(t, a)}, stores)
			core := fake.NewClientset(append(objects{verification}, tc.core...)...)
			trust, err := signature.FromCluster(t.Context(), core.CoreV1(), configfake.NewClientset(tc.config...).ConfigV1())
			var r signature.Release
			if err == nil {
				r, err = signature.Verify(t.Context(), pullSpec, trust)
			}
			check(t, tc.reason, tc.want, r, err)
			if err != nil && (!strings.Contains(err.Error(), tc.message) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%s: message %q, want %q and no secret", tc.reason, err, tc.message)
			}
		})
	}
}

// otherAuthority is a CA that issued no certificate of these tests.
func otherAuthority(t *testing.T) string {
	t.Helper()
	return string(golden(t, "authority.pem"))
}

// TestStoresAreSearchedInOrder requires that no store is read after the ConfigMaps suffice.
func TestStoresAreSearchedInOrder(t *testing.T) {
	a := newSigner(t, "a", nil)
	signed := release.Store{}
	signed.Add(pullSpec, sign(t, a, pullSpec))
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(server.Close)
	core := fake.NewClientset(release.VerificationConfigMap(map[string][]byte{"a": publicKey(t, a)}, map[string]string{"a": server.URL}),
		signed.ConfigMap("a"))
	trust, err := signature.FromCluster(t.Context(), core.CoreV1(),
		configfake.NewClientset(clusterVersion(customStore(server.URL, ""))).ConfigV1())
	if err != nil {
		t.Fatal(err)
	}
	r, err := signature.Verify(t.Context(), pullSpec, trust)
	check(t, "the cluster has the signature in a ConfigMap", "", r, err)
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

func TestFromClusterConfigWithoutPermission(t *testing.T) {
	for name, tc := range map[string]struct{ reason, resource string }{
		"Proxy":          {reason: "no permission to read the proxy", resource: "proxies"},
		"ClusterVersion": {reason: "no permission to read the stores", resource: "clusterversions"},
	} {
		t.Run(name, func(t *testing.T) {
			config := configfake.NewClientset()
			config.PrependReactor("get", tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: tc.resource}, "", errors.New("no"))
			})
			core := fake.NewClientset(release.VerificationConfigMap(map[string][]byte{"a": publicKey(t, newSigner(t, "a", nil))}, nil))
			_, err := signature.FromCluster(t.Context(), core.CoreV1(), config.ConfigV1())
			check(t, tc.reason, "TrustUnavailable", signature.Release{}, err)
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s: error %v does not wrap the Forbidden error", tc.reason, err)
			}
		})
	}
}
