package runner_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	configv1 "github.com/openshift/api/config/v1"
	sigstorekeys "github.com/sigstore/sigstore/pkg/cryptoutils"
	sigstore "github.com/sigstore/sigstore/pkg/signature"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/test/release"
)

// newSigstoreKey returns a key, and its public part in PEM.
func newSigstoreKey(t *testing.T) (sigstore.SignerVerifier, []byte) {
	t.Helper()
	key, private, err := sigstore.NewDefaultECDSASignerVerifier()
	if err != nil {
		t.Fatal(err)
	}
	public, err := sigstorekeys.MarshalPublicKeyToPEM(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

// createPolicy creates an image policy, and deletes it at the end of the test.
func (w world) createPolicy(t *testing.T, spec configv1.ClusterImagePolicySpec) {
	t.Helper()
	client := w.cluster.OpenShift.ConfigV1().ClusterImagePolicies()
	policy := &configv1.ClusterImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "test"}, Spec: spec}
	if _, err := client.Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// attach pushes a sigstore signature of the image, under the name of a repository.
func attach(t *testing.T, key sigstore.Signer, pullSpec, signedAs string) {
	t.Helper()
	repository, digest, _ := strings.Cut(pullSpec, "@")
	signed, err := release.SignImage(key, digest, signedAs)
	if err != nil {
		t.Fatal(err)
	}
	if err := release.Attach(t.Context(), repository, digest, signed); err != nil {
		t.Fatal(err)
	}
}

func trusting(key []byte, scope string) configv1.ClusterImagePolicySpec {
	return configv1.ClusterImagePolicySpec{
		Scopes: []configv1.ImageScope{configv1.ImageScope(scope)},
		Policy: configv1.ImageSigstoreVerificationPolicy{RootOfTrust: configv1.PolicyRootOfTrust{
			PolicyType: configv1.PublicKeyRootOfTrust, PublicKey: &configv1.ImagePolicyPublicKeyRootOfTrust{KeyData: key},
		}},
	}
}

func TestImagePoliciesApplyToRelease(t *testing.T) {
	key, public := newSigstoreKey(t)
	_, otherPublic := newSigstoreKey(t)
	certificate := []byte("-----BEGIN CERTIFICATE-----\n" + strings.Repeat("a", 80) + "\n-----END CERTIFICATE-----")
	for name, tc := range map[string]struct {
		reason   string
		key      []byte
		change   func(*configv1.ClusterImagePolicySpec)
		unsigned bool
		signedAs string
		want     preflight.Outcome
		contains string
	}{
		"Signed": {reason: "the signature satisfies the policy", key: public, want: preflight.Pass, contains: "ImagePolicySatisfied"},
		"Unsigned": {
			reason: "the nodes would reject the image", key: public, unsigned: true, want: preflight.Fail,
			contains: "NoSigstoreSignature",
		},
		"OtherKey": {reason: "signed by another key", key: otherPublic, want: preflight.Fail, contains: "InvalidSigstoreSignature"},
		"Remapped": {
			reason: "signed under the remapped name", key: public, signedAs: "quay.io/openshift-release-dev/release",
			change: func(spec *configv1.ClusterImagePolicySpec) {
				spec.Policy.SignedIdentity = &configv1.PolicyIdentity{
					MatchPolicy: configv1.IdentityMatchPolicyRemapIdentity,
					PolicyMatchRemapIdentity: &configv1.PolicyMatchRemapIdentity{
						Prefix: configv1.IdentityRepositoryPrefix(spec.Scopes[0]), SignedPrefix: "quay.io/openshift-release-dev/release",
					},
				}
			}, want: preflight.Pass, contains: "ImagePolicySatisfied",
		},
		"Fulcio": {
			reason: "the verification by Fulcio is not implemented", want: preflight.Unknown, contains: "FulcioCAWithRekor",
			change: func(spec *configv1.ClusterImagePolicySpec) {
				spec.Policy.RootOfTrust = configv1.PolicyRootOfTrust{
					PolicyType: configv1.FulcioCAWithRekorRootOfTrust,
					FulcioCAWithRekor: &configv1.ImagePolicyFulcioCAWithRekorRootOfTrust{
						FulcioCAData: certificate, RekorKeyData: public,
						FulcioSubject: configv1.PolicyFulcioSubject{OIDCIssuer: "https://example.com/", SignedEmail: "a@example.com"},
					},
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{})
			repository := w.registry + "/openshift/release"
			spec := trusting(tc.key, repository)
			if tc.change != nil {
				tc.change(&spec)
			}
			w.createPolicy(t, spec)
			if tc.signedAs == "" {
				tc.signedAs = repository
			}
			if !tc.unsigned {
				attach(t, key, w.pullSpec, tc.signedAs)
			}
			decided := w.run(t)
			got := find(t, decided, "ReleaseImagePolicy")
			if got.Outcome != tc.want || !strings.Contains(got.Reason+got.Message, tc.contains) {
				t.Errorf("%s: %s (%s) %q, want %s, %q", tc.reason, got.Outcome, got.Reason, got.Message, tc.want, tc.contains)
			}
			blocks, undecided := slices.Contains(decided.Verdict.Blocking, got.Name), slices.Contains(decided.Verdict.Undecided, got.Name)
			if blocks != (tc.want == preflight.Fail) || undecided != (tc.want == preflight.Unknown) {
				t.Errorf("%s: blocking %t, undecided %t", tc.reason, blocks, undecided)
			}
			if rejects := decided.CVO.Accepts != nil && !*decided.CVO.Accepts; rejects != (tc.want == preflight.Fail) {
				t.Errorf("%s: cvo %+v", tc.reason, decided.CVO)
			}
		})
	}
}

func TestNoImagePolicyNoFinding(t *testing.T) {
	w := newWorld(t, map[string]string{})
	_, public := newSigstoreKey(t)
	w.createPolicy(t, trusting(public, "quay.io"))
	for _, f := range w.run(t).Findings {
		if strings.HasSuffix(f.Name, "ImagePolicy") {
			t.Errorf("no policy covers the release, but there is the finding %+v", f)
		}
	}
}

// TestImagePoliciesApplyToComponents checks a release of three components, two of them
// without a signature.
func TestImagePoliciesApplyToComponents(t *testing.T) {
	w := newWorld(t, map[string]string{})
	key, public := newSigstoreKey(t)
	w.createPolicy(t, trusting(public, w.registry+"/openshift/components"))
	var components []release.Component
	for _, component := range []string{"a", "b", "signed"} {
		image, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		repository, err := name.NewRepository(w.registry + "/openshift/components")
		if err != nil {
			t.Fatal(err)
		}
		pullSpec := repository.Digest(digest.String())
		if err := remote.Write(pullSpec, image); err != nil {
			t.Fatal(err)
		}
		components = append(components, release.Component{Name: component, Image: pullSpec.String(), Source: "quay.io/openshift/" + component})
	}
	attach(t, key, components[2].Image, w.registry+"/openshift/components:4.19.0")
	pullSpec, err := release.Push(t.Context(), w.registry, release.Release{Version: next, Components: components})
	if err != nil {
		t.Fatal(err)
	}
	w.pullSpec = pullSpec
	w.signAs(t, "quay.io/openshift-release-dev/ocp-release:"+next+"-x86_64")
	w.target = runner.Target{Image: pullSpec}
	decided := w.run(t)
	got := map[preflight.Outcome]string{}
	for _, f := range decided.Findings {
		if f.Name == "ComponentImagePolicy" {
			got[f.Outcome] = f.Message
		}
	}
	if len(got) != 2 || !strings.Contains(got[preflight.Fail], "2 (a, b)") || !strings.Contains(got[preflight.Pass], "1 (signed)") {
		t.Errorf("findings %q, want one for the two without signature, and one for the other", got)
	}
	if !slices.Contains(decided.Verdict.Blocking, "ComponentImagePolicy") || decided.CVO.Accepts == nil || !*decided.CVO.Accepts {
		t.Errorf("blocking %q, cvo %+v; want a blocking finding, and an acceptance by CVO, which does not check components",
			decided.Verdict.Blocking, decided.CVO)
	}
}
