package signature

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"strings"

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
