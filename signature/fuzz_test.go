package signature_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
)

// FuzzSignature verifies arbitrary bytes as a signature of an unsigned digest:
// they never verify, and every error is complete.
func FuzzSignature(f *testing.F) {
	for _, name := range []string{"sha256.sig", "zlib.sig", "stdin.sig", "sha1.sig", "md5.sig", "bzip2.sig"} {
		f.Add(golden(f, name))
	}
	f.Add(zip(f, 1, make([]byte, 1<<20)))
	trust := signature.Trust{Keyrings: []signature.Keyring{gpgKeyring(f, "key.asc")}}
	f.Fuzz(func(t *testing.T, data []byte) {
		trust.Stores = []store.Store{memory{data}}
		r, err := signature.Verify(t.Context(), repository+"@"+other, trust)
		var e *refusal.Error
		if !errors.As(err, &e) || r.Verified() {
			t.Fatalf("verified %x", data)
		}
		if e.Reason == (refusal.Reason{}) || e.Message == "" || e.Remediation == "" || e.Outcome == "" {
			t.Errorf("incomplete error: %+v", e)
		}
	})
}

// FuzzClaim signs arbitrary content with a trusted key. Only a claim that every
// JSON parser reads as a claim for the digest may verify.
func FuzzClaim(f *testing.F) {
	signer := newSigner(f, "a", nil)
	k := keyring(f, "a", signer)
	f.Add(claimOf(digest))
	f.Add(claimOf(other))
	f.Add([]byte(`{"critical":{"image":{"docker-manifest-digest":1}}}{}`))
	f.Fuzz(func(t *testing.T, claim []byte) {
		data, err := signer.SignMessage(claim, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := verify(t, k, data); err != nil {
			return
		}
		var read struct {
			Critical struct {
				Image map[string]string `json:"image"`
			} `json:"critical"`
		}
		if err := json.Unmarshal(claim, &read); err != nil {
			t.Fatalf("verified %q, which is not JSON: %v", claim, err)
		}
		if got := read.Critical.Image["docker-manifest-digest"]; got != digest {
			t.Errorf("verified %q, which claims %q", claim, got)
		}
	})
}

// FuzzKeyring verifies with arbitrary bytes as the keyring.
func FuzzKeyring(f *testing.F) {
	f.Add(golden(f, "key.asc"))
	f.Add(append(golden(f, "key.asc"), golden(f, "key.asc")...))
	f.Add(binaryKey(f, newSigner(f, "a", nil).Entity()))
	signed := golden(f, "sha256.sig")
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := signature.ReadKeyring("fuzz", bytes.NewReader(data))
		var e *refusal.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error %v is not an *Error", err)
		}
		if err != nil {
			return
		}
		_, err = signature.Verify(t.Context(), repository+"@"+other, signature.Trust{
			Keyrings: []signature.Keyring{k}, Stores: []store.Store{memory{signed}},
		})
		if err == nil {
			t.Errorf("verified with keyring %x", data)
		}
	})
}
