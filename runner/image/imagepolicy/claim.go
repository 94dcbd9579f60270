package imagepolicy

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/words"
)

// claimType is the type of a claim that sigstore signs.
const claimType = "cosign container image signature"

type claim struct {
	digest, identity string
}

// readClaim reads the JSON of a signature exactly, as the nodes do: all fields,
// no others, none twice; what is optional may have more, or be null
// (containers/image signature/internal/sigstore_payload.go).
func readClaim(payload []byte) (claim, *violation) {
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
		return claim{}, violates(reasonInvalidSigstoreClaim, "the signed content is not a JSON signature claim: %q", words.External(err.Error()))
	case critical == nil, critical.Type == nil, critical.Image == nil, critical.Identity == nil, len(c.Optional) == 0:
		return claim{}, violates(reasonInvalidSigstoreClaim, "the signature claim lacks one of critical.type, critical.image, critical.identity and optional")
	case critical.Image.Digest == nil, critical.Identity.Reference == nil:
		return claim{}, violates(reasonInvalidSigstoreClaim, "the signature claim lacks one of docker-manifest-digest and docker-reference")
	case *critical.Type != claimType:
		return claim{}, violates(reasonInvalidSigstoreClaim, "the signature claim has type %q, not %q", words.External(*critical.Type), claimType)
	}
	return claim{digest: *critical.Image.Digest, identity: *critical.Identity.Reference}, readOptional(c.Optional)
}

// readOptional checks the types of the known optional fields.
func readOptional(raw []byte) *violation {
	var optional *struct {
		Creator   *string `json:"creator"`
		Timestamp *int64  `json:"timestamp"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &optional); err != nil {
		return violates(reasonInvalidSigstoreClaim, "the optional part of the signature claim is invalid: %q", words.External(err.Error()))
	}
	return nil
}

// Place is a repository of an image, and how to reach it. Auth and Transport are required.
type Place struct {
	Repository name.Repository
	// Mirror is false for the repository that the pull spec names.
	Mirror    bool
	Auth      authn.Authenticator
	Transport http.RoundTripper
}

// Puller resolves the repositories from which the nodes pull.
type Puller interface {
	// Pull calls visit for one place after the other that the nodes would pull
	// the image from, until visit returns no error. An error of go-containerregistry
	// means that the image is not available there.
	Pull(ctx context.Context, pullSpec string, visit func(context.Context, Place) error) error
}
