package signature_test

import (
	"bytes"
	"crypto"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/openshift/update-preflight/signature"
)

func TestVerifyForm(t *testing.T) {
	a := newSigner(t, "a", nil)
	k := keyring(t, "a", a)
	honest := message{body: claimOf(digest)}
	onePass, literal, sig := honest.parts(t, a)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	good := join(onePass, literal, sig)
	version3 := bytes.Clone(sig)
	version3[bytes.IndexByte(version3, 4)] = 3
	notLast := bytes.Clone(onePass)
	notLast[len(notLast)-1] = 0
	foreign := bytes.Clone(onePass)
	foreign[len(foreign)-2]++
	bomb := zip(t, 1, make([]byte, 30<<20))
	for name, tc := range map[string]struct {
		reason string
		data   []byte
		want   string
	}{
		"Plain":         {reason: "not compressed is fine", data: good},
		"ZIP":           {reason: "as gpg does by default", data: zip(t, 1, good)},
		"ZLIB":          {reason: "gpg's other choice", data: zip(t, 2, good)},
		"Name":          {reason: "gpg writes the name of the file", data: message{body: honest.body, name: "_rpmsig-req-kzY4gZ.bin", date: time.Now()}.bytes(t, a)},
		"SHA512":        {reason: "a longer digest is fine", data: message{body: honest.body, hash: crypto.SHA512}.bytes(t, a)},
		"Empty":         {reason: "an empty file", data: nil, want: "MalformedSignature"},
		"Text":          {reason: "an error page", data: []byte("<html>not found</html>"), want: "MalformedSignature"},
		"Armored":       {reason: "armor is not the stored form", data: []byte("-----BEGIN PGP MESSAGE-----\n\n"), want: "MalformedSignature"},
		"Short":         {reason: "cut short", data: good[:len(good)-1], want: "MalformedSignature"},
		"Trailing":      {reason: "a packet behind the signature", data: join(good, literal), want: "MalformedSignature"},
		"Garbage":       {reason: "bytes behind the signature", data: join(good, []byte{0}), want: "MalformedSignature"},
		"ManyPackets":   {reason: "packets without end", data: bytes.Repeat(literal, 100), want: "MalformedSignature"},
		"Unsigned":      {reason: "literal data alone", data: literal, want: "MalformedSignature"},
		"NoOnePass":     {reason: "the old order", data: join(sig, literal), want: "MalformedSignature"},
		"Detached":      {reason: "a signature alone", data: sig, want: "MalformedSignature"},
		"TwoLiterals":   {reason: "which one is signed", data: join(onePass, literal, literal, sig), want: "MalformedSignature"},
		"NotLast":       {reason: "announces more signatures", data: join(notLast, literal, sig), want: "MalformedSignature"},
		"Announced":     {reason: "announces another key's signature", data: join(foreign, literal, sig), want: "MalformedSignature"},
		"Format":        {reason: "text would be signed in another way", data: message{body: honest.body, format: 't'}.bytes(t, a), want: "MalformedSignature"},
		"FileName":      {reason: "a path as file name", data: message{body: honest.body, name: "../a"}.bytes(t, a), want: "MalformedSignature"},
		"Date":          {reason: "dated long before it was signed", data: message{body: honest.body, date: time.Unix(1e9, 0)}.bytes(t, a), want: "MalformedSignature"},
		"Nested":        {reason: "compressed twice", data: zip(t, 1, zip(t, 1, good)), want: "MalformedSignature"},
		"ZIPTrailing":   {reason: "bytes behind the compressed data", data: newPacket(8, append(zip(t, 1, good)[6:], 0)), want: "MalformedSignature"},
		"ZIPBroken":     {reason: "not compressed at all", data: newPacket(8, []byte{1, 0xff, 0xff}), want: "MalformedSignature"},
		"ZIPEmpty":      {reason: "no compression algorithm", data: newPacket(8, nil), want: "MalformedSignature"},
		"Bomb":          {reason: "30 MiB in 30 KiB", data: bomb, want: "TooLarge"},
		"Large":         {reason: "above 64 KiB as it is", data: newPacket(11, make([]byte, 64<<10)), want: "TooLarge"},
		"BZIP2":         {reason: "bzip2 is not even started", data: newPacket(8, []byte("\x03BZh9")), want: "UnsupportedSignature"},
		"Version3":      {reason: "the library cannot verify version 3", data: join(onePass, literal, version3), want: "UnsupportedSignature"},
		"Version3First": {reason: "version 3 in the old order", data: join(version3, literal), want: "UnsupportedSignature"},
		"TextKind":      {reason: "a signature of text ignores line ends", data: message{body: honest.body, kind: packet.SigTypeText}.bytes(t, a), want: "UnsupportedSignature"},
		"Notation":      {reason: "a critical notation that nobody knows", data: message{body: honest.body, notation: true}.bytes(t, a), want: "UnsupportedSignature"},
		"OtherBody":     {reason: "another body under the signature", data: join(onePass, literalOf(claimOf(other)), sig), want: "InvalidSignature"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := verify(t, k, tc.data)
			check(t, tc.reason, tc.want, r, err)
		})
	}
}

// literalOf is the literal packet of body alone.
func literalOf(body []byte) []byte {
	return newPacket(11, append([]byte{'b', 0, 0, 0, 0, 0}, body...))
}

// TestVerifyGPG verifies what gpg 2.2 made; testdata has its output.
func TestVerifyGPG(t *testing.T) {
	k := gpgKeyring(t)
	for name, tc := range map[string]struct{ reason, file, want string }{
		"ZIP":   {reason: "a file, as gpg signs by default", file: "sha256.sig"},
		"ZLIB":  {reason: "from a pipe, with the other compression", file: "zlib.sig"},
		"Plain": {reason: "from a pipe, in partial lengths, without compression", file: "stdin.sig"},
		"BZIP2": {reason: "bzip2 packs bombs too well", file: "bzip2.sig", want: "UnsupportedSignature"},
		"SHA1":  {reason: "SHA-1 can be forged", file: "sha1.sig", want: "WeakDigest"},
		"MD5":   {reason: "MD5 can be forged by anybody", file: "md5.sig", want: "WeakDigest"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := verify(t, k, golden(t, tc.file))
			check(t, tc.reason, tc.want, r, err)
		})
	}
}

func golden(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// gpgKeyring holds the key that the signatures in testdata were made with.
func gpgKeyring(tb testing.TB) signature.Keyring {
	tb.Helper()
	k, err := signature.ReadKeyring("gpg", bytes.NewReader(golden(tb, "key.asc")))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// TestVerifyEveryByte changes every byte of a signature, in every bit and as a
// whole: none of it may pass.
func TestVerifyEveryByte(t *testing.T) {
	a := newSigner(t, "a", nil)
	k := keyring(t, "a", a)
	data := sign(t, a, pullSpec)
	for i := range data {
		for _, change := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
			changed := bytes.Clone(data)
			changed[i] ^= change
			if _, err := verify(t, k, changed); err == nil {
				t.Errorf("verified with byte %d of %d changed from %#02x to %#02x", i, len(data), data[i], changed[i])
			}
		}
	}
}

func TestVerifyClaim(t *testing.T) {
	a := newSigner(t, "a", nil)
	k := keyring(t, "a", a)
	good := string(claimOf(digest))
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the claim has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, tc := range map[string]struct{ reason, claim, want string }{
		"Honest":          {reason: "the claim as signers write it", claim: good},
		"NoOptional":      {reason: "the optional part is optional", claim: replace(`,"optional":{"creator":"test","timestamp":1740064108}`, "")},
		"Digest":          {reason: "another release", claim: replace(digest, other), want: "WrongDigest"},
		"DigestMissing":   {reason: "no digest", claim: replace(`"docker-manifest-digest":"`+digest+`"`, ""), want: "WrongDigest"},
		"DigestCase":      {reason: "a key in other letter case", claim: replace("docker-manifest-digest", "Docker-Manifest-Digest"), want: "FieldCase"},
		"DigestTwice":     {reason: "two digests", claim: replace(`"image":{`, `"image":{"docker-manifest-digest":"`+digest+`",`), want: "DuplicateField"},
		"DigestNumber":    {reason: "a digest that is no string", claim: replace(`"`+digest+`"`, "1"), want: "InvalidClaim"},
		"Type":            {reason: "the type of a sigstore claim", claim: replace("atomic container", "cosign container image"), want: "InvalidClaim"},
		"TypeMissing":     {reason: "no type", claim: replace(`"type":"atomic container signature",`, ""), want: "InvalidClaim"},
		"Identity":        {reason: "an empty identity", claim: replace(reference, ""), want: "InvalidClaim"},
		"IdentityMissing": {reason: "no identity", claim: replace(`,"identity":{"docker-reference":"`+reference+`"}`, ""), want: "InvalidClaim"},
		"CriticalNull":    {reason: "no critical part", claim: `{"critical":null}`, want: "InvalidClaim"},
		"CriticalTwice":   {reason: "two critical parts", claim: replace(`{"critical"`, `{"critical":{},"critical"`), want: "DuplicateField"},
		"Unknown":         {reason: "a field that CVO does not know either", claim: replace(`"creator"`, `"a":1,"creator"`), want: "InvalidClaim"},
		"UnknownCritical": {reason: "an unknown critical field", claim: replace(`"type"`, `"a":1,"type"`), want: "InvalidClaim"},
		"Timestamp":       {reason: "a time that is no number", claim: replace("1740064108", `"now"`), want: "InvalidClaim"},
		"TypeNull":        {reason: "a type that is null", claim: replace(`"atomic container signature"`, "null"), want: "InvalidClaim"},
		"TypeNumber":      {reason: "a type that is no string", claim: replace(`"atomic container signature"`, "1"), want: "InvalidClaim"},
		"TypeTwice":       {reason: "two types", claim: replace(`"type"`, `"type":"atomic container signature","type"`), want: "DuplicateField"},
		"TypeCase":        {reason: "the type in other letter case", claim: replace(`"type"`, `"Type"`), want: "FieldCase"},
		"ImageNull":       {reason: "an image that is null", claim: replace(`{"docker-manifest-digest":"`+digest+`"}`, "null"), want: "WrongDigest"},
		"ImageMissing":    {reason: "no image", claim: replace(`"image":{"docker-manifest-digest":"`+digest+`"},`, ""), want: "WrongDigest"},
		"ImageText":       {reason: "an image that is no object", claim: replace(`{"docker-manifest-digest":"`+digest+`"}`, `"`+digest+`"`), want: "InvalidClaim"},
		"DigestUpper":     {reason: "the same digest in upper case", claim: replace(digest, strings.ToUpper(digest)), want: "WrongDigest"},
		"DigestNull":      {reason: "a digest that is null", claim: replace(`"`+digest+`"`, "null"), want: "WrongDigest"},
		"IdentityNumber":  {reason: "an identity that is no string", claim: replace(`"`+reference+`"`, "1"), want: "InvalidClaim"},
		"IdentityTwice":   {reason: "two identities", claim: replace(`"docker-reference"`, `"docker-reference":"a","docker-reference"`), want: "DuplicateField"},
		"CriticalMissing": {reason: "nothing but what is optional", claim: `{"optional":{}}`, want: "InvalidClaim"},
		"CriticalText":    {reason: "a critical part that is no object", claim: `{"critical":"a"}`, want: "InvalidClaim"},
		"CriticalCase":    {reason: "the critical part in other letter case", claim: replace(`"critical"`, `"CRITICAL"`), want: "FieldCase"},
		"OptionalNull":    {reason: "an optional part that is null", claim: replace(`{"creator":"test","timestamp":1740064108}`, "null")},
		"OptionalText":    {reason: "an optional part that is no object", claim: replace(`{"creator":"test","timestamp":1740064108}`, `"a"`), want: "InvalidClaim"},
		"OptionalTwice":   {reason: "two optional parts", claim: replace(`"optional"`, `"optional":{},"optional"`), want: "DuplicateField"},
		"Creator":         {reason: "a creator that is no string", claim: replace(`"test"`, "1"), want: "InvalidClaim"},
		"TimestampHuge":   {reason: "a time that no integer holds", claim: replace("1740064108", "1e300"), want: "InvalidClaim"},
		"TopLevel":        {reason: "an unknown field beside the two parts", claim: replace(`"optional"`, `"a":1,"optional"`), want: "InvalidClaim"},
		"Null":            {reason: "null", claim: "null", want: "InvalidClaim"},
		"Long":            {reason: "a type of 32 KiB is not repeated in full", claim: replace("atomic", strings.Repeat("a", 32<<10)), want: "InvalidClaim"},
		"Newline":         {reason: "a newline at the end is fine", claim: good + "\n"},
		"TrailingText":    {reason: "text behind the JSON", claim: good + "a", want: "TrailingData"},
		"Trailing":        {reason: "something behind the JSON", claim: good + "{}", want: "TrailingData"},
		"Array":           {reason: "not an object", claim: "[" + good + "]", want: "InvalidClaim"},
		"Empty":           {reason: "nothing is signed", claim: "", want: "InvalidClaim"},
		"Deep":            {reason: "deeply nested", claim: strings.Repeat("[", 20000), want: "InvalidClaim"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := a.SignMessage([]byte(tc.claim), nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := verify(t, k, data)
			check(t, tc.reason, tc.want, r, err)
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("%s: message of %d bytes", tc.reason, len(err.Error()))
			}
		})
	}
}

func TestVerifyValidity(t *testing.T) {
	now := time.Now()
	at := func(age time.Duration) func() time.Time { return func() time.Time { return now.Add(-age) } }
	expired := newSigner(t, "expired", &packet.Config{Time: at(48 * time.Hour), KeyLifetimeSecs: 24 * 3600})
	revoked, young, forever := newSigner(t, "revoked", nil), newSigner(t, "young", nil), newSigner(t, "forever", &packet.Config{Time: at(48 * time.Hour)})
	revoke(t, revoked)
	for name, tc := range map[string]struct {
		reason  string
		data    []byte
		keyring signature.Keyring
		want    string
		warned  bool
	}{
		"KeyExpiredSince":  {reason: "CVO accepts it too", keyring: keyring(t, "k", expired), data: message{body: claimOf(digest), created: at(30 * time.Hour)()}.bytes(t, expired), warned: true},
		"KeyExpiredBefore": {reason: "signed with a key that the provider has prolonged, which the keyring does not know", keyring: keyring(t, "k", expired), data: message{body: claimOf(digest)}.bytes(t, expired), warned: true},
		"KeyYounger":       {reason: "signed before the key was made", keyring: keyring(t, "k", young), data: message{body: claimOf(digest), created: at(time.Hour)()}.bytes(t, young), want: "KeyNotYetValid"},
		"KeyRevoked":       {reason: "the keyring says that the key is revoked", keyring: keyring(t, "k", revoked), data: message{body: claimOf(digest)}.bytes(t, revoked), want: "KeyRevoked"},
		"SignatureExpired": {reason: "valid for an hour, a day ago", keyring: keyring(t, "k", forever), data: message{body: claimOf(digest), created: at(24 * time.Hour)(), lifetime: 3600}.bytes(t, forever), want: "SignatureExpired"},
		"SignatureValid":   {reason: "valid for two days, a day ago", keyring: keyring(t, "k", forever), data: message{body: claimOf(digest), created: at(24 * time.Hour)(), lifetime: 48 * 3600}.bytes(t, forever)},
		"SignatureFuture":  {reason: "dated tomorrow", keyring: keyring(t, "k", forever), data: message{body: claimOf(digest), created: at(-24 * time.Hour)()}.bytes(t, forever), want: "SignatureNotYetValid"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := verify(t, tc.keyring, tc.data)
			check(t, tc.reason, tc.want, r, err)
			if warned := len(r.Warnings()) > 0; warned != tc.warned {
				t.Errorf("%s: warnings %q, want some: %v", tc.reason, r.Warnings(), tc.warned)
			}
		})
	}
}

// A cluster's clock counts, and not that of the machine on which it is asked.
func TestVerifyByAnotherClock(t *testing.T) {
	const apart = 2 * time.Hour
	for name, tc := range map[string]struct {
		reason string
		now    time.Time // the zero time is the clock of this machine
		made   time.Time
		want   string
	}{
		"Here":   {reason: "made now", made: time.Now()},
		"Ahead":  {reason: "made now, where it is later than here", now: time.Now().Add(apart), made: time.Now().Add(apart)},
		"Behind": {reason: "made later than it is there", now: time.Now().Add(-apart), made: time.Now(), want: "SignatureNotYetValid"},
	} {
		t.Run(name, func(t *testing.T) {
			signer := newSigner(t, "a", &packet.Config{Time: func() time.Time { return time.Now().Add(-2 * apart) }})
			r, err := signature.Verify(t.Context(), pullSpec, signature.Trust{
				Keyrings: []signature.Keyring{keyring(t, "a", signer)},
				Stores:   []signature.Store{memory{message{body: claimOf(digest), created: tc.made}.bytes(t, signer)}}, Now: tc.now,
			})
			check(t, tc.reason, tc.want, r, err)
		})
	}
}

func TestVerifyAlgorithms(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		config *packet.Config
	}{
		"RSA":     {reason: "what Red Hat signs with", config: &packet.Config{RSABits: 3072}},
		"ECDSA":   {reason: "a NIST curve", config: &packet.Config{Algorithm: packet.PubKeyAlgoECDSA, Curve: packet.CurveNistP256}},
		"EdDSA":   {reason: "what gpg makes by default", config: &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}},
		"Ed25519": {reason: "what RFC 9580 has for it", config: &packet.Config{Algorithm: packet.PubKeyAlgoEd25519}},
	} {
		t.Run(name, func(t *testing.T) {
			signer := newSigner(t, "a", tc.config)
			r, err := verify(t, keyring(t, "a", signer), sign(t, signer, pullSpec))
			check(t, tc.reason, "", r, err)
		})
	}
}

func TestErrorUnwraps(t *testing.T) {
	cause := errors.New("cause")
	_, err := signature.Verify(t.Context(), pullSpec, signature.Trust{
		Keyrings: []signature.Keyring{keyring(t, "a", newSigner(t, "a", nil))},
		Stores:   []signature.Store{broken{err: cause}},
	})
	if !errors.Is(err, cause) {
		t.Errorf("error %v does not wrap the error of the store", err)
	}
}
