package release_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/test/release"
)

const reference = "quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64"

var (
	digestHex = strings.Repeat("0a", 32)
	pullSpec  = "127.0.0.1:5000/openshift/release@sha256:" + digestHex
)

func newSigner(t *testing.T) *release.Signer {
	t.Helper()
	signer, err := release.NewSigner("tester")
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestSign(t *testing.T) {
	signer := newSigner(t)
	signature, err := signer.Sign(pullSpec, reference)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signer.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(key))
	if err != nil {
		t.Fatal(err)
	}
	message, err := openpgp.ReadMessage(bytes.NewReader(signature), keyring, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(message.UnverifiedBody)
	if err != nil {
		t.Fatal(err)
	}
	if message.SignatureError != nil || message.SignedBy == nil || !message.LiteralData.IsBinary {
		t.Fatalf("not a binary message signed by the key: %v", message.SignatureError)
	}
	var claim map[string]map[string]any
	if err := json.Unmarshal(body, &claim); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"type":     "atomic container signature",
		"image":    map[string]any{"docker-manifest-digest": "sha256:" + digestHex},
		"identity": map[string]any{"docker-reference": reference},
	}, claim["critical"]); diff != "" {
		t.Errorf("critical part of the message (-want +got):\n%s", diff)
	}
}

func TestSignRequiresDigest(t *testing.T) {
	if _, err := newSigner(t).Sign("127.0.0.1:5000/openshift/release:4.20.1", reference); err == nil {
		t.Error("a tag was signed")
	}
}

func TestStore(t *testing.T) {
	store := release.Store{}
	store.Add(pullSpec, []byte("one"))
	store.Add(pullSpec, []byte("two"))
	directory := t.TempDir()
	if err := store.WriteDirectory(directory); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(store)
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		reason, path, want string
		status             int
	}{
		"First":  {reason: "signatures are counted from 1", path: "sha256=" + digestHex + "/signature-1", want: "one", status: http.StatusOK},
		"Second": {reason: "signatures have the order of Add", path: "sha256=" + digestHex + "/signature-2", want: "two", status: http.StatusOK},
		"End":    {reason: "the end of the list is not found", path: "sha256=" + digestHex + "/signature-3", status: http.StatusNotFound},
		"Zero":   {reason: "there is no signature 0", path: "sha256=" + digestHex + "/signature-0", status: http.StatusNotFound},
		"Other":  {reason: "another digest has no signature", path: "sha256=00/signature-1", status: http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := http.Get(server.URL + "/mirror/" + tc.path) //nolint:noctx // a loopback server of this test
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != tc.status {
				t.Errorf("%s: status %d, want %d", tc.reason, response.StatusCode, tc.status)
			}
			file, err := os.ReadFile(filepath.Join(directory, tc.path))
			if tc.status != http.StatusOK {
				if err == nil {
					t.Errorf("%s: the file exists in the directory", tc.reason)
				}
				return
			}
			if err != nil || string(body) != tc.want || string(file) != tc.want {
				t.Errorf("%s: served %q, on disk %q (%v), want %q", tc.reason, body, file, err, tc.want)
			}
		})
	}
}

func TestConfigMaps(t *testing.T) {
	store := release.Store{}
	store.Add(pullSpec, []byte("one"))
	signatures := store.ConfigMap("signatures")
	if diff := cmp.Diff(map[string][]byte{"sha256-" + digestHex + "-1": []byte("one")}, signatures.BinaryData); diff != "" {
		t.Errorf("signatures (-want +got):\n%s", diff)
	}
	if _, ok := signatures.Labels["release.openshift.io/verification-signatures"]; !ok || signatures.Namespace != "openshift-config-managed" {
		t.Errorf("a cluster does not find signatures in %s with labels %v", signatures.Namespace, signatures.Labels)
	}
	trust := release.VerificationConfigMap(map[string][]byte{"test": []byte("key")}, map[string]string{"mirror": "https://example.com"})
	want := map[string]string{"verifier-public-key-test": "key", "store-mirror": "https://example.com"}
	if diff := cmp.Diff(want, trust.Data); diff != "" {
		t.Errorf("keys and stores (-want +got):\n%s", diff)
	}
}
