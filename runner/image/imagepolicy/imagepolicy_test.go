package imagepolicy_test

import (
	"crypto"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	configv1 "github.com/openshift/api/config/v1"
	configfake "github.com/openshift/client-go/config/clientset/versioned/fake"
	"github.com/sigstore/sigstore/pkg/signature"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/test/release"
)

func TestCovers(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	key := newKey(t).pem()
	for name, tc := range map[string]struct {
		reason string
		scope  configv1.ImageScope
		image  string
		want   bool
	}{
		"Image": {reason: "the image itself", scope: configv1.ImageScope(repository + "@" + digest), image: repository, want: true},
		"OtherImage": {
			reason: "another image of the repository",
			scope:  configv1.ImageScope(repository + "@sha256:" + strings.Repeat("1", 64)), image: repository,
		},
		"Tag":            {reason: "a tag does not match a digest", scope: repository + ":4.20.1", image: repository},
		"Repository":     {reason: "its repository", scope: repository, image: repository, want: true},
		"Namespace":      {reason: "its namespace", scope: "quay.io/openshift-release-dev", image: repository, want: true},
		"Host":           {reason: "its registry", scope: "quay.io", image: repository, want: true},
		"Prefix":         {reason: "a name with this prefix is another repository", scope: "quay.io/openshift-release", image: repository},
		"Below":          {reason: "a repository below", scope: repository + "/a", image: repository},
		"Port":           {reason: "another port", scope: "quay.io:443", image: repository},
		"HostPort":       {reason: "a registry with port", scope: "example.com:5000", image: "example.com:5000/a", want: true},
		"NoPort":         {reason: "a registry with port is not the one without", scope: "example.com", image: "example.com:5000/a"},
		"Wildcard":       {reason: "a domain", scope: "*.example.com", image: "a.example.com/a", want: true},
		"WildcardDeep":   {reason: "a domain far above, and a port", scope: "*.com", image: "a.b.example.com:5000/a", want: true},
		"WildcardItself": {reason: "a wildcard covers only subdomains", scope: "*.example.com", image: "example.com/a"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(t, policy("a", key, tc.scope)).Covers(tc.image + "@" + digest); got != tc.want {
				t.Errorf("%s: scope %q covers %q: %t, want %t", tc.reason, tc.scope, tc.image, got, tc.want)
			}
		})
	}
}

// TestMostSpecificScopeApplies checks an unsatisfied policy for the registry, and satisfied
// ones for more specific scopes.
func TestMostSpecificScopeApplies(t *testing.T) {
	place := newRegistry(t) + "/mirror"
	digest := push(t, place)
	a, b, unused := newKey(t), newKey(t), newKey(t)
	attach(t, place, digest, a.sign(digest, repository+":4.20.1"), b.sign(digest, repository+":4.20.1"))
	const namespace = "quay.io/openshift-release-dev"
	pass := want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"}
	for name, tc := range map[string]struct {
		reason   string
		policies []*configv1.ClusterImagePolicy
		want     want
	}{
		"None": {
			reason: "no policy covers it", policies: []*configv1.ClusterImagePolicy{policy("a", a.pem(), "example.com")},
			want: want{outcome: preflight.Skipped, reason: "NoImagePolicy", text: digest},
		},
		"Specific": {
			reason:   "the more general one does not apply",
			policies: []*configv1.ClusterImagePolicy{policy("a", unused.pem(), "quay.io", "*.io"), policy("b", a.pem(), namespace)}, want: pass,
		},
		"General": {reason: "the more specific one applies", policies: []*configv1.ClusterImagePolicy{
			policy("a", a.pem(), "quay.io"),
			policy("b", unused.pem(), namespace),
		}, want: want{outcome: preflight.Fail, reason: "InvalidSigstoreSignature", text: `"b"`}},
		"Both": {
			reason:   "two with the same scope are both satisfied",
			policies: []*configv1.ClusterImagePolicy{policy("a", a.pem(), namespace), policy("b", b.pem(), namespace, "example.com")}, want: pass,
		},
		"OneOfTwo": {
			reason:   "two with the same scope must both be satisfied",
			policies: []*configv1.ClusterImagePolicy{policy("a", a.pem(), namespace), policy("b", unused.pem(), namespace)},
			want:     want{outcome: preflight.Fail, reason: "InvalidSigstoreSignature", text: `"b"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, tc.reason, read(t, tc.policies...).Check(t.Context(), imagepolicy.Image{PullSpec: repository + "@" + digest},
				from(t, place)))
		})
	}
}

func TestRootsOfTrust(t *testing.T) {
	place := newRegistry(t) + "/mirror"
	digest := push(t, place)
	a := newKey(t)
	attach(t, place, digest, a.sign(digest, repository))
	rekor := policy("a", a.pem(), repository)
	rekor.Spec.Policy.RootOfTrust.PublicKey.RekorKeyData = a.pem()
	certificate := []byte("-----BEGIN CERTIFICATE-----\n" + strings.Repeat("a", 80) + "\n-----END CERTIFICATE-----")
	fulcio := policy("a", nil, repository)
	fulcio.Spec.Policy.RootOfTrust = configv1.PolicyRootOfTrust{
		PolicyType: configv1.FulcioCAWithRekorRootOfTrust,
		FulcioCAWithRekor: &configv1.ImagePolicyFulcioCAWithRekorRootOfTrust{
			FulcioCAData: certificate, RekorKeyData: a.pem(),
			FulcioSubject: configv1.PolicyFulcioSubject{OIDCIssuer: "https://example.com/", SignedEmail: "a@example.com"},
		},
	}
	pki := policy("a", nil, repository)
	pki.Spec.Policy.RootOfTrust = configv1.PolicyRootOfTrust{PolicyType: configv1.PKIRootOfTrust, PKI: &configv1.ImagePolicyPKIRootOfTrust{
		CertificateAuthorityRootsData: certificate, PKICertificateSubject: configv1.PKICertificateSubject{Email: "a@example.com"},
	}}
	broken := policy("a", []byte("-----BEGIN PUBLIC KEY-----\n"+strings.Repeat("a", 80)+"\n-----END PUBLIC KEY-----"), repository)
	for name, tc := range map[string]struct {
		reason string
		policy *configv1.ClusterImagePolicy
		want   want
	}{
		"PublicKey": {
			reason: "the supported root of trust", policy: policy("a", a.pem(), repository),
			want: want{outcome: preflight.Pass, reason: "ImagePolicySatisfied", text: `"a"`},
		},
		"Rekor": {
			reason: "a transparency log as well", policy: rekor,
			want: want{outcome: preflight.Unknown, reason: "UnsupportedRootOfTrust", text: "PublicKey with rekorKeyData"},
		},
		"Fulcio": {
			reason: "short-lived certificates", policy: fulcio,
			want: want{outcome: preflight.Unknown, reason: "UnsupportedRootOfTrust", text: "FulcioCAWithRekor"},
		},
		"PKI": {
			reason: "certificates of a private CA", policy: pki,
			want: want{outcome: preflight.Unknown, reason: "UnsupportedRootOfTrust", text: "PKI"},
		},
		"Broken": {
			reason: "an invalid key", policy: broken,
			want: want{outcome: preflight.Unknown, reason: "InvalidImagePolicy", text: `"a"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			image := imagepolicy.Image{PullSpec: repository + "@" + digest}
			tc.want.check(t, tc.reason, read(t, tc.policy).Check(t.Context(), image, from(t, place)))
			got := read(t, tc.policy, policy("b", newKey(t).pem(), repository)).Check(t.Context(), image, from(t, place))
			want{outcome: preflight.Fail, reason: "InvalidSigstoreSignature", text: `"b"`}.check(t, "a failure outranks the other findings", got)
		})
	}
}

func TestKeysOfAllKinds(t *testing.T) {
	rsa, _, err := signature.NewRSAPKCS1v15SignerVerifier(rand.Reader, 4096, crypto.SHA256)
	rsaKey := of(t, rsa, err)
	edwards, _, err := signature.NewDefaultED25519SignerVerifier()
	edwardsKey := of(t, edwards, err)
	for name, key := range map[string]key{"RSA": rsaKey, "ECDSA": newKey(t), "Ed25519": edwardsKey} {
		t.Run(name, func(t *testing.T) {
			place := newRegistry(t) + "/mirror"
			digest := push(t, place)
			attach(t, place, digest, key.sign(digest, repository))
			got := read(t, policy("a", key.pem(), repository)).Check(t.Context(), imagepolicy.Image{PullSpec: repository + "@" + digest},
				from(t, place))
			want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"}.check(t, name, got)
		})
	}
}

func TestSignedIdentity(t *testing.T) {
	a := newKey(t)
	match := func(policy configv1.IdentityMatchPolicy) *configv1.PolicyIdentity {
		return &configv1.PolicyIdentity{MatchPolicy: policy}
	}
	exact := match(configv1.IdentityMatchPolicyExactRepository)
	exact.PolicyMatchExactRepository = &configv1.PolicyMatchExactRepository{Repository: "example.com/vendor/release"}
	remap := match(configv1.IdentityMatchPolicyRemapIdentity)
	remap.PolicyMatchRemapIdentity = &configv1.PolicyMatchRemapIdentity{
		Prefix:       "quay.io/openshift-release-dev",
		SignedPrefix: "example.com/vendor",
	}
	elsewhere := match(configv1.IdentityMatchPolicyRemapIdentity)
	elsewhere.PolicyMatchRemapIdentity = &configv1.PolicyMatchRemapIdentity{Prefix: "quay.io/openshift", SignedPrefix: "example.com/vendor"}
	byDigest, repositories := match(configv1.IdentityMatchPolicyMatchRepoDigestOrExact), match(configv1.IdentityMatchPolicyMatchRepository)
	fail := want{outcome: preflight.Fail, reason: "WrongSigstoreIdentity"}
	pass := want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"}
	for name, tc := range map[string]struct {
		reason, signed string
		identity       *configv1.PolicyIdentity
		want           want
	}{
		"Default":           {reason: "the same repository, by tag", signed: repository + ":4.20.1-x86_64", want: pass},
		"DefaultRepository": {reason: "the repository alone, as cosign signs", signed: repository, want: pass},
		"DefaultDigest":     {reason: "by digest", signed: repository + "@sha256:" + strings.Repeat("0", 64), want: pass},
		"DefaultOther":      {reason: "another repository", signed: "quay.io/openshift-release-dev/ocp-v4.0-art-dev:4.20.1", want: fail},
		"DefaultMirror":     {reason: "the mirror's own name", signed: "mirror.example.com/ocp-release:4.20.1", want: fail},
		"DefaultInvalid":    {reason: "not an image", signed: "a b", want: fail},
		"DefaultEmpty":      {reason: "nothing", signed: "", want: fail},
		"Digest":            {reason: "the default, stated explicitly", signed: repository + ":4.20.1", identity: byDigest, want: pass},
		"Repository":        {reason: "the repository", signed: repository + ":4.20.1", identity: repositories, want: pass},
		"RepositoryOther":   {reason: "another one", signed: repository + "/a:4.20.1", identity: repositories, want: fail},
		"Exact":             {reason: "the one that the policy names", signed: "example.com/vendor/release:1", identity: exact, want: pass},
		"ExactOwn": {
			reason: "the name of the image itself is not sufficient", signed: repository + ":4.20.1", identity: exact,
			want: fail,
		},
		"Remap": {reason: "the prefix is replaced", signed: "example.com/vendor/ocp-release:4.20.1", identity: remap, want: pass},
		"RemapOwn": {
			reason: "the name without replacement is not accepted", signed: repository + ":4.20.1", identity: remap,
			want: fail,
		},
		"RemapElsewhere": {
			reason: "a prefix that ends within a path element does not match", signed: repository + ":4.20.1",
			identity: elsewhere, want: pass,
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := newRegistry(t) + "/mirror"
			digest := push(t, place)
			attach(t, place, digest, a.sign(digest, tc.signed))
			p := policy("a", a.pem(), repository)
			p.Spec.Policy.SignedIdentity = tc.identity
			tc.want.check(t, tc.reason, read(t, p).Check(t.Context(), imagepolicy.Image{PullSpec: repository + "@" + digest}, from(t, place)))
		})
	}
}

// TestUnknownSignedIdentity checks values that this version of the API server rejects.
func TestUnknownSignedIdentity(t *testing.T) {
	a := newKey(t)
	place := newRegistry(t) + "/mirror"
	digest := push(t, place)
	attach(t, place, digest, a.sign(digest, repository))
	for _, match := range []configv1.IdentityMatchPolicy{
		"MatchAnything", "", configv1.IdentityMatchPolicyExactRepository,
		configv1.IdentityMatchPolicyRemapIdentity,
	} {
		t.Run(string(match), func(t *testing.T) {
			p := policy("a", a.pem(), repository)
			p.Spec.Policy.SignedIdentity = &configv1.PolicyIdentity{MatchPolicy: match}
			got := read(t, p).Check(t.Context(), imagepolicy.Image{PullSpec: repository + "@" + digest}, from(t, place))
			want{outcome: preflight.Unknown, reason: "InvalidImagePolicy", text: `"a"`}.check(t, "an unsupported rule never passes", got)
		})
	}
}

func TestLists(t *testing.T) {
	a := newKey(t)
	known := read(t, policy("a", a.pem(), repository))
	const amd, arm, windows = "linux/amd64", "linux/arm64", "windows/amd64"
	pass := want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"}
	for name, tc := range map[string]struct {
		reason        string
		platforms     []string
		signed        []int // of the platforms; -1 is the list
		architectures []string
		want          want
	}{
		"Release": {reason: "as Red Hat signs: the images, and not the list", platforms: []string{amd, arm}, signed: []int{0, 1}, want: pass},
		"Own": {
			reason: "the nodes pull one of them", platforms: []string{amd, arm}, signed: []int{1}, architectures: []string{"arm64"},
			want: pass,
		},
		"Mixed": {
			reason: "the nodes pull both", platforms: []string{amd, arm}, signed: []int{1}, architectures: []string{"amd64", "arm64"},
			want: want{outcome: preflight.Fail, reason: "NoSigstoreSignature"},
		},
		"All": {
			reason: "without architectures, all must be signed", platforms: []string{amd, arm}, signed: []int{0},
			want: want{outcome: preflight.Fail, reason: "NoSigstoreSignature"},
		},
		"ListAlone": {
			reason: "nodes do not verify the list", platforms: []string{amd}, signed: []int{-1},
			want: want{outcome: preflight.Fail, reason: "NoSigstoreSignature"},
		},
		"ListToo": {reason: "the list may be signed, too", platforms: []string{amd}, signed: []int{-1, 0}, want: pass},
		"Windows": {reason: "images for other systems are ignored", platforms: []string{windows, amd}, signed: []int{1}, want: pass},
		"OnlyWindows": {
			reason: "nothing for linux", platforms: []string{windows},
			want: want{outcome: preflight.Unknown, reason: "NoInstance", text: "no image for linux"},
		},
		"Missing": {
			reason: "nothing for the nodes", platforms: []string{amd}, signed: []int{0}, architectures: []string{"amd64", "s390x"},
			want: want{outcome: preflight.Unknown, reason: "NoInstance", text: "linux/s390x"},
		},
		"Many": {
			reason: "more images than are checked", platforms: strings.Split(strings.Repeat(amd+" ", 16)+amd, " "),
			want: want{outcome: preflight.Unknown, reason: "NoInstance", text: "17"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := newRegistry(t) + "/mirror"
			list, images := pushList(t, place, tc.platforms...)
			for _, i := range tc.signed {
				digest := list
				if i >= 0 {
					digest = images[i]
				}
				attach(t, place, digest, a.sign(digest, repository))
			}
			tc.want.check(t, tc.reason, known.Check(t.Context(),
				imagepolicy.Image{PullSpec: repository + "@" + list, Architectures: tc.architectures}, from(t, place)))
		})
	}
	t.Run("ListOfOtherKey", func(t *testing.T) {
		place := newRegistry(t) + "/mirror"
		list, images := pushList(t, place, amd)
		attach(t, place, images[0], a.sign(images[0], repository))
		attach(t, place, list, newKey(t).sign(list, repository))
		got := known.Check(t.Context(), imagepolicy.Image{PullSpec: repository + "@" + list}, from(t, place))
		want{outcome: preflight.Warn, reason: "InvalidSigstoreSignature", text: "the index"}.check(t,
			"an invalid signature of the index is a warning", got)
	})
}

// TestPlaces checks an image in several places; the first one with the image applies.
func TestPlaces(t *testing.T) {
	a := newKey(t)
	known := read(t, policy("a", a.pem(), repository))
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	digest := hash.String()
	signed, bare, empty, down := newRegistry(t)+"/signed", newRegistry(t)+"/bare", newRegistry(t)+"/empty", "127.0.0.1:1/down"
	for _, place := range []string{signed, bare} {
		if err := remote.Write(in(t, place).Digest(digest), image); err != nil {
			t.Fatal(err)
		}
	}
	attach(t, signed, digest, a.sign(digest, repository))
	for name, tc := range map[string]struct {
		reason string
		places []string
		want   want
		// command is that of the first action.
		command string
	}{
		"Signed": {reason: "image and signature", places: []string{signed}, want: want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"}},
		"Second": {
			reason: "the first place does not have the image", places: []string{empty, down, signed},
			want: want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"},
		},
		"Bare": {
			reason: "a mirror without the signature; nodes try no other place", places: []string{bare, signed},
			want:    want{outcome: preflight.Fail, reason: "NoSigstoreSignature", text: bare},
			command: "cosign copy --only=sig " + repository + "@" + digest + " " + bare,
		},
		"Nowhere": {
			reason: "no place has the image", places: []string{empty},
			want: want{outcome: preflight.Unknown, reason: "ImageUnavailable", text: repository},
		},
		"Down": {reason: "no registry listens", places: []string{down}, want: want{outcome: preflight.Unknown, reason: "ImageUnavailable"}},
		"None": {reason: "no place is configured", want: want{outcome: preflight.Unknown, reason: "ImageUnavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := known.Check(t.Context(), imagepolicy.Image{PullSpec: repository + "@" + digest}, from(t, tc.places...))
			tc.want.check(t, tc.reason, got)
			if tc.command == "" {
				return
			}
			if diff := cmp.Diff(tc.command, got.Actions[0].Command); diff != "" {
				t.Errorf("%s: actions (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPullSpecs(t *testing.T) {
	known := read(t, policy("a", newKey(t).pem(), "quay.io"))
	for name, pullSpec := range map[string]string{
		"Empty": "", "Tag": repository + ":4.20.1", "Short": repository + "@sha256:0", "Newline": "\n", "Long": strings.Repeat("a", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			got := known.Check(t.Context(), imagepolicy.Image{PullSpec: pullSpec}, from(t))
			want{outcome: preflight.Unknown, reason: "InvalidPullSpec"}.check(t, fmt.Sprintf("%.20q has no digest", pullSpec), got)
		})
	}
}

func TestFromClusterWithoutPolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		fails  bool
	}{
		"Unknown": {reason: "a cluster before 4.20", err: apierrors.NewNotFound(schema.GroupResource{Resource: "clusterimagepolicies"}, "")},
		"Forbidden": {
			reason: "a denied request does not mean that there are no policies",
			err:    apierrors.NewForbidden(schema.GroupResource{Resource: "clusterimagepolicies"}, "", errors.New("no")), fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := configfake.NewClientset()
			client.PrependReactor("list", "clusterimagepolicies",
				func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			known, err := imagepolicy.FromCluster(t.Context(), client.ConfigV1())
			if (err != nil) != tc.fails || known.Covers(repository+"@sha256:"+strings.Repeat("0", 64)) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
		})
	}
}

// TestOneValidSignatureIsSufficient checks an image with several signatures.
func TestOneValidSignatureIsSufficient(t *testing.T) {
	a, untrusted := newKey(t), newKey(t)
	known := read(t, policy("a", a.pem(), repository))
	other := "sha256:" + strings.Repeat("0", 64)
	many := func(n int, good bool) func(string) []release.Attachment {
		return func(digest string) []release.Attachment {
			var all []release.Attachment
			for i := range n {
				all = append(all, untrusted.sign(digest, fmt.Sprintf("%s:%d", repository, i)))
			}
			if good {
				all = append(all, a.sign(digest, repository))
			}
			return all
		}
	}
	for name, tc := range map[string]struct {
		reason      string
		attachments func(digest string) []release.Attachment
		want        want
	}{
		"Last": {
			reason: "the last of 64 is valid", attachments: many(63, true),
			want: want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"},
		},
		"TooMany": {
			reason: "an unread signature may be valid", attachments: many(99, true),
			want: want{outcome: preflight.Unknown, reason: "TooManySignatures", text: "64"},
		},
		"None": {
			reason: "all signatures are by another key", attachments: many(9, false),
			want: want{outcome: preflight.Fail, reason: "InvalidSigstoreSignature"},
		},
		"Nearest": {reason: "the violation of the trusted key is reported", attachments: func(digest string) []release.Attachment {
			return []release.Attachment{untrusted.sign(digest, repository), a.sign(other, repository), a.signPayload("{}")}
		}, want: want{outcome: preflight.Fail, reason: "WrongSigstoreDigest", text: other}},
	} {
		t.Run(name, func(t *testing.T) {
			place := newRegistry(t) + "/mirror"
			digest := push(t, place)
			attach(t, place, digest, tc.attachments(digest)...)
			tc.want.check(t, tc.reason, known.Check(t.Context(), imagepolicy.Image{PullSpec: repository + "@" + digest}, from(t, place)))
		})
	}
}
