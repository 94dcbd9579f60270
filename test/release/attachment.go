package release

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/signature"
)

// Attachment is a sigstore signature, as cosign attaches it to an image.
type Attachment struct {
	// Payload is the signed content.
	Payload []byte
	// Signature is in base64; empty means no signature.
	Signature string
	// MediaType of the layer; empty means the one of cosign.
	MediaType types.MediaType
}

// SignImage signs the claim that digest ("sha256:…") is the image with the reference,
// as `cosign sign` does.
func SignImage(signer signature.Signer, digest, reference string) (Attachment, error) {
	payload, err := json.Marshal(map[string]any{
		"critical": critical{
			Type:     "cosign container image signature",
			Image:    map[string]string{"docker-manifest-digest": digest},
			Identity: map[string]string{"docker-reference": reference},
		},
		"optional": nil,
	})
	if err != nil {
		return Attachment{}, fmt.Errorf("sign %q: %w", reference, err)
	}
	return SignPayload(signer, payload)
}

// SignPayload signs any payload.
func SignPayload(signer signature.Signer, payload []byte) (Attachment, error) {
	signed, err := signer.SignMessage(bytes.NewReader(payload))
	if err != nil {
		return Attachment{}, fmt.Errorf("sign a payload: %w", err)
	}
	return Attachment{Payload: payload, Signature: base64.StdEncoding.EncodeToString(signed)}, nil
}

// Attach pushes the signatures of the image with a digest to a repository, and replaces
// the present ones.
func Attach(ctx context.Context, repository, digest string, attachments ...Attachment) error {
	target, err := name.NewRepository(repository)
	if err != nil {
		return fmt.Errorf("attach to %q: %w", repository, err)
	}
	image := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	for _, attachment := range attachments {
		if image, err = attachment.appendTo(image); err != nil {
			return fmt.Errorf("attach to %q: %w", repository, err)
		}
	}
	tag := target.Tag(strings.Replace(digest, ":", "-", 1) + ".sig")
	if err := remote.Write(tag, image, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("attach to %q: %w", repository, err)
	}
	return nil
}

func (a Attachment) appendTo(image v1.Image) (v1.Image, error) {
	mediaType := a.MediaType
	if mediaType == "" {
		mediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	}
	addendum := mutate.Addendum{Layer: static.NewLayer(a.Payload, mediaType), MediaType: mediaType}
	if a.Signature != "" {
		addendum.Annotations = map[string]string{"dev.cosignproject.cosign/signature": a.Signature}
	}
	return mutate.Append(image, addendum)
}
