package imagepolicy

import (
	stdjson "encoding/json"
	"errors"

	"sigs.k8s.io/json"
)

// claimType is the type of a claim that sigstore signs.
const claimType = "cosign container image signature"

// claim is what a signature says: that digest is an image of that name.
type claim struct {
	digest, identity string
}

// readClaim reads the JSON of a signature exactly, as the nodes do: all fields,
// no others, none twice; what is optional may have more, or be null
// (containers/image signature/internal/sigstore_payload.go).
func readClaim(payload []byte) (claim, *refusal) {
	var c struct {
		Critical *struct {
			Type  *string `json:"type"`
			Image *struct {
				Digest *string `json:"docker-manifest-digest"`
			} `json:"image"`
			Identity *struct {
				Reference *string `json:"docker-reference"`
			} `json:"identity"`
		} `json:"critical"`
		Optional stdjson.RawMessage `json:"optional"`
	}
	strict, err := json.UnmarshalStrict(payload, &c)
	if err == nil {
		err = errors.Join(strict...)
	}
	critical := c.Critical
	switch {
	case err != nil:
		return claim{}, refuse("InvalidSigstoreClaim", "what is signed is not the JSON of an image signature: %q", quotable(err.Error()))
	case critical == nil, critical.Type == nil, critical.Image == nil, critical.Identity == nil, len(c.Optional) == 0:
		return claim{}, refuse("InvalidSigstoreClaim", "what is signed lacks one of critical.type, critical.image, critical.identity and optional")
	case critical.Image.Digest == nil, critical.Identity.Reference == nil:
		return claim{}, refuse("InvalidSigstoreClaim", "what is signed lacks one of docker-manifest-digest and docker-reference")
	case *critical.Type != claimType:
		return claim{}, refuse("InvalidSigstoreClaim", "what is signed is of type %q, not %q", quotable(*critical.Type), claimType)
	}
	return claim{digest: *critical.Image.Digest, identity: *critical.Identity.Reference}, readOptional(c.Optional)
}

// readOptional makes sure of the fields that are known.
func readOptional(raw []byte) *refusal {
	var optional *struct {
		Creator   *string `json:"creator"`
		Timestamp *int64  `json:"timestamp"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &optional); err != nil {
		return refuse("InvalidSigstoreClaim", "the optional part of what is signed is not as it must be: %q", quotable(err.Error()))
	}
	return nil
}
