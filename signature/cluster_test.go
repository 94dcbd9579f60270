package signature_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	configfake "github.com/openshift/client-go/config/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/test/release"
)

func TestFromCluster(t *testing.T) {
	a, b := newSigner(t, "a", nil), newSigner(t, "b", nil)
	keyA, err := a.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	keyB, err := b.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	byA, elsewhere := release.Store{}, release.Store{}
	byA.Add(pullSpec, sign(t, a, pullSpec))
	elsewhere.Add(repository+"@"+other, sign(t, a, repository+"@"+other))
	server := httptest.NewServer(byA)
	t.Cleanup(server.Close)
	empty := httptest.NewServer(release.Store{})
	t.Cleanup(empty.Close)
	onlyA := map[string][]byte{"a": keyA}
	unlabelled := byA.ConfigMap("unlabelled")
	unlabelled.Labels = nil
	type objects = []runtime.Object
	type urls = map[string]string
	verification := release.VerificationConfigMap
	for name, tc := range map[string]struct {
		reason  string
		objects objects
		want    string
		message string
	}{
		"Store": {
			reason:  "a store of the ConfigMap has the signature",
			objects: objects{verification(onlyA, urls{"a": empty.URL, "b": server.URL})},
		},
		"ConfigMap": {
			reason:  "a mirrored signature; two copies count once",
			objects: objects{verification(onlyA, urls{"a": empty.URL}), elsewhere.ConfigMap("a"), byA.ConfigMap("b"), byA.ConfigMap("c")},
		},
		"NoStore": {reason: "mirrored signatures suffice without a store", objects: objects{verification(onlyA, nil), byA.ConfigMap("b")}},
		"Space":   {reason: "white space around a URL", objects: objects{verification(onlyA, urls{"a": server.URL + "\n"})}},
		"Unlabelled": {
			reason: "a ConfigMap without the label is ignored", objects: objects{verification(onlyA, nil), unlabelled},
			want: "NoSignature", message: "ConfigMaps in openshift-config-managed",
		},
		"TwoKeyrings": {reason: "every verifier-public-key must be satisfied", objects: objects{verification(map[string][]byte{
			"a": keyA,
			"b": keyB,
		}, nil), byA.ConfigMap("a")}, want: "UnknownKey", message: `"verifier-public-key-b"`},
		"Missing": {
			reason: "the cluster has no release-verification ConfigMap", want: "NoKeys",
			message: "openshift-config-managed/release-verification",
		},
		"NoKeys": {
			reason: "no verifier-public-key", objects: objects{verification(nil, urls{"a": server.URL})}, want: "NoKeys",
			message: "verifier-public-key-*",
		},
		"InvalidKey": {reason: "one bad key is an error that names it", objects: objects{verification(map[string][]byte{
			"a": keyA,
			"z": []byte("key"),
		}, nil)}, want: "InvalidKeyring", message: `"verifier-public-key-z"`},
		"InvalidURL": {
			reason: "one bad store is an error that names it", objects: objects{verification(onlyA, urls{"z": "ftp://example.com"})},
			want: "InvalidStore", message: `"store-z"`,
		},
		"NoURL": {
			reason: "a path is not a URL", objects: objects{verification(onlyA, urls{"z": "/path"})}, want: "InvalidStore",
			message: `"store-z"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			trust, err := signature.FromCluster(t.Context(), fake.NewClientset(tc.objects...).CoreV1(), configfake.NewClientset().ConfigV1())
			var r signature.Release
			if err == nil {
				r, err = signature.Verify(t.Context(), pullSpec, trust)
			}
			check(t, tc.reason, tc.want, r, err)
			if err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, err, tc.message)
			}
		})
	}
}

func TestFromClusterWithoutPermission(t *testing.T) {
	key, err := newSigner(t, "a", nil).PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ reason, verb string }{
		"Get":  {reason: "no permission to read the keyrings", verb: "get"},
		"List": {reason: "no permission to list the mirrored signatures", verb: "list"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(release.VerificationConfigMap(map[string][]byte{"a": key}, nil))
			client.PrependReactor(tc.verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
			})
			_, err := signature.FromCluster(t.Context(), client.CoreV1(), configfake.NewClientset().ConfigV1())
			check(t, tc.reason, "TrustUnavailable", signature.Release{}, err)
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s: error %v does not wrap the Forbidden error", tc.reason, err)
			}
		})
	}
}

func TestFromClusterIgnoresOtherEntries(t *testing.T) {
	key, err := newSigner(t, "a", nil).PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	configMap := release.VerificationConfigMap(map[string][]byte{"a": key}, nil)
	configMap.Data["note"] = "unrelated"
	trust, err := signature.FromCluster(t.Context(), fake.NewClientset([]runtime.Object{configMap, &corev1.ConfigMap{}}...).CoreV1(),
		configfake.NewClientset().ConfigV1())
	if err != nil {
		t.Fatal(err)
	}
	if len(trust.Keyrings) != 1 || len(trust.Stores) != 1 {
		t.Errorf("%d keyrings and %d stores, want one of each", len(trust.Keyrings), len(trust.Stores))
	}
}
