package signature_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/openshift/update-preflight/signature"
)

func TestReadKeyring(t *testing.T) {
	a, b, c := newSigner(t, "a", nil), newSigner(t, "b", nil), newSigner(t, "c", nil)
	armored := func(s interface{ PublicKey() ([]byte, error) }) string {
		key, err := s.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return string(key) + "\n"
	}
	binary := string(binaryKey(t, a.Entity())) + string(binaryKey(t, b.Entity()))
	for name, tc := range map[string]struct{ reason, text, want string }{
		"One":     {reason: "an armored key", text: armored(b)},
		"Blocks":  {reason: "every armor block is read; CVO reads only the first", text: armored(a) + "a comment\n" + armored(c) + armored(b)},
		"Binary":  {reason: "gpg --export without --armor", text: binary},
		"CRLF":    {reason: "Windows line ends", text: strings.ReplaceAll(armored(b), "\n", "\r\n")},
		"Other":   {reason: "the keyring lacks the signing key", text: armored(a), want: "UnknownKey"},
		"Empty":   {reason: "no key at all", text: "", want: "InvalidKeyring"},
		"Text":    {reason: "a file that is not a keyring", text: "key", want: "InvalidKeyring"},
		"Private": {reason: "a private key is not accepted", text: strings.ReplaceAll(armored(b), "PUBLIC", "PRIVATE"), want: "InvalidKeyring"},
		"Broken": {
			reason: "one invalid block invalidates the keyring", text: armored(b) + "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!\n",
			want: "InvalidKeyring",
		},
		"NoKey": {
			reason: "a block with a signature in it",
			text:   "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\niQ==\n-----END PGP PUBLIC KEY BLOCK-----\n", want: "InvalidKeyring",
		},
		"Unusable": {
			reason: "a key of an algorithm that is not supported", text: unusable(t, binaryKey(t, b.Entity())),
			want: "UnsupportedKeyring",
		},
		"Partly": {
			reason: "the signer may be the unsupported key",
			text:   string(binaryKey(t, a.Entity())) + unusable(t, binaryKey(t, b.Entity())), want: "UnsupportedSignature",
		},
		"Large": {reason: "above 1 MiB", text: strings.Repeat(" ", 1<<20+1), want: "InvalidKeyring"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := signature.ReadKeyring("test", strings.NewReader(tc.text))
			if err != nil {
				check(t, tc.reason, tc.want, signature.Release{}, err)
				if !strings.Contains(err.Error(), `"test"`) {
					t.Errorf("%s: error %q does not name the keyring", tc.reason, err)
				}
				return
			}
			r, err := verify(t, k, sign(t, b, pullSpec))
			check(t, tc.reason, tc.want, r, err)
		})
	}
}

// unusable is a binary key with its primary key's algorithm changed to an
// unassigned one.
func unusable(t *testing.T, key []byte) string {
	t.Helper()
	changed := bytes.Clone(key)
	// Header with a length of two bytes, version, four bytes of time, algorithm.
	if changed[1] < 192 || changed[3] != 4 || changed[8] != 1 {
		t.Fatalf("not an RSA key packet: % x", changed[:9])
	}
	changed[8] = 99
	return string(changed)
}

func TestReadKeyringReportsReadErrors(t *testing.T) {
	cause := errors.New("disk on fire")
	_, err := signature.ReadKeyring("test", io.MultiReader(strings.NewReader("a"), iotest.ErrReader(cause)))
	if !errors.Is(err, cause) {
		t.Errorf("error %v, want one that wraps %v", err, cause)
	}
}

func TestKeyringRejectsOtherUses(t *testing.T) {
	signer := newSigner(t, "a", nil)
	for _, identity := range signer.Entity().Identities {
		identity.SelfSignature.FlagSign = false
		if err := identity.SelfSignature.SignUserId(identity.Name, signer.Entity().PrimaryKey, signer.Entity().PrivateKey, nil); err != nil {
			t.Fatal(err)
		}
	}
	r, err := verify(t, keyring(t, "a", signer), message{body: claimOf(digest)}.bytes(t, signer))
	check(t, "a key whose flags exclude signing", "UnknownKey", r, err)
}
