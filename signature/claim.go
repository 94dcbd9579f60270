package signature

import (
	"errors"

	"sigs.k8s.io/json"
)

// claimType is the type of a simple-signing claim that OpenPGP signs.
const claimType = "atomic container signature"

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

// checkClaim makes sure that the signed bytes speak of digest, and leave no
// room for another reading.
func checkClaim(body []byte, digest string) *Error {
	var c claim
	strict, err := json.UnmarshalStrict(body, &c)
	if err == nil {
		err = errors.Join(strict...)
	}
	switch {
	case err != nil:
		return newError(reasonInvalidClaim, "what is signed is not the JSON of an image signature: %q", err.Error())
	case c.Critical.Type != claimType:
		return newError(reasonInvalidClaim, "what is signed is of type %q, not %q", c.Critical.Type, claimType)
	case c.Critical.Identity.Reference == "":
		return newError(reasonInvalidClaim, "what is signed does not name an image")
	case c.Critical.Image.Digest != digest:
		return newError(reasonWrongDigest, "it signs %q, which is %q", c.Critical.Image.Digest, c.Critical.Identity.Reference)
	}
	return nil
}
