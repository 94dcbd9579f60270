package imagepolicy_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
)

// TestPoliciesOfARelease checks an image that the key signed, and one that nothing signed.
func TestPoliciesOfARelease(t *testing.T) {
	const scope = "quay.io/openshift-release-dev/ocp-v4.0-art-dev"
	place := newRegistry(t) + "/mirror"
	signed, unsigned := push(t, place), push(t, place)
	release, other := newKey(t), newKey(t)
	attach(t, place, signed, release.sign(signed, scope+":4.20.1"))
	brought := func(key []byte, scopes ...configv1.ImageScope) imagepolicy.Brought {
		return imagepolicy.Brought{ClusterImagePolicy: *policy("openshift", key, scopes...)}
	}
	pass, none := want{outcome: preflight.Pass, reason: "ImagePolicySatisfied"}, want{outcome: preflight.Skipped, reason: "NoImagePolicy"}
	for name, tc := range map[string]struct {
		reason  string
		present []*configv1.ClusterImagePolicy
		brought []imagepolicy.Brought
		image   string
		want    want
	}{
		"Signed": {
			reason: "the policy of the release is satisfied", brought: []imagepolicy.Brought{brought(release.pem(), scope)},
			image: signed, want: pass,
		},
		"Unsigned": {
			reason: "a mirror without the signatures", brought: []imagepolicy.Brought{brought(release.pem(), scope)}, image: unsigned,
			want: want{outcome: preflight.Fail, reason: "NoSigstoreSignature", text: "with the policies of the release"},
		},
		"OtherScope": {
			reason:  "the release brings a policy for other images",
			brought: []imagepolicy.Brought{brought(release.pem(), "quay.io/other")}, image: unsigned, want: none,
		},
		"NewKey": {
			reason:  "the release replaces the key, and nodes admit it by the present one only before",
			present: []*configv1.ClusterImagePolicy{policy("openshift", other.pem(), scope)},
			brought: []imagepolicy.Brought{brought(release.pem(), scope)}, image: signed,
			want: want{outcome: preflight.Fail, reason: "InvalidSigstoreSignature", text: "ClusterImagePolicy"},
		},
		"Same": {
			reason: "the cluster has the policy already", present: []*configv1.ClusterImagePolicy{policy("openshift", release.pem(), scope)},
			brought: []imagepolicy.Brought{brought(release.pem(), scope)}, image: signed, want: pass,
		},
		"Beside": {
			reason: "another policy of the same scope stays", present: []*configv1.ClusterImagePolicy{policy("mine", other.pem(), scope)},
			brought: []imagepolicy.Brought{brought(release.pem(), scope)},
			image:   signed, want: want{outcome: preflight.Fail, reason: "InvalidSigstoreSignature", text: `"mine"`},
		},
		"MoreSpecific": {reason: "the user's policy of a more specific scope applies instead", present: []*configv1.ClusterImagePolicy{policy(
			"mine", release.pem(), scope)}, brought: []imagepolicy.Brought{brought(other.pem(), "quay.io")}, image: signed, want: pass},
		"Removed": {
			reason:  "the release removes it, but nodes have it until then",
			present: []*configv1.ClusterImagePolicy{policy("openshift", other.pem(), scope)},
			brought: []imagepolicy.Brought{{ClusterImagePolicy: *policy("openshift", nil), Removed: true}}, image: signed,
			want: want{outcome: preflight.Fail, reason: "InvalidSigstoreSignature"},
		},
		"OtherRoot": {
			reason: "a root of trust that is not supported",
			brought: []imagepolicy.Brought{{ClusterImagePolicy: configv1.ClusterImagePolicy{
				ObjectMeta: policy("openshift", nil).ObjectMeta,
				Spec: configv1.ClusterImagePolicySpec{
					Scopes: []configv1.ImageScope{scope},
					Policy: configv1.ImageSigstoreVerificationPolicy{RootOfTrust: configv1.PolicyRootOfTrust{PolicyType: configv1.FulcioCAWithRekorRootOfTrust}},
				},
			}}}, image: signed, want: want{outcome: preflight.Unknown, reason: "UnsupportedRootOfTrust", text: "FulcioCAWithRekor"},
		},
		"Unsure": {
			reason:  "it is unknown whether the release brings it",
			brought: []imagepolicy.Brought{{ClusterImagePolicy: *policy("openshift", release.pem(), scope), Cause: "for feature set New"}},
			image:   signed, want: want{outcome: preflight.Unknown, reason: "InvalidImagePolicy", text: "feature set New"},
		},
		"UnsureScope": {reason: "what it covers is unknown", brought: []imagepolicy.Brought{{
			ClusterImagePolicy: *policy("openshift", nil),
			Cause:              "it cannot be decoded",
		}}, image: signed, want: want{outcome: preflight.Unknown, reason: "InvalidImagePolicy"}},
		"UnsureOthers": {reason: "it covers other images, if any", brought: []imagepolicy.Brought{{ClusterImagePolicy: *policy("openshift",
			release.pem(), "quay.io/other"), Cause: "for feature set New"}}, image: signed, want: none},
	} {
		t.Run(name, func(t *testing.T) {
			image := imagepolicy.Image{PullSpec: scope + "@" + tc.image}
			policies := read(t, tc.present...).Before(tc.brought)
			got := policies.Check(t.Context(), image, from(t, place))
			tc.want.check(t, tc.reason, got)
			if covers := policies.Covers(image.PullSpec); covers != (tc.want != none) {
				t.Errorf("%s: covers it: %t", tc.reason, covers)
			}
		})
	}
	created := brought(other.pem(), scope)
	created.Annotations = map[string]string{"release.openshift.io/create-only": "true"}
	got := read(t, policy("openshift", release.pem(), scope)).Before([]imagepolicy.Brought{created}).Check(t.Context(),
		imagepolicy.Image{PullSpec: scope + "@" + signed}, from(t, place))
	pass.check(t, "the operator leaves what exists", got)
}
