package signature_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configfake "github.com/openshift/client-go/config/clientset/versioned/fake"
	"k8s.io/client-go/kubernetes/fake"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
	"github.com/openshift/update-preflight/test/release"
)

// Tests of: signature/refusal

func TestVerifyTrust(t *testing.T) {
	a, b, c := newSigner(t, "a", nil), newSigner(t, "b", nil), newSigner(t, "c", nil)
	byA, byB, byC := sign(t, a, pullSpec), sign(t, b, pullSpec), sign(t, c, pullSpec)
	tampered := bytes.Clone(byA)
	tampered[len(tampered)-1]++
	ringA, ringB, ringAB := keyring(t, "a", a), keyring(t, "b", b), keyring(t, "ab", a, b)
	type rings = []signature.Keyring
	type stores = []store.Store
	down := broken{err: errors.New("refused")}
	for name, tc := range map[string]struct {
		reason  string
		rings   rings
		stores  stores
		want    string
		outcome preflight.Outcome
		message string
	}{
		"OneKey":       {reason: "signed by the only key", rings: rings{ringA}, stores: stores{memory{byA}}},
		"AnyKey":       {reason: "one key of a keyring is sufficient", rings: rings{ringAB}, stores: stores{memory{byB}}},
		"AnySignature": {reason: "one valid signature is sufficient", rings: rings{ringA}, stores: stores{memory{tampered, byC, {}, byA}}},
		"AllKeyrings":  {reason: "every keyring has a signature", rings: rings{ringA, ringB}, stores: stores{memory{byA, byB}}},
		"SharedKey": {
			reason: "one signature satisfies every keyring with its key", rings: rings{ringA, ringAB},
			stores: stores{memory{byA}},
		},
		"AcrossStores": {
			reason: "keyrings may be satisfied from different stores", rings: rings{ringA, ringB},
			stores: stores{memory{byA}, memory{byB}},
		},
		"LaterStore": {reason: "a store that is down does not stop the search", rings: rings{ringA}, stores: stores{down, memory{byA}}},
		"OneKeyring": {
			reason: "one keyring of two is not sufficient", rings: rings{ringA, ringB}, stores: stores{memory{byA}},
			want: "UnknownKey", outcome: preflight.Fail, message: `keyring "b"`,
		},
		"NoKeys":   {reason: "no keyring", stores: stores{memory{byA}}, want: "NoKeys", outcome: preflight.Unknown},
		"NoStores": {reason: "no store", rings: rings{ringA}, want: "NoStores", outcome: preflight.Unknown},
		"NoSignature": {
			reason: "the stores are empty", rings: rings{ringA}, stores: stores{memory{}, memory{}}, want: "NoSignature",
			outcome: preflight.Fail, message: "memory, memory",
		},
		"UnknownKey": {
			reason: "signed by an untrusted key", rings: rings{ringA}, stores: stores{memory{byC}}, want: "UnknownKey",
			outcome: preflight.Fail, message: fmt.Sprintf("%016X", c.Entity().PrimaryKey.KeyId),
		},
		"Tampered": {
			reason: "a modified signature by a trusted key ranks above one by an untrusted key", rings: rings{ringA},
			stores: stores{memory{byC, tampered}}, want: "InvalidSignature", outcome: preflight.Fail, message: "signature-2 of memory",
		},
		"StoreDown": {
			reason: "the store could not be read", rings: rings{ringA}, stores: stores{down}, want: "StoreUnavailable",
			outcome: preflight.Unknown, message: "refused",
		},
		"StoreDownUnknown": {
			reason: "the valid signature may be in the store that is down", rings: rings{ringA},
			stores: stores{down, memory{byC}}, want: "StoreUnavailable", outcome: preflight.Unknown,
		},
		"StoreSlow": {
			reason: "a deadline is a timeout", rings: rings{ringA}, stores: stores{broken{err: context.DeadlineExceeded}},
			want: "Timeout", outcome: preflight.Unknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := signature.Verify(t.Context(), pullSpec, signature.Trust{Keyrings: tc.rings, Stores: tc.stores})
			check(t, tc.reason, tc.want, r, err)
			var e *refusal.Error
			if errors.As(err, &e) && (e.Outcome != tc.outcome || !strings.Contains(e.Message, tc.message)) {
				t.Errorf("%s: outcome %s, message %q, want %s and %q", tc.reason, e.Outcome, e.Message, tc.outcome, tc.message)
			}
		})
	}
}

func TestVerifySigners(t *testing.T) {
	a, b := newSigner(t, "a", nil), newSigner(t, "b", nil)
	r, err := signature.Verify(t.Context(), pullSpec, signature.Trust{
		Keyrings: []signature.Keyring{keyring(t, "a", a), keyring(t, "b", b)},
		Stores:   []store.Store{memory{sign(t, a, pullSpec), sign(t, b, pullSpec)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		fmt.Sprintf("%016X (a <a@example.com>)", a.Entity().PrimaryKey.KeyId),
		fmt.Sprintf("%016X (b <b@example.com>)", b.Entity().PrimaryKey.KeyId),
	}
	if diff := cmp.Diff(want, r.Signers()); diff != "" {
		t.Errorf("signers (-want +got):\n%s", diff)
	}
	if r.Failure() != nil || len(r.Warnings()) != 0 {
		t.Errorf("verified, but failure %v and warnings %q", r.Failure(), r.Warnings())
	}
}

func TestVerifyPullSpec(t *testing.T) {
	a := newSigner(t, "a", nil)
	trust := signature.Trust{
		Keyrings: []signature.Keyring{keyring(t, "a", a)}, Stores: []store.Store{memory{sign(t, a, pullSpec)}},
	}
	for name, tc := range map[string]struct {
		reason, pullSpec string
		fine             bool
	}{
		"Plain":       {reason: "repository@sha256:hex", pullSpec: pullSpec, fine: true},
		"Port":        {reason: "a registry has a port", pullSpec: "127.0.0.1:5000/release@" + digest, fine: true},
		"IPv6":        {reason: "a registry may be an IPv6 address", pullSpec: "[fd00::1]:5000/a/b_c-d.e@" + digest, fine: true},
		"Empty":       {reason: "an empty pull spec", pullSpec: ""},
		"Tag":         {reason: "a tag is not a digest", pullSpec: reference},
		"TagToo":      {reason: "a tag beside the digest is not verified", pullSpec: reference + "@" + digest},
		"Digest":      {reason: "a digest without repository names no image", pullSpec: digest},
		"At":          {reason: "the repository is empty", pullSpec: "@" + digest},
		"NoPath":      {reason: "a registry is not a repository", pullSpec: "quay.io@" + digest},
		"Short":       {reason: "63 digits", pullSpec: strings.TrimSuffix(pullSpec, "a")},
		"Long":        {reason: "65 digits", pullSpec: pullSpec + "a"},
		"UpperDigest": {reason: "upper-case hex is not canonical", pullSpec: strings.ReplaceAll(pullSpec, "0a", "0A")},
		"SHA512":      {reason: "another algorithm", pullSpec: repository + "@sha512:" + strings.Repeat("0a", 64)},
		"Newline":     {reason: "a newline after the digest", pullSpec: pullSpec + "\n"},
		"Scheme":      {reason: "a URL is not a pull spec", pullSpec: "https://" + pullSpec},
		"Dots":        {reason: "a path with ..", pullSpec: "quay.io/../a@" + digest},
		"Two":         {reason: "two digests", pullSpec: pullSpec + "@" + digest},
		"Huge":        {reason: "a huge pull spec is truncated", pullSpec: strings.Repeat("a", 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := signature.Verify(t.Context(), tc.pullSpec, trust)
			if tc.fine {
				if err != nil || r.PullSpec() != tc.pullSpec {
					t.Errorf("%s: Verify(%q): %v", tc.reason, tc.pullSpec, err)
				}
				return
			}
			check(t, tc.reason, refusal.ReasonInvalidPullSpec.String(), r, err)
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("%s: message of %d bytes", tc.reason, len(err.Error()))
			}
			if _, err := signature.Force(tc.pullSpec, errors.New("unsigned")); err == nil {
				t.Errorf("%s: Force accepted it", tc.reason)
			}
		})
	}
}

// TestVerifyReadsFewSignatures puts 99 signatures by an untrusted key before the
// valid one, in a store and in ConfigMaps.
func TestVerifyReadsFewSignatures(t *testing.T) {
	a, untrusted := newSigner(t, "a", nil), newSigner(t, "untrusted", nil)
	var many memory
	configMaps := release.Store{}
	for range 99 {
		many = append(many, sign(t, untrusted, pullSpec))
		configMaps.Add(pullSpec, many[len(many)-1])
	}
	many = append(many, sign(t, a, pullSpec))
	k := keyring(t, "a", a)
	for name, tc := range map[string]struct {
		reason  string
		store   store.Store
		want    string
		details int
	}{
		"Many":  {reason: "the hundredth signature is not read", store: many, want: "TooManySignatures", details: 10},
		"Eight": {reason: "the ninth signature is read", store: many[91:]},
		"Nine":  {reason: "the tenth signature is not read", store: many[90:], want: "TooManySignatures", details: 10},
		"None":  {reason: "nine signatures by an untrusted key are within the limit", store: many[:9], want: "UnknownKey", details: 9},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := frugal(t, signature.Trust{Keyrings: []signature.Keyring{k}, Stores: []store.Store{tc.store}})
			check(t, tc.reason, tc.want, r, err)
			if e, ok := errors.AsType[*refusal.Error](err); ok && (len(e.Details) != tc.details || e.Outcome != preflight.Fail) {
				t.Errorf("%s: %s with %d details, want Fail with %d", tc.reason, e.Outcome, len(e.Details), tc.details)
			}
		})
	}
	configMaps.Add(pullSpec, many[99])
	trust, err := signature.FromCluster(t.Context(), fake.NewClientset(
		configMaps.ConfigMap("signatures"), release.VerificationConfigMap(map[string][]byte{"a": publicKey(t, a)}, nil),
	).CoreV1(), configfake.NewClientset().ConfigV1())
	if err != nil {
		t.Fatal(err)
	}
	r, err := signature.Verify(t.Context(), pullSpec, trust)
	check(t, "a hundred signatures in ConfigMaps are all read", "", r, err)
}

func TestVerifyCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	unreachable, err := store.New("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	r, err := signature.Verify(ctx, pullSpec, signature.Trust{
		Keyrings: []signature.Keyring{keyring(t, "a", newSigner(t, "a", nil))}, Stores: []store.Store{unreachable},
	})
	check(t, "a canceled verification yields no proof", "StoreUnavailable", r, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not wrap the cancellation", err)
	}
}

func TestForce(t *testing.T) {
	failure := errors.New("unsigned")
	r, err := signature.Force(pullSpec, failure)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verified() || !errors.Is(r.Failure(), failure) || r.PullSpec() != pullSpec || r.Digest() != digest || len(r.Signers()) != 0 {
		t.Errorf("forced release: %+v", r)
	}
	if _, err := signature.Force(pullSpec, nil); err == nil {
		t.Error("Force accepted a release without a failed verification")
	}
	if zero := (signature.Release{}); zero.Verified() {
		t.Error("the zero value is verified")
	}
}
