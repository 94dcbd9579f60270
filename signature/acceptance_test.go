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
)

// TestCVOAccepts holds what is said of CVO against what library-go pkg/verify
// was measured to do.
func TestCVOAccepts(t *testing.T) {
	curved := &packet.Config{Algorithm: packet.PubKeyAlgoECDSA, Curve: packet.CurveNistP256}
	a, stranger, revoked, curve := newSigner(t, "a", nil), newSigner(t, "stranger", curved), newSigner(t, "revoked", curved), newSigner(t, "curve", curved)
	edwards := newSigner(t, "edwards", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	now := time.Now()
	old := newSigner(t, "old", &packet.Config{Time: func() time.Time { return now.Add(-48 * time.Hour) }, KeyLifetimeSecs: 3600})
	revoke(t, revoked)
	good := claimOf(digest)
	signed := func(m message) []byte { return m.bytes(t, a) }
	claimed := func(claim string) []byte { return signed(message{body: []byte(claim)}) }
	ringA := keyring(t, "a", a)
	gpg := gpgKeyring(t)
	forged := bytes.Replace(golden(t, "sha1.sig"), []byte{0xd1}, []byte{0xd2}, 1)
	yes, no := new(true), new(false)
	for name, tc := range map[string]struct {
		reason string
		rings  []signature.Keyring
		stores []signature.Store
		want   *bool
	}{
		"Good":           {reason: "an honest signature", stores: []signature.Store{memory{signed(message{body: good})}}, want: yes},
		"ECDSA":          {reason: "a NIST curve", rings: []signature.Keyring{keyring(t, "c", curve)}, stores: []signature.Store{memory{sign(t, curve, pullSpec)}}, want: yes},
		"EdDSA":          {reason: "a key that its library does not know; another signature may do", rings: []signature.Keyring{keyring(t, "e", edwards)}, stores: []signature.Store{memory{sign(t, edwards, pullSpec)}}},
		"SecondBlock":    {reason: "a key that it does not read", rings: []signature.Keyring{keyring(t, "two", stranger, a)}, stores: []signature.Store{memory{signed(message{body: good})}}},
		"OneOfTwo":       {reason: "one key of two it cannot use", rings: []signature.Keyring{ringA, keyring(t, "e", edwards)}, stores: []signature.Store{memory{signed(message{body: good}), sign(t, edwards, pullSpec)}}},
		"Expired":        {reason: "an expired key", rings: []signature.Keyring{keyring(t, "o", old)}, stores: []signature.Store{memory{message{body: good}.bytes(t, old)}}, want: yes},
		"Trailing":       {reason: "it stops reading behind the JSON", stores: []signature.Store{memory{claimed(string(good) + "{}")}}, want: yes},
		"Duplicate":      {reason: "the last one counts for it", stores: []signature.Store{memory{claimed(strings.Replace(string(good), `"image"`, `"image":{},"image"`, 1))}}, want: yes},
		"Case":           {reason: "letter case does not count for it", stores: []signature.Store{memory{claimed(strings.Replace(string(good), `"image"`, `"IMAGE"`, 1))}}, want: yes},
		"WrongDigest":    {reason: "it compares the digest", stores: []signature.Store{memory{signed(message{body: claimOf(other)})}}, want: no},
		"Type":           {reason: "it compares the type", stores: []signature.Store{memory{claimed(`{"critical":{"type":"a"}}`)}}, want: no},
		"Future":         {reason: "it does not mind the date", stores: []signature.Store{memory{signed(message{body: good, created: now.Add(24 * time.Hour)})}}, want: yes},
		"FutureOther":    {reason: "it minds the digest all the same", stores: []signature.Store{memory{signed(message{body: claimOf(other), created: now.Add(24 * time.Hour)})}}, want: no},
		"KeyYounger":     {reason: "it does not compare the dates", stores: []signature.Store{memory{signed(message{body: good, created: now.Add(-24 * time.Hour)})}}, want: yes},
		"SHA1":           {reason: "it takes SHA-1", rings: []signature.Keyring{gpg}, stores: []signature.Store{memory{golden(t, "sha1.sig")}}, want: yes},
		"MD5":            {reason: "nobody looked who made it", rings: []signature.Keyring{gpg}, stores: []signature.Store{memory{golden(t, "md5.sig")}}},
		"SHA1Tampered":   {reason: "SHA-1 by nobody", rings: []signature.Keyring{gpg}, stores: []signature.Store{memory{forged}}, want: no},
		"BZIP2":          {reason: "it unpacks it, and here nobody did", rings: []signature.Keyring{gpg}, stores: []signature.Store{memory{golden(t, "bzip2.sig")}}},
		"Lifetime":       {reason: "it minds the end of the signature", stores: []signature.Store{memory{signed(message{body: good, created: now.Add(-time.Second), lifetime: 1})}}, want: no},
		"Revoked":        {reason: "it minds revocation", rings: []signature.Keyring{keyring(t, "r", revoked)}, stores: []signature.Store{memory{message{body: good}.bytes(t, revoked)}}, want: no},
		"Stranger":       {reason: "it does not know the key", stores: []signature.Store{memory{sign(t, stranger, pullSpec)}}, want: no},
		"None":           {reason: "there is none", stores: []signature.Store{memory{}}, want: no},
		"Garbage":        {reason: "its reader is laxer, and nobody asked it", stores: []signature.Store{memory{[]byte("a")}}},
		"Down":           {reason: "the store may have a good one", stores: []signature.Store{broken{err: errors.New("down")}, memory{sign(t, stranger, pullSpec)}}},
		"OneIsEnough":    {reason: "one that it takes, one that it does not", stores: []signature.Store{memory{sign(t, stranger, pullSpec), claimed(string(good) + "1")}}, want: yes},
		"AllKeyrings":    {reason: "the other keyring has none", rings: []signature.Keyring{ringA, keyring(t, "s", stranger)}, stores: []signature.Store{memory{claimed(string(good) + "1")}}, want: no},
		"SHA512":         {reason: "a longer digest", stores: []signature.Store{memory{signed(message{body: good, hash: crypto.SHA512})}}, want: yes},
		"SHA3":           {reason: "a digest that it does not know", stores: []signature.Store{memory{signed(message{body: good, hash: crypto.SHA3_256})}}},
		"UnknownKeyring": {reason: "no keys at all are a matter of this machine", rings: []signature.Keyring{}, stores: []signature.Store{memory{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.rings == nil {
				tc.rings = []signature.Keyring{ringA}
			}
			r, err := signature.Verify(t.Context(), pullSpec, signature.Trust{Keyrings: tc.rings, Stores: tc.stores})
			got := r.CVOAccepts()
			if failure, ok := errors.AsType[*signature.Error](err); ok {
				got = failure.CVOAccepts()
				forced, err := signature.Force(pullSpec, failure)
				if err != nil || spell(forced.CVOAccepts()) != spell(got) {
					t.Errorf("%s: force changes what CVO makes of it: %v", tc.reason, err)
				}
			}
			if spell(got) != spell(tc.want) {
				t.Errorf("%s: CVO accepts: %s, want %s (%v)", tc.reason, spell(got), spell(tc.want), err)
			}
		})
	}
}

func spell(accepts *bool) string {
	switch {
	case accepts == nil:
		return "not known"
	case *accepts:
		return "yes"
	}
	return "no"
}
