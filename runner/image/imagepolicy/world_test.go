package imagepolicy_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	configv1 "github.com/openshift/api/config/v1"
	configfake "github.com/openshift/client-go/config/clientset/versioned/fake"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/test/release"
)

// repository is the name of the image, also of its copies.
const repository = "quay.io/openshift-release-dev/ocp-release"

// newRegistry serves an empty registry, and returns its host:port.
func newRegistry(tb testing.TB) string {
	tb.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	tb.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// push pushes an image and returns its digest.
func push(tb testing.TB, place string) string {
	tb.Helper()
	image, err := random.Image(64, 1)
	if err != nil {
		tb.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		tb.Fatal(err)
	}
	if err := remote.Write(in(tb, place).Digest(digest.String()), image); err != nil {
		tb.Fatal(err)
	}
	return digest.String()
}

// pushList pushes an image for each platform ("linux/amd64"), and returns the
// digests of the list and of the images.
func pushList(tb testing.TB, place string, platforms ...string) (string, []string) {
	tb.Helper()
	var digests []string
	var list v1.ImageIndex = empty.Index
	for _, platform := range platforms {
		image, err := random.Image(64, 1)
		if err != nil {
			tb.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			tb.Fatal(err)
		}
		digests = append(digests, digest.String())
		system, architecture, _ := strings.Cut(platform, "/")
		list = mutate.AppendManifests(list, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: architecture}},
		})
	}
	digest, err := list.Digest()
	if err != nil {
		tb.Fatal(err)
	}
	if err := remote.WriteIndex(in(tb, place).Digest(digest.String()), list); err != nil {
		tb.Fatal(err)
	}
	return digest.String(), digests
}

func in(tb testing.TB, place string) name.Repository {
	tb.Helper()
	repository, err := name.NewRepository(place)
	if err != nil {
		tb.Fatal(err)
	}
	return repository
}

// puller pulls from its places in order.
type puller struct {
	mirrors   []name.Repository
	transport http.RoundTripper
}

func from(tb testing.TB, mirrors ...string) puller {
	tb.Helper()
	p := puller{transport: http.DefaultTransport}
	for _, mirror := range mirrors {
		p.mirrors = append(p.mirrors, in(tb, mirror))
	}
	return p
}

// Pull implements imagepolicy.Puller.
func (p puller) Pull(ctx context.Context, _ string, ask func(context.Context, imagepolicy.Place) error) error {
	err := errors.New("no place")
	for _, mirror := range p.mirrors {
		place := imagepolicy.Place{Repository: mirror, Mirror: true, Auth: authn.Anonymous, Transport: p.transport}
		if err = ask(ctx, place); err == nil {
			return nil
		}
	}
	return err
}

// key is a signing key.
type key struct {
	signature.SignerVerifier
	tb testing.TB
}

func newKey(tb testing.TB) key {
	tb.Helper()
	signer, _, err := signature.NewDefaultECDSASignerVerifier()
	return of(tb, signer, err)
}

func of(tb testing.TB, signer signature.SignerVerifier, err error) key {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	return key{SignerVerifier: signer, tb: tb}
}

func (k key) pem() []byte {
	k.tb.Helper()
	public, err := k.PublicKey()
	if err != nil {
		k.tb.Fatal(err)
	}
	data, err := cryptoutils.MarshalPublicKeyToPEM(public)
	if err != nil {
		k.tb.Fatal(err)
	}
	return data
}

func (k key) sign(digest, reference string) release.Attachment {
	k.tb.Helper()
	attachment, err := release.SignImage(k, digest, reference)
	if err != nil {
		k.tb.Fatal(err)
	}
	return attachment
}

func (k key) signPayload(payload string) release.Attachment {
	k.tb.Helper()
	attachment, err := release.SignPayload(k, []byte(payload))
	if err != nil {
		k.tb.Fatal(err)
	}
	return attachment
}

func attach(tb testing.TB, place, digest string, attachments ...release.Attachment) {
	tb.Helper()
	if err := release.Attach(tb.Context(), place, digest, attachments...); err != nil {
		tb.Fatal(err)
	}
}

// policy is one that trusts a key for scopes.
func policy(name string, key []byte, scopes ...configv1.ImageScope) *configv1.ClusterImagePolicy {
	return &configv1.ClusterImagePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: configv1.ClusterImagePolicySpec{
			Scopes: scopes,
			Policy: configv1.ImageSigstoreVerificationPolicy{RootOfTrust: configv1.PolicyRootOfTrust{
				PolicyType: configv1.PublicKeyRootOfTrust, PublicKey: &configv1.ImagePolicyPublicKeyRootOfTrust{KeyData: key},
			}},
		},
	}
}

// read reads the policies of a cluster. The tests of package runner read them from a
// real API server.
func read(tb testing.TB, policies ...*configv1.ClusterImagePolicy) imagepolicy.Policies {
	tb.Helper()
	var objects []runtime.Object
	for _, policy := range policies {
		objects = append(objects, policy)
	}
	known, err := imagepolicy.FromCluster(tb.Context(), configfake.NewClientset(objects...).ConfigV1())
	if err != nil {
		tb.Fatal(err)
	}
	return known
}

// want is an expected finding.
type want struct {
	outcome preflight.Outcome
	reason  string
	text    string
}

func (w want) check(t *testing.T, why string, got finding.Finding) {
	t.Helper()
	if got.Outcome != w.outcome || got.Reason != w.reason || !strings.Contains(got.Message, w.text) {
		t.Errorf("%s: %s (%s) %q, want %s (%s) %q", why, got.Outcome, got.Reason, got.Message, w.outcome, w.reason, w.text)
	}
	bad := got.Outcome == preflight.Fail || got.Outcome == preflight.Unknown
	if got.Source != finding.SourceSignature || got.Message == "" || strings.Contains(got.Message, "\n") || bad != got.Blocks || bad &&
		got.Remediation == "" {
		t.Errorf("%s: incomplete finding: %+v", why, got)
	}
	if len(got.Message) > 2000 {
		t.Errorf("%s: message of %d bytes", why, len(got.Message))
	}
}
