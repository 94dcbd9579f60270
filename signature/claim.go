package signature

import (
	"bytes"
	"crypto"
	stdjson "encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"sigs.k8s.io/json"

	"github.com/openshift/update-preflight/signature/refusal"
)

// claimType is the type of a simple-signing claim that OpenPGP signs.
const claimType = "atomic container signature"

// maxClaimText bounds the text of a claim repeated in a message, in bytes.
const maxClaimText = 512

// claim is the content of a signature (containers/image
// docs/containers-signature.5.md), with the fields that CVO reads (library-go
// pkg/verify/verify.go).
type claim struct {
	Critical struct {
		Type  string `json:"type"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
	} `json:"critical"`
	Optional struct {
		Creator   string `json:"creator"`
		Timestamp int64  `json:"timestamp"`
	} `json:"optional"`
}

// readClaim returns the reference that the signature claim gives to digest. It is
// parsed as CVO parses it, then checked for ambiguity.
func readClaim(body []byte, digest string) (string, *refusal.Error) {
	// CVO decodes with encoding/json, so the same rules apply here.
	decoder := stdjson.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var c claim
	if err := decoder.Decode(&c); err != nil {
		return "", refusal.New(refusal.ReasonInvalidClaim, "the signed content is not a JSON signature claim: %q", truncate(err.Error()))
	}
	reference := c.Critical.Identity.Reference
	switch {
	case c.Critical.Type != claimType:
		return "", refusal.New(refusal.ReasonInvalidClaim, "the signature claim has type %q, not %q", truncate(c.Critical.Type), claimType)
	case reference == "":
		return "", refusal.New(refusal.ReasonInvalidClaim, "the signature claim names no image")
	case c.Critical.Image.Digest != digest:
		return "", refusal.New(refusal.ReasonWrongDigest, "the signature claim is for digest %q of %q", truncate(c.Critical.Image.Digest), truncate(reference))
	}
	if rest := bytes.TrimSpace(body[decoder.InputOffset():]); len(rest) > 0 {
		return "", refusal.New(refusal.ReasonTrailingData, "%d bytes follow the signature claim", len(rest))
	}
	return reference, checkFields(body)
}

// checkFields requires every field of the claim at most once and in its exact letter case.
func checkFields(body []byte) *refusal.Error {
	var c claim
	ambiguous, err := json.UnmarshalStrict(body, &c)
	switch {
	case err != nil:
		return refusal.New(refusal.ReasonInvalidClaim, "the signed content is not a JSON signature claim: %q", truncate(err.Error()))
	case len(ambiguous) == 0:
		return nil
	case strings.HasPrefix(ambiguous[0].Error(), "duplicate field"):
		return refusal.New(refusal.ReasonDuplicateField, "the signature claim has a duplicate field: %q", truncate(errors.Join(ambiguous...).Error()))
	}
	return refusal.New(refusal.ReasonFieldCase, "the signature claim has fields in unexpected letter case: %q", truncate(errors.Join(ambiguous...).Error()))
}

// truncate cuts text of a claim to maxClaimText bytes.
func truncate(text string) string {
	if len(text) > maxClaimText {
		return text[:maxClaimText] + "..."
	}
	return text
}

// maxClockSkew is how far in the future a signature may be dated.
const maxClockSkew = 10 * time.Minute

// isStrong is true for digest algorithms without known collisions.
func isStrong(hash crypto.Hash) bool {
	switch hash { //nolint:exhaustive // no other algorithm is strong enough
	case crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512:
		return true
	}
	return false
}

// checkValidity checks everything that can invalidate a signature, except the
// expiration of the key: clusters keep the keyring that they were installed with
// when the provider extends a key. The library's own check does not fit: it
// rejects an expired key before it checks the lifetime of the signature.
func checkValidity(key *openpgp.Key, sig *packet.Signature, now time.Time) *refusal.Error {
	primary, identity := key.Entity.PrimarySelfSignature()
	signatures := []*packet.Signature{sig, primary, key.SelfSignature, key.SelfSignature.EmbeddedSignature}
	for _, s := range signatures {
		if notation := unknownNotation(s); notation != "" {
			return refusal.New(refusal.ReasonUnsupportedSignature, "has the unsupported critical notation %q", notation)
		}
	}
	id := key.PublicKey.KeyId
	switch {
	case key.Entity.Revoked(now), key.Revoked(now), identity != nil && identity.Revoked(now):
		return refusal.New(refusal.ReasonKeyRevoked, "made by key %016X, which is revoked", id)
	case sig.CreationTime.After(now.Add(maxClockSkew)):
		return refusal.New(refusal.ReasonNotYetValid, "dated %s, in the future; the current time is %s",
			sig.CreationTime.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case isOver(sig, now):
		return refusal.New(refusal.ReasonSignatureExpired, "the lifetime of the signature made %s has ended", sig.CreationTime.UTC().Format(time.RFC3339))
	case sig.CreationTime.Before(key.Entity.PrimaryKey.CreationTime), sig.CreationTime.Before(key.PublicKey.CreationTime):
		return refusal.New(refusal.ReasonKeyNotYetValid, "made %s by key %016X, which was created later", sig.CreationTime.UTC().Format(time.RFC3339), id)
	}
	return nil
}

// isExpired is true when the key or its primary key has expired at a time.
func isExpired(key *openpgp.Key, at time.Time) bool {
	primary, _ := key.Entity.PrimarySelfSignature()
	return key.Entity.PrimaryKey.KeyExpired(primary, at) || key.PublicKey.KeyExpired(key.SelfSignature, at)
}

// isOver is true when the lifetime of the signature has ended.
func isOver(sig *packet.Signature, now time.Time) bool {
	if sig.SigLifetimeSecs == nil || *sig.SigLifetimeSecs == 0 {
		return false
	}
	return now.After(sig.CreationTime.Add(time.Duration(*sig.SigLifetimeSecs) * time.Second))
}

// unknownNotation is the first critical notation of sig; none is supported.
func unknownNotation(sig *packet.Signature) string {
	if sig == nil {
		return ""
	}
	for _, notation := range sig.Notations {
		if notation.IsCritical {
			return notation.Name
		}
	}
	return ""
}
