package signingkey_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/handler"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/update-preflight/cmd/internal/signingkey"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
)

// plugin is the name of the program by which this test is the plugin of a KMS.
const plugin = "sigstore-kms-testing"

// TestMain is the plugin, if it is called by its name: its key is the file that the reference names.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != plugin {
		os.Exit(m.Run())
	}
	if err := serve(); err != nil {
		os.Stderr.WriteString(err.Error()) //nolint:errcheck // the program ends
		os.Exit(1)
	}
}

func serve() error {
	arguments, err := handler.GetPluginArgs(os.Args)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(arguments.InitOptions.KeyResourceID)
	if err != nil {
		return err
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(text, cryptoutils.SkipPassword)
	if err != nil {
		return err
	}
	made, err := signature.LoadSignerVerifier(key, crypto.SHA256)
	if err != nil {
		return err
	}
	_, err = handler.Dispatch(os.Stdout, os.Stdin, arguments, keeper{made})
	return err
}

// keeper is a key that the plugin keeps.
type keeper struct{ signature.SignerVerifier }

var errNotMade = errors.New("the test has no such method")

func (keeper) CreateKey(context.Context, string) (crypto.PublicKey, error) { return nil, errNotMade }
func (keeper) SupportedAlgorithms() []string                               { return nil }
func (keeper) DefaultAlgorithm() string                                    { return "" }

func (keeper) CryptoSigner(context.Context, func(error)) (crypto.Signer, crypto.SignerOpts, error) {
	return nil, nil, errNotMade
}

// The private key stays with the program of the KMS, and the public one verifies.
func TestPlugin(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	if err := os.Symlink(program, filepath.Join(directory, plugin)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", directory)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, key crypto.Signer) string {
		text, err := cryptoutils.MarshalPrivateKeyToPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(directory, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, tc := range map[string]struct{ reason, reference, want string }{
		"Signs":     {"the plugin signs", "testing://" + write("key", private), ""},
		"Algorithm": {"who verifies knows two algorithms", "testing://" + write("long", long), "neither an ECDSA P-256 nor an Ed25519 key"},
		"NoKey":     {"the KMS has no such key", "testing://" + filepath.Join(directory, "none"), "plugin"},
		"NoPlugin":  {"the program is not installed", "awskms://alias/x", "sigstore-kms-awskms"},
		"Path":      {"a name of a plugin is no path", "../x://key", "no name of a plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := signingkey.Plugin(t.Context(), tc.reference)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			envelope, err := attestation.Sign([]byte("{}"), key)
			if err != nil {
				t.Fatal(err)
			}
			verifier, err := signature.LoadECDSAVerifier(&private.PublicKey, crypto.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			if made := attestation.Verify(envelope, verifier, attestation.Expectation{}, metav1.Now().Time); made.Reason != "InvalidStatement" {
				t.Errorf("the key of the plugin did not sign the empty statement: %s: %s", made.Reason, made.Message)
			}
		})
	}
}

// A Secret is as "cosign generate-key-pair k8s://NAMESPACE/NAME" makes it.
func TestSecret(t *testing.T) {
	password := []byte("a password")
	private, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc(password))
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := cryptoutils.MarshalPrivateKeyToPEM(long)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		data   map[string][]byte
		want   string
	}{
		"Complete":   {reason: "it has the key and its password", data: map[string][]byte{"cosign.key": private, "cosign.password": password}},
		"NoPassword": {reason: "the key is encrypted", data: map[string][]byte{"cosign.key": private}, want: "no password"},
		"NoKey":      {reason: "it is another Secret", data: map[string][]byte{"token": nil}, want: "has no cosign.key"},
		"RSA": {
			reason: "cosign makes no RSA keys", data: map[string][]byte{"cosign.key": other},
			want: "neither an ECDSA P-256 nor an Ed25519 key",
		},
		"NoSecret": {reason: "it does not exist", want: "cosign generate-key-pair k8s://preflight/key"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if tc.data != nil {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "preflight", Name: "key"}, Data: tc.data}
				if _, err := client.CoreV1().Secrets("preflight").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			key, err := signingkey.Secret(t.Context(), client.CoreV1(), "preflight", "key")
			if tc.want == "" && (err != nil || key == nil) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
