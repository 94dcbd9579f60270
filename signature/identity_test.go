package signature_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/google/go-cmp/cmp"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
)

// signedAs is the proof of a release that is signed under a reference.
func signedAs(t *testing.T, references ...string) signature.Release {
	t.Helper()
	var trust signature.Trust
	var signatures memory
	for _, reference := range references {
		signer := newSigner(t, "a", &packet.Config{Algorithm: packet.PubKeyAlgoECDSA, Curve: packet.CurveNistP256}) // its generation is fast
		data, err := signer.Sign(pullSpec, reference)
		if err != nil {
			t.Fatal(err)
		}
		signatures = append(signatures, data)
		trust.Keyrings = append(trust.Keyrings, keyring(t, reference, signer))
	}
	trust.Stores = []store.Store{signatures}
	proof, err := signature.Verify(t.Context(), pullSpec, trust)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(references, proof.Identities()); diff != "" {
		t.Errorf("identities (-want +got):\n%s", diff)
	}
	return proof
}

func TestCheckRepository(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		signed       []string
		repositories []string
		want         string
	}{
		"Default":    {reason: "OpenShift's repository", signed: []string{reference}},
		"NoTag":      {reason: "a tag is not required", signed: []string{repository}},
		"Digest":     {reason: "by digest", signed: []string{repository + "@" + digest}},
		"Port":       {reason: "a port is not a tag", signed: []string{"example.com:5000/a"}, repositories: []string{"example.com:5000/a"}},
		"Configured": {reason: "one of several", signed: []string{"example.com/b:1"}, repositories: []string{"example.com/a", "example.com/b"}},
		"Replaced": {
			reason: "OpenShift's repository is not configured", signed: []string{reference}, repositories: []string{"example.com/a"},
			want: "WrongRepository",
		},
		"Foreign": {
			reason: "another image of the same provider", signed: []string{"registry.access.redhat.com/rhel7:7.6"},
			want: "WrongRepository",
		},
		"Below": {reason: "a repository below", signed: []string{repository + "/a:4.20.1"}, want: "WrongRepository"},
		"Prefix": {
			reason: "another repository with the same prefix", signed: []string{repository + "-nightly:4.20.1"},
			want: "WrongRepository",
		},
		"Case":    {reason: "another letter case", signed: []string{strings.ToUpper(repository) + ":4.20.1"}, want: "WrongRepository"},
		"Invalid": {reason: "not a reference at all", signed: []string{"\n@:"}, want: "WrongRepository"},
		"Long":    {reason: "a long name is truncated", signed: []string{strings.Repeat("a", 8000)}, want: "WrongRepository"},
		"Second":  {reason: "every signer must agree", signed: []string{reference, "example.com/a:4.20.1"}, want: "WrongRepository"},
	} {
		t.Run(name, func(t *testing.T) {
			identified(t, tc.reason, tc.want, signedAs(t, tc.signed...).CheckRepository(tc.repositories))
		})
	}
}

func TestCheckVersion(t *testing.T) {
	for name, tc := range map[string]struct{ reason, tag, version, want string }{
		"Architecture":      {reason: "the form that Red Hat signs", tag: ":4.20.1-x86_64", version: "4.20.1"},
		"ARM":               {reason: "another architecture", tag: ":4.20.1-aarch64", version: "4.20.1"},
		"Multi":             {reason: "all architectures", tag: ":4.20.1-multi", version: "4.20.1"},
		"MultiArchitecture": {reason: "one architecture of a multi-architecture release", tag: ":4.20.1-multi-ppc64le", version: "4.20.1"},
		"Alone":             {reason: "the version alone", tag: ":4.20.1", version: "4.20.1"},
		"Candidate":         {reason: "a pre-release", tag: ":4.20.0-rc.1-s390x", version: "4.20.0-rc.1"},
		"Build":             {reason: "a tag has no plus sign", tag: ":4.20.1_build.2-amd64", version: "4.20.1+build.2"},
		"Digest":            {reason: "tag and digest", tag: ":4.20.1-x86_64@" + digest, version: "4.20.1"},
		"Older":             {reason: "another version", tag: ":4.20.0-x86_64", version: "4.20.1", want: "WrongVersion"},
		"Longer":            {reason: "a longer number", tag: ":4.20.11-x86_64", version: "4.20.1", want: "WrongVersion"},
		"PreRelease":        {reason: "a pre-release is not the release", tag: ":4.20.0-rc.1-x86_64", version: "4.20.0", want: "WrongVersion"},
		"Release":           {reason: "the release is not the pre-release", tag: ":4.20.0-x86_64", version: "4.20.0-rc.1", want: "WrongVersion"},
		"Suffix":            {reason: "not an architecture", tag: ":4.20.1-x86_64a", version: "4.20.1", want: "WrongVersion"},
		"Latest":            {reason: "a tag that is not a version", tag: ":latest", version: "4.20.1", want: "WrongVersion"},
		"NoVersion":         {reason: "a release without a version", tag: ":-x86_64", version: "", want: "WrongVersion"},
		"NoTag":             {reason: "the version is not signed", tag: "", version: "4.20.1", want: "NoSignedVersion"},
		"OnlyDigest":        {reason: "a digest is not a version", tag: "@" + digest, version: "4.20.1", want: "NoSignedVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			identified(t, tc.reason, tc.want, signedAs(t, repository+tc.tag).CheckVersion(tc.version))
		})
	}
}

// identified compares an error with the reason wanted; "" wants none.
func identified(t *testing.T, why, want string, err error) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", why, err)
		}
		return
	}
	check(t, why, want, signature.Release{}, err)
	e, _ := errors.AsType[*refusal.Error](err)
	if accepts := e.CVOAccepts; accepts == nil || !*accepts {
		t.Errorf("%s: CVO never compares the reference, but is reported to reject it", why)
	}
	if len(e.Message) > 2000 {
		t.Errorf("%s: message of %d bytes", why, len(e.Message))
	}
	if unknown := want == "NoSignedVersion"; unknown != (e.Outcome == preflight.Unknown) {
		t.Errorf("%s: outcome %s", why, e.Outcome)
	}
}

func TestIdentityWithoutProof(t *testing.T) {
	for name, check := range map[string]func(signature.Release) error{
		"Repository": func(r signature.Release) error { return r.CheckRepository([]string{""}) },
		"Version":    func(r signature.Release) error { return r.CheckVersion("4.20.1") },
	} {
		t.Run(name, func(t *testing.T) {
			if e, ok := errors.AsType[*refusal.Error](check(signature.Release{})); !ok || e.Reason.Name != "NotVerified" ||
				e.Outcome != preflight.Unknown {
				t.Errorf("an unverified release passes the identity check: %v", e)
			}
			forced, err := signature.Force(pullSpec, errors.New("unsigned"))
			if err != nil {
				t.Fatal(err)
			}
			if err := check(forced); err != nil {
				t.Errorf("a forced release fails the identity check: %v", err)
			}
		})
	}
}
