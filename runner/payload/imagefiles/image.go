package imagefiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

// layers returns the chosen layers, from the cache if they are complete
// there, else from the first place that has them. Content that does not match its
// digest is final: nodes would not try another place either.
func (f *fetcher) layers(ctx context.Context, access *registry.Access) ([][]byte, error) {
	content, err := f.visit(ctx)
	if !errors.Is(err, errNotCached) {
		return content, err
	}
	_, err = access.Try(ctx, f.image.String(), func(ctx context.Context, visit registry.Visit) error {
		f.place, err = repository.Open(ctx, visit.Reference.Context(), visit.Auth, metered{read: &f.read, next: visit.Transport})
		if err == nil {
			content, err = f.visit(ctx)
		}
		return err
	})
	if err != nil {
		return nil, unreadable(err, fmt.Sprintf("%s %q", f.what, f.image.String()))
	}
	return content, nil
}

// visit reads the image and its chosen layers at one place.
func (f *fetcher) visit(ctx context.Context) ([][]byte, error) {
	descriptors, err := f.descriptors(ctx)
	if err != nil {
		return nil, err
	}
	contents := make([][]byte, 0, len(descriptors))
	for _, descriptor := range descriptors {
		content, err := f.blob(ctx, descriptor)
		if err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	return contents, nil
}

// descriptors returns the chosen layers of the image. In an index, every architecture
// has the same manifests (openshift/oc pkg/cli/image/append).
func (f *fetcher) descriptors(ctx context.Context) ([]ocispec.Descriptor, error) {
	content, err := f.manifest(ctx, f.image.DigestStr())
	if err != nil {
		return nil, err
	}
	manifest, err := ocimanifest.Parse(content)
	if err == nil && manifest.IsIndex() {
		manifest, err = f.child(ctx, manifest)
	}
	if err != nil {
		return nil, unusable(err)
	}
	return f.choice(manifest)
}

func (f *fetcher) child(ctx context.Context, index ocimanifest.Manifest) (ocimanifest.Manifest, error) {
	image, err := f.choose(index)
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	content, err := f.manifest(ctx, image.Digest.String())
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	if f.architecture != "" {
		f.chosen = image.Digest.String()
	}
	return ocimanifest.Image(image, content)
}

// choose selects the image for the cluster's architecture; if that is unknown, the one for amd64, else the first.
func (f *fetcher) choose(index ocimanifest.Manifest) (ocispec.Descriptor, error) {
	images, err := index.Images(cmp.Or(f.architecture, "amd64"))
	if rejected, ok := errors.AsType[*ocimanifest.Violation](err); ok && f.architecture == "" && rejected.Reason == ocimanifest.ReasonArchitectureMissing {
		images, err = index.Images()
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return images[0], nil
}

// Resolve returns the pull spec by digest to which a pull spec currently
// resolves: at the cluster's mirrors of tags, then at the repository that it
// names. The result depends on all users who may push there and is not trusted:
// verify it. A pull spec by digest is returned unchanged. The error is always an *Error.
func Resolve(ctx context.Context, pullSpec string, access *registry.Access) (string, error) {
	reference, err := name.ParseReference(pullSpec)
	if digest, ok := reference.(name.Digest); ok && err == nil {
		return digest.String(), nil
	}
	var resolved string
	_, err = access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		place, err := repository.Open(ctx, visit.Reference.Context(), visit.Auth, visit.Transport)
		if err == nil {
			resolved, err = place.Resolve(ctx, visit.Reference.Identifier())
		}
		return err
	})
	if err != nil {
		return "", unreadable(err, "the image \""+words.External(pullSpec)+"\"")
	}
	// The result names the repository of the pull spec, even if a mirror resolved the tag.
	return reference.Context().Digest(resolved).String(), nil
}
