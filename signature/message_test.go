package signature_test

import (
	"bytes"
	"cmp"
	"crypto"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/store"
)

func TestVerifyForm(t *testing.T) {
	a := newSigner(t, "a", nil)
	k := keyring(t, "a", a)
	genuine := message{body: claimOf(digest)}
	onePass, literal, sig := genuine.parts(t, a)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	good := join(onePass, literal, sig)
	version3 := bytes.Clone(sig)
	version3[bytes.IndexByte(version3, 4)] = 3
	notLast := bytes.Clone(onePass)
	notLast[len(notLast)-1] = 0
	foreign := bytes.Clone(onePass)
	foreign[len(foreign)-2]++
	textOnePass, _, textSignature := message{body: genuine.body, kind: packet.SigTypeText}.parts(t, a)
	bomb := zip(t, 1, make([]byte, 30<<20))
	for name, tc := range map[string]struct {
		reason string
		data   []byte
		want   string
	}{
		"Plain": {reason: "an uncompressed message", data: good},
		"ZIP":   {reason: "the default compression of gpg", data: zip(t, 1, good)},
		"ZLIB":  {reason: "the other compression of gpg", data: zip(t, 2, good)},
		"Name": {
			reason: "gpg includes the file name",
			data:   message{body: genuine.body, name: "_rpmsig-req-kzY4gZ.bin", date: time.Now()}.bytes(t, a),
		},
		"SHA512":      {reason: "a longer digest algorithm", data: message{body: genuine.body, hash: crypto.SHA512}.bytes(t, a)},
		"Empty":       {reason: "an empty file", data: nil, want: "MalformedSignature"},
		"Text":        {reason: "an error page", data: []byte("<html>not found</html>"), want: "MalformedSignature"},
		"Armored":     {reason: "armor is not the stored form", data: []byte("-----BEGIN PGP MESSAGE-----\n\n"), want: "MalformedSignature"},
		"Short":       {reason: "truncated", data: good[:len(good)-1], want: "MalformedSignature"},
		"Trailing":    {reason: "a packet after the signature", data: join(good, literal), want: "MalformedSignature"},
		"Garbage":     {reason: "bytes after the signature", data: join(good, []byte{0}), want: "MalformedSignature"},
		"ManyPackets": {reason: "too many packets", data: bytes.Repeat(literal, 100), want: "MalformedSignature"},
		"Unsigned":    {reason: "literal data alone", data: literal, want: "MalformedSignature"},
		"NoOnePass":   {reason: "the old packet order", data: join(sig, literal), want: "MalformedSignature"},
		"Detached":    {reason: "a signature alone", data: sig, want: "MalformedSignature"},
		"TwoLiterals": {reason: "ambiguous signed data", data: join(onePass, literal, literal, sig), want: "MalformedSignature"},
		"NotLast":     {reason: "the one-pass packet announces more signatures", data: join(notLast, literal, sig), want: "MalformedSignature"},
		"Announced":   {reason: "the one-pass packet names another key", data: join(foreign, literal, sig), want: "MalformedSignature"},
		"TextFormat":  {reason: "CVO ignores the format of the literal packet", data: message{body: genuine.body, format: 't'}.bytes(t, a)},
		"UTF8Format":  {reason: "CVO ignores the format of the literal packet", data: message{body: genuine.body, format: 'u'}.bytes(t, a)},
		"Format": {
			reason: "OpenPGP defines no format x", data: message{body: genuine.body, format: 'x'}.bytes(t, a),
			want: "MalformedSignature",
		},
		"FileName": {reason: "a path as file name", data: message{body: genuine.body, name: "../a"}.bytes(t, a), want: "MalformedSignature"},
		"Date": {
			reason: "dated long before it was signed", data: message{body: genuine.body, date: time.Unix(1e9, 0)}.bytes(t, a),
			want: "MalformedSignature",
		},
		"Nested": {reason: "compressed twice", data: zip(t, 1, zip(t, 1, good)), want: "MalformedSignature"},
		"ZIPTrailing": {
			reason: "bytes after the compressed data", data: newPacket(8, append(zip(t, 1, good)[6:], 0)),
			want: "MalformedSignature",
		},
		"ZIPBroken": {reason: "invalid compressed data", data: newPacket(8, []byte{1, 0xff, 0xff}), want: "MalformedSignature"},
		"ZIPEmpty":  {reason: "missing compression algorithm", data: newPacket(8, nil), want: "MalformedSignature"},
		"Bomb":      {reason: "30 MiB in 30 KiB", data: bomb, want: "TooLarge"},
		"Large":     {reason: "more than 64 KiB uncompressed", data: newPacket(11, make([]byte, 64<<10)), want: "TooLarge"},
		"BZIP2": {
			reason: "bzip2 is rejected without decompression", data: newPacket(8, []byte("\x03BZh9")),
			want: "UnsupportedSignature",
		},
		"Version3":      {reason: "the library cannot verify version 3", data: join(onePass, literal, version3), want: "UnsupportedSignature"},
		"Version3First": {reason: "version 3 in the old packet order", data: join(version3, literal), want: "UnsupportedSignature"},
		"TextKind": {
			reason: "a signature of text, as made by gpg --textmode",
			data:   message{body: append(genuine.body, "\r\n"...), kind: packet.SigTypeText, format: 't'}.bytes(t, a),
		},
		"TextBody": {
			reason: "a replaced body of a signed text", data: join(textOnePass, literalOf(claimOf(other)), textSignature),
			want: "InvalidSignature",
		},
		"CertKind": {
			reason: "a signature of a key is not a signature of a document",
			data:   message{body: genuine.body, kind: packet.SigTypeGenericCert}.bytes(t, a), want: "UnsupportedSignature",
		},
		"Notation": {
			reason: "an unsupported critical notation", data: message{body: genuine.body, notation: true}.bytes(t, a),
			want: "UnsupportedSignature",
		},
		"OtherBody": {reason: "a replaced body", data: join(onePass, literalOf(claimOf(other)), sig), want: "InvalidSignature"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := verify(t, k, tc.data)
			check(t, tc.reason, tc.want, r, err)
		})
	}
}

// literalOf is the literal packet of body.
func literalOf(body []byte) []byte {
	return newPacket(11, append([]byte{'b', 0, 0, 0, 0, 0}, body...))
}

// TestVerifyGPG verifies signatures made by gpg 2.2, in testdata.
func TestVerifyGPG(t *testing.T) {
	for name, tc := range map[string]struct{ reason, file, key, want string }{
		"Text":  {reason: "a file, signed with --textmode", file: "text.sig", key: "textkey.asc"},
		"ZIP":   {reason: "a file, as gpg signs by default", file: "sha256.sig"},
		"ZLIB":  {reason: "signed from a pipe with ZLIB compression", file: "zlib.sig"},
		"Plain": {reason: "signed from a pipe in partial lengths, uncompressed", file: "stdin.sig"},
		"BZIP2": {reason: "bzip2 is not supported", file: "bzip2.sig", want: "UnsupportedSignature"},
		"SHA1":  {reason: "SHA-1 can be forged", file: "sha1.sig", want: "WeakDigest"},
		"MD5":   {reason: "MD5 can be forged", file: "md5.sig", want: "WeakDigest"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := verify(t, gpgKeyring(t, cmp.Or(tc.key, "key.asc")), golden(t, tc.file))
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

// gpgKeyring has a key that signatures in testdata were made with.
func gpgKeyring(tb testing.TB, file string) signature.Keyring {
	tb.Helper()
	k, err := signature.ReadKeyring("gpg", bytes.NewReader(golden(tb, file)))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// TestVerifyEveryByte changes every bit and byte of a signature: no change may
// verify.
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
		"Valid":         {reason: "the claim of a release", claim: good},
		"NoOptional":    {reason: "the optional part is optional", claim: replace(`,"optional":{"creator":"test","timestamp":1740064108}`, "")},
		"Digest":        {reason: "another release", claim: replace(digest, other), want: "WrongDigest"},
		"DigestMissing": {reason: "no digest", claim: replace(`"docker-manifest-digest":"`+digest+`"`, ""), want: "WrongDigest"},
		"DigestCase": {
			reason: "a key in other letter case", claim: replace("docker-manifest-digest", "Docker-Manifest-Digest"),
			want: "FieldCase",
		},
		"DigestTwice": {
			reason: "two digests", claim: replace(`"image":{`, `"image":{"docker-manifest-digest":"`+digest+`",`),
			want: "DuplicateField",
		},
		"DigestNumber": {reason: "a digest that is not a string", claim: replace(`"`+digest+`"`, "1"), want: "InvalidClaim"},
		"Type": {
			reason: "the type of a sigstore claim", claim: replace("atomic container", "cosign container image"),
			want: "InvalidClaim",
		},
		"TypeMissing":     {reason: "no type", claim: replace(`"type":"atomic container signature",`, ""), want: "InvalidClaim"},
		"Identity":        {reason: "an empty identity", claim: replace(reference, ""), want: "InvalidClaim"},
		"IdentityMissing": {reason: "no identity", claim: replace(`,"identity":{"docker-reference":"`+reference+`"}`, ""), want: "InvalidClaim"},
		"CriticalNull":    {reason: "no critical part", claim: `{"critical":null}`, want: "InvalidClaim"},
		"CriticalTwice":   {reason: "two critical parts", claim: replace(`{"critical"`, `{"critical":{},"critical"`), want: "DuplicateField"},
		"Unknown": {
			reason: "an unknown field, which CVO also rejects", claim: replace(`"creator"`, `"a":1,"creator"`),
			want: "InvalidClaim",
		},
		"UnknownCritical": {reason: "an unknown critical field", claim: replace(`"type"`, `"a":1,"type"`), want: "InvalidClaim"},
		"Timestamp":       {reason: "a timestamp that is not a number", claim: replace("1740064108", `"now"`), want: "InvalidClaim"},
		"TypeNull":        {reason: "a type that is null", claim: replace(`"atomic container signature"`, "null"), want: "InvalidClaim"},
		"TypeNumber":      {reason: "a type that is not a string", claim: replace(`"atomic container signature"`, "1"), want: "InvalidClaim"},
		"TypeTwice":       {reason: "two types", claim: replace(`"type"`, `"type":"atomic container signature","type"`), want: "DuplicateField"},
		"TypeCase":        {reason: "the type in other letter case", claim: replace(`"type"`, `"Type"`), want: "FieldCase"},
		"ImageNull": {
			reason: "an image that is null", claim: replace(`{"docker-manifest-digest":"`+digest+`"}`, "null"),
			want: "WrongDigest",
		},
		"ImageMissing": {reason: "no image", claim: replace(`"image":{"docker-manifest-digest":"`+digest+`"},`, ""), want: "WrongDigest"},
		"ImageText": {
			reason: "an image that is not an object", claim: replace(`{"docker-manifest-digest":"`+digest+`"}`, `"`+digest+`"`),
			want: "InvalidClaim",
		},
		"DigestUpper":    {reason: "the same digest in upper case", claim: replace(digest, strings.ToUpper(digest)), want: "WrongDigest"},
		"DigestNull":     {reason: "a digest that is null", claim: replace(`"`+digest+`"`, "null"), want: "WrongDigest"},
		"IdentityNumber": {reason: "an identity that is not a string", claim: replace(`"`+reference+`"`, "1"), want: "InvalidClaim"},
		"IdentityTwice": {
			reason: "two identities", claim: replace(`"docker-reference"`, `"docker-reference":"a","docker-reference"`),
			want: "DuplicateField",
		},
		"CriticalMissing": {reason: "only the optional part", claim: `{"optional":{}}`, want: "InvalidClaim"},
		"CriticalText":    {reason: "a critical part that is not an object", claim: `{"critical":"a"}`, want: "InvalidClaim"},
		"CriticalCase":    {reason: "the critical part in other letter case", claim: replace(`"critical"`, `"CRITICAL"`), want: "FieldCase"},
		"OptionalNull":    {reason: "an optional part that is null", claim: replace(`{"creator":"test","timestamp":1740064108}`, "null")},
		"OptionalText": {
			reason: "an optional part that is not an object", claim: replace(`{"creator":"test","timestamp":1740064108}`, `"a"`),
			want: "InvalidClaim",
		},
		"OptionalTwice": {reason: "two optional parts", claim: replace(`"optional"`, `"optional":{},"optional"`), want: "DuplicateField"},
		"Creator":       {reason: "a creator that is not a string", claim: replace(`"test"`, "1"), want: "InvalidClaim"},
		"TimestampHuge": {reason: "a timestamp beyond the integer range", claim: replace("1740064108", "1e300"), want: "InvalidClaim"},
		"TopLevel": {
			reason: "an unknown field beside the two parts", claim: replace(`"optional"`, `"a":1,"optional"`),
			want: "InvalidClaim",
		},
		"Null":         {reason: "null", claim: "null", want: "InvalidClaim"},
		"Long":         {reason: "a type of 32 KiB is truncated", claim: replace("atomic", strings.Repeat("a", 32<<10)), want: "InvalidClaim"},
		"Newline":      {reason: "a trailing newline is allowed", claim: good + "\n"},
		"TrailingText": {reason: "text after the JSON", claim: good + "a", want: "TrailingData"},
		"Trailing":     {reason: "a second JSON value", claim: good + "{}", want: "TrailingData"},
		"Array":        {reason: "not an object", claim: "[" + good + "]", want: "InvalidClaim"},
		"Empty":        {reason: "empty content", claim: "", want: "InvalidClaim"},
		"Deep":         {reason: "deeply nested", claim: strings.Repeat("[", 20000), want: "InvalidClaim"},
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
	revoked, recent, unlimited := newSigner(t, "revoked", nil), newSigner(t, "young", nil),
		newSigner(t, "forever", &packet.Config{Time: at(48 * time.Hour)})
	revoke(t, revoked)
	for name, tc := range map[string]struct {
		reason  string
		data    []byte
		keyring signature.Keyring
		want    string
		warned  bool
	}{
		"KeyExpiredSince": {
			reason: "CVO also accepts an expired key", keyring: keyring(t, "k", expired),
			data: message{body: claimOf(digest), created: at(30 * time.Hour)()}.bytes(t, expired), warned: true,
		},
		"KeyExpiredBefore": {
			reason: "signed after the provider extended the key, with the old keyring", keyring: keyring(t, "k", expired),
			data: message{body: claimOf(digest)}.bytes(t, expired), warned: true,
		},
		"KeyYounger": {
			reason: "signed before the key was created", keyring: keyring(t, "k", recent),
			data: message{body: claimOf(digest), created: at(time.Hour)()}.bytes(t, recent), want: "KeyNotYetValid",
		},
		"KeyRevoked": {
			reason: "the keyring holds a revocation of the key", keyring: keyring(t, "k", revoked),
			data: message{body: claimOf(digest)}.bytes(t, revoked), want: "KeyRevoked",
		},
		"SignatureExpired": {
			reason: "valid for an hour, a day ago", keyring: keyring(t, "k", unlimited),
			data: message{body: claimOf(digest), created: at(24 * time.Hour)(), lifetime: 3600}.bytes(t, unlimited), want: "SignatureExpired",
		},
		"SignatureValid": {
			reason: "valid for two days, a day ago", keyring: keyring(t, "k", unlimited),
			data: message{body: claimOf(digest), created: at(24 * time.Hour)(), lifetime: 48 * 3600}.bytes(t, unlimited),
		},
		"SignatureFuture": {
			reason: "dated tomorrow", keyring: keyring(t, "k", unlimited),
			data: message{body: claimOf(digest), created: at(-24 * time.Hour)()}.bytes(t, unlimited), want: "SignatureNotYetValid",
		},
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

// The clock of the cluster is used, not that of this machine.
func TestVerifyByAnotherClock(t *testing.T) {
	const apart = 2 * time.Hour
	for name, tc := range map[string]struct {
		reason string
		now    time.Time // the zero time is the clock of this machine
		made   time.Time
		want   string
	}{
		"Here":  {reason: "made now", made: time.Now()},
		"Ahead": {reason: "the cluster's clock is ahead", now: time.Now().Add(apart), made: time.Now().Add(apart)},
		"Behind": {
			reason: "the cluster's clock is behind the signature", now: time.Now().Add(-apart), made: time.Now(),
			want: "SignatureNotYetValid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			signer := newSigner(t, "a", &packet.Config{Time: func() time.Time { return time.Now().Add(-2 * apart) }})
			r, err := signature.Verify(t.Context(), pullSpec, signature.Trust{
				Keyrings: []signature.Keyring{keyring(t, "a", signer)},
				Stores:   []store.Store{memory{message{body: claimOf(digest), created: tc.made}.bytes(t, signer)}}, Now: tc.now,
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
		"RSA":     {reason: "the key type of Red Hat", config: &packet.Config{RSABits: 3072}},
		"ECDSA":   {reason: "a NIST curve", config: &packet.Config{Algorithm: packet.PubKeyAlgoECDSA, Curve: packet.CurveNistP256}},
		"EdDSA":   {reason: "the default key type of gpg", config: &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}},
		"Ed25519": {reason: "the Ed25519 key type of RFC 9580", config: &packet.Config{Algorithm: packet.PubKeyAlgoEd25519}},
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
		Stores:   []store.Store{broken{err: cause}},
	})
	if !errors.Is(err, cause) {
		t.Errorf("error %v does not wrap the error of the store", err)
	}
}
