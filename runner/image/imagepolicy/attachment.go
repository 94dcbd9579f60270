package imagepolicy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/types"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

const (
	// signatureType and signatureAnnotation make a layer of the attachment a
	// signature (cosign specs/SIGNATURE_SPEC.md).
	signatureType       = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"

	maxPayload    = 64 << 10
	maxSignatures = 64
)

var errMalformed = errors.New("not a sigstore signature")

type attached struct {
	payload   []byte
	signature string
}

func signatureTag(digest string) string {
	return strings.Replace(digest, ":", "-", 1) + ".sig"
}

type visit struct {
	place Place
	at    *repository.Repository
}

func newVisit(ctx context.Context, place Place) (*visit, error) {
	at, err := repository.Open(ctx, place.Repository, place.Auth, place.Transport)
	return &visit{place: place, at: at}, err
}

func (v *visit) manifest(ctx context.Context, digest string) (ocimanifest.Manifest, error) {
	content, err := v.at.Manifest(ctx, digest)
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	return ocimanifest.Parse(content)
}

// signatures returns the signatures of the manifest with a digest, and whether it has
// more than maxSignatures. If it has none, the error is one of go-containerregistry or
// errMalformed.
func (v *visit) signatures(ctx context.Context, digest string) (found []attached, more bool, err error) {
	content, mediaType, err := v.at.Tagged(ctx, signatureTag(digest))
	if errors.Is(err, repository.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", errMalformed, err)
	}
	if err != nil {
		return nil, false, err
	}
	m, err := ocimanifest.Parse(content)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("%w: %w", errMalformed, err)
	case mediaType != types.OCIManifestSchema1 || m.IsIndex():
		return nil, false, fmt.Errorf("%w: its manifest is %q instead of an OCI image", errMalformed, words.External(string(mediaType)))
	}
	for _, layer := range m.Layers {
		if layer.MediaType != signatureType {
			continue
		}
		if len(found) == maxSignatures {
			return found, true, nil
		}
		payload, err := v.payload(ctx, layer)
		if err != nil {
			return nil, false, err
		}
		found = append(found, attached{payload: payload, signature: layer.Annotations[signatureAnnotation]})
	}
	if len(found) == 0 {
		return nil, false, fmt.Errorf("%w: it has no layer of type %s", errMalformed, signatureType)
	}
	return found, false, nil
}

func (v *visit) payload(ctx context.Context, layer ocispec.Descriptor) ([]byte, error) {
	if err := ocimanifest.CheckDescriptor(layer, "a layer", maxPayload); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	content, err := v.at.Blob(ctx, layer.Digest.String(), layer.Size)
	if repository.IsMissing(err) || errors.Is(err, repository.ErrMismatch) {
		err = fmt.Errorf("%w: a layer is not in the repository: %w", errMalformed, err)
	}
	return content, err
}

// maxArchitectures bounds how many images of one list are verified.
const maxArchitectures = 16

// instances are the digests of the images in a list that nodes would pull.
func instances(list ocimanifest.Manifest, architectures []string) ([]string, error) {
	images, err := list.Images(architectures...)
	if err != nil {
		return nil, err
	}
	var digests, found []string
	for _, image := range images {
		digests = append(digests, image.Digest.String())
		found = append(found, image.Platform.Architecture)
	}
	if len(digests) > maxArchitectures {
		return nil, fmt.Errorf("the index has %d images for linux, more than %d: %s", len(digests), maxArchitectures, words.External(strings.Join(found, ", ")))
	}
	return digests, nil
}
