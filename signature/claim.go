package signature

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"strings"

	"sigs.k8s.io/json"
)

// claimType is the type of a simple-signing claim that OpenPGP signs.
const claimType = "atomic container signature"

// maxQuotedClaim bounds what is quoted of a claim, in bytes.
const maxQuotedClaim = 512

// claim is the content of a signature (containers/image
// docs/containers-signature.5.md), with the fields that CVO knows (library-go
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

// readClaim returns what the signed bytes say that digest is. They are read as
// CVO reads them, and then so that no other reading is left.
func readClaim(body []byte, digest string) (string, *Error) {
	// The rules of encoding/json, which CVO goes by, are what is wanted here.
	decoder := stdjson.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var c claim
	if err := decoder.Decode(&c); err != nil {
		return "", newError(reasonInvalidClaim, "what is signed is not the JSON of an image signature: %q", quotable(err.Error()))
	}
	reference := c.Critical.Identity.Reference
	switch {
	case c.Critical.Type != claimType:
		return "", newError(reasonInvalidClaim, "what is signed is of type %q, not %q", quotable(c.Critical.Type), claimType)
	case reference == "":
		return "", newError(reasonInvalidClaim, "what is signed does not name an image")
	case c.Critical.Image.Digest != digest:
		return "", newError(reasonWrongDigest, "it signs %q, which is %q", quotable(c.Critical.Image.Digest), quotable(reference))
	}
	if rest := bytes.TrimSpace(body[decoder.InputOffset():]); len(rest) > 0 {
		return "", newError(reasonTrailingData, "%d bytes follow the signed JSON", len(rest))
	}
	return reference, checkFields(body)
}

// checkFields makes sure that every field is there once, and written as it
// should be.
func checkFields(body []byte) *Error {
	var c claim
	ambiguous, err := json.UnmarshalStrict(body, &c)
	switch {
	case err != nil:
		return newError(reasonInvalidClaim, "what is signed is not the JSON of an image signature: %q", quotable(err.Error()))
	case len(ambiguous) == 0:
		return nil
	case strings.HasPrefix(ambiguous[0].Error(), "duplicate field"):
		return newError(reasonDuplicateField, "what is signed says something twice: %q", quotable(errors.Join(ambiguous...).Error()))
	}
	return newError(reasonFieldCase, "what is signed has fields in other letter case: %q", quotable(errors.Join(ambiguous...).Error()))
}

// quotable cuts what is quoted of a claim.
func quotable(text string) string {
	if len(text) > maxQuotedClaim {
		return text[:maxQuotedClaim] + "..."
	}
	return text
}
