package payload

import (
	"cmp"
	"context"
	"errors"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openshift/update-preflight/runner/ocimanifest"
)

// manifestLayer finds the layer that holds the release's manifests: the last
// one, which "oc adm release new" appends. In an index, every architecture has
// the same (openshift/oc pkg/cli/image/append).
func (f *fetcher) manifestLayer(ctx context.Context) (ocispec.Descriptor, error) {
	content, err := f.manifest(ctx, f.image.DigestStr())
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	manifest, err := ocimanifest.Parse(content)
	if err == nil && manifest.IsIndex() {
		manifest, err = f.child(ctx, manifest)
	}
	if err != nil {
		return ocispec.Descriptor{}, unusable(err)
	}
	layer := manifest.Layers[len(manifest.Layers)-1]
	return layer, unusable(ocimanifest.CheckDescriptor(layer, "the last layer", maxLayer))
}

// child reads the image of one architecture out of an index.
func (f *fetcher) child(ctx context.Context, index ocimanifest.Manifest) (ocimanifest.Manifest, error) {
	image, err := f.choose(index)
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	content, err := f.manifest(ctx, image.Digest.String())
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	return ocimanifest.Image(image, content)
}

// choose takes the image for the cluster's architecture; where that is unknown,
// the one for amd64, else the first.
func (f *fetcher) choose(index ocimanifest.Manifest) (ocispec.Descriptor, error) {
	images, err := index.Images(cmp.Or(f.architecture, "amd64"))
	if refused, ok := errors.AsType[*ocimanifest.Error](err); ok && f.architecture == "" && refused.Reason == ocimanifest.ArchitectureMissing {
		images, err = index.Images()
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return images[0], nil
}

// unusable makes the error for a manifest that must not be used.
func unusable(err error) error {
	refused, ok := errors.AsType[*ocimanifest.Error](err)
	if !ok {
		return err
	}
	failure := refuse(string(refused.Reason), "%s", refused.Message)
	switch refused.Reason {
	case ocimanifest.SchemaVersion1:
		failure.Remediation = "Mirror the release again, to a registry that keeps manifests as they are: oc adm release mirror"
	case ocimanifest.ArchitectureMissing:
		failure.Message += "; the control plane of this cluster has this architecture"
		failure.Remediation = "Choose the release for this architecture, or the multi-architecture one; on a mirror, mirror it with all architectures: oc adm release mirror --keep-manifest-list"
	}
	return failure
}
