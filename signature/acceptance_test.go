package signature_test

import (
	"bytes"
	"crypto"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
)

// TestCVOAccepts compares the reported acceptance by CVO with the measured
// behavior of library-go pkg/verify.
func TestCVOAccepts(t *testing.T) {
	curved := &packet.Config{Algorithm: packet.PubKeyAlgoECDSA, Curve: packet.CurveNistP256}
	a, untrusted, revoked, curve := newSigner(t, "a", nil), newSigner(t, "untrusted", curved), newSigner(t, "revoked", curved),
		newSigner(t, "curve", curved)
	edwards := newSigner(t, "edwards", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	now := time.Now()
	old := newSigner(t, "old", &packet.Config{Time: func() time.Time { return now.Add(-48 * time.Hour) }, KeyLifetimeSecs: 3600})
	revoke(t, revoked)
	good := claimOf(digest)
	signed := func(m message) []byte { return m.bytes(t, a) }
	claimed := func(claim string) []byte { return signed(message{body: []byte(claim)}) }
	ringA := keyring(t, "a", a)
	gpg := gpgKeyring(t, "key.asc")
	forged := bytes.Replace(golden(t, "sha1.sig"), []byte{0xd1}, []byte{0xd2}, 1)
	yes, no := new(true), new(false)
	for name, tc := range map[string]struct {
		reason string
		rings  []signature.Keyring
		stores []store.Store
		want   *bool
	}{
		"Good": {reason: "a valid signature", stores: []store.Store{memory{signed(message{body: good})}}, want: yes},
		"ECDSA": {
			reason: "a NIST curve", rings: []signature.Keyring{keyring(t, "c", curve)},
			stores: []store.Store{memory{sign(t, curve, pullSpec)}}, want: yes,
		},
		"EdDSA": {
			reason: "its library does not support the key; another signature may satisfy it",
			rings:  []signature.Keyring{keyring(t, "e", edwards)}, stores: []store.Store{memory{sign(t, edwards, pullSpec)}},
		},
		"SecondBlock": {
			reason: "it reads only the first block", rings: []signature.Keyring{keyring(t, "two", untrusted, a)},
			stores: []store.Store{memory{signed(message{body: good})}},
		},
		"OneOfTwo": {
			reason: "it supports one key of two", rings: []signature.Keyring{ringA, keyring(t, "e", edwards)},
			stores: []store.Store{memory{signed(message{body: good}), sign(t, edwards, pullSpec)}},
		},
		"Expired": {
			reason: "an expired key", rings: []signature.Keyring{keyring(t, "o", old)},
			stores: []store.Store{memory{message{body: good}.bytes(t, old)}}, want: yes,
		},
		"Trailing": {reason: "it ignores data after the claim", stores: []store.Store{memory{claimed(string(good) + "{}")}}, want: yes},
		"Duplicate": {
			reason: "its decoder uses the last one",
			stores: []store.Store{memory{claimed(strings.Replace(string(good), `"image"`, `"image":{},"image"`, 1))}}, want: yes,
		},
		"Case": {
			reason: "its decoder ignores letter case",
			stores: []store.Store{memory{claimed(strings.Replace(string(good), `"image"`, `"IMAGE"`, 1))}}, want: yes,
		},
		"WrongDigest": {reason: "it compares the digest", stores: []store.Store{memory{signed(message{body: claimOf(other)})}}, want: no},
		"Type":        {reason: "it compares the type", stores: []store.Store{memory{claimed(`{"critical":{"type":"a"}}`)}}, want: no},
		"Future": {
			reason: "it does not check the date",
			stores: []store.Store{memory{signed(message{body: good, created: now.Add(24 * time.Hour)})}}, want: yes,
		},
		"FutureOther": {
			reason: "it still compares the digest",
			stores: []store.Store{memory{signed(message{body: claimOf(other), created: now.Add(24 * time.Hour)})}}, want: no,
		},
		"KeyYounger": {
			reason: "it does not compare the dates",
			stores: []store.Store{memory{signed(message{body: good, created: now.Add(-24 * time.Hour)})}}, want: yes,
		},
		"SHA1": {
			reason: "it accepts SHA-1", rings: []signature.Keyring{gpg}, stores: []store.Store{memory{golden(t, "sha1.sig")}},
			want: yes,
		},
		"MD5": {
			reason: "the signer is not verified here", rings: []signature.Keyring{gpg},
			stores: []store.Store{memory{golden(t, "md5.sig")}},
		},
		"SHA1Tampered": {reason: "a forged SHA-1 signature", rings: []signature.Keyring{gpg}, stores: []store.Store{memory{forged}}, want: no},
		"BZIP2": {
			reason: "it decompresses bzip2, which is not done here", rings: []signature.Keyring{gpg},
			stores: []store.Store{memory{golden(t, "bzip2.sig")}},
		},
		"Lifetime": {
			reason: "it checks the lifetime of the signature",
			stores: []store.Store{memory{signed(message{body: good, created: now.Add(-time.Second), lifetime: 1})}}, want: no,
		},
		"Revoked": {
			reason: "it checks revocation", rings: []signature.Keyring{keyring(t, "r", revoked)},
			stores: []store.Store{memory{message{body: good}.bytes(t, revoked)}}, want: no,
		},
		"UntrustedKey": {reason: "the key is not in its keyring", stores: []store.Store{memory{sign(t, untrusted, pullSpec)}}, want: no},
		"None":         {reason: "there is no signature", stores: []store.Store{memory{}}, want: no},
		"Garbage":      {reason: "its parser accepts more, so the result is unknown", stores: []store.Store{memory{[]byte("a")}}},
		"Down": {
			reason: "the store may have a valid signature",
			stores: []store.Store{broken{err: errors.New("down")}, memory{sign(t, untrusted, pullSpec)}},
		},
		"OneIsEnough": {
			reason: "it accepts one signature of two",
			stores: []store.Store{memory{sign(t, untrusted, pullSpec), claimed(string(good) + "1")}}, want: yes,
		},
		"AllKeyrings": {
			reason: "the other keyring has no valid signature", rings: []signature.Keyring{ringA, keyring(t, "s", untrusted)},
			stores: []store.Store{memory{claimed(string(good) + "1")}}, want: no,
		},
		"SHA512": {
			reason: "a longer digest algorithm", stores: []store.Store{memory{signed(message{body: good, hash: crypto.SHA512})}},
			want: yes,
		},
		"SHA3": {
			reason: "a digest algorithm that it does not support",
			stores: []store.Store{memory{signed(message{body: good, hash: crypto.SHA3_256})}},
		},
		"UnknownKeyring": {reason: "without keys the result is unknown", rings: []signature.Keyring{}, stores: []store.Store{memory{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.rings == nil {
				tc.rings = []signature.Keyring{ringA}
			}
			r, err := signature.Verify(t.Context(), pullSpec, signature.Trust{Keyrings: tc.rings, Stores: tc.stores})
			got := r.CVOAccepts()
			if failure, ok := errors.AsType[*refusal.Error](err); ok {
				got = failure.CVOAccepts
				forced, err := signature.Force(pullSpec, failure)
				if err != nil || describe(forced.CVOAccepts()) != describe(got) {
					t.Errorf("%s: force changes the reported acceptance by CVO: %v", tc.reason, err)
				}
			}
			if describe(got) != describe(tc.want) {
				t.Errorf("%s: CVO accepts: %s, want %s (%v)", tc.reason, describe(got), describe(tc.want), err)
			}
		})
	}
}

func describe(accepts *bool) string {
	switch {
	case accepts == nil:
		return "unknown"
	case *accepts:
		return "yes"
	}
	return "no"
}
