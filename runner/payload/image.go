package payload

import (
	"cmp"
	"context"
	"errors"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/ocimanifest"
)

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

// lastLayer is the layer that holds the manifests of a release: "oc adm release new"
// appends it.
func lastLayer(manifest ocimanifest.Manifest) ([]ocispec.Descriptor, error) {
	layer := manifest.Layers[len(manifest.Layers)-1]
	return []ocispec.Descriptor{layer}, unusable(ocimanifest.CheckDescriptor(layer, "the last layer", maxLayer))
}

// child reads the image of one architecture in an index.
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

// choose selects the image for the cluster's architecture; if that is unknown,
// the one for amd64, else the first.
func (f *fetcher) choose(index ocimanifest.Manifest) (ocispec.Descriptor, error) {
	images, err := index.Images(cmp.Or(f.architecture, "amd64"))
	if rejected, ok := errors.AsType[*ocimanifest.Error](err); ok && f.architecture == "" && rejected.Reason == ocimanifest.ReasonArchitectureMissing {
		images, err = index.Images()
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return images[0], nil
}

// unusable returns the error for a manifest that must not be used.
func unusable(err error) error {
	rejected, ok := errors.AsType[*ocimanifest.Error](err)
	if !ok {
		return err
	}
	failure := reject(rejected.Reason, "%s", rejected.Message)
	switch rejected.Reason { //nolint:exhaustive // the other reasons have the common remedy
	case ocimanifest.ReasonSchemaVersion1:
		failure.Remediation = "Mirror the release again, to a registry that preserves manifests."
	case ocimanifest.ReasonArchitectureMissing:
		failure.Message += ", the architecture of the control plane"
		failure.Remediation = "Choose the release for this architecture, or the multi-architecture release; on a mirror, mirror it with all architectures."
		failure.Actions = []finding.Action{finding.Run("oc adm release mirror --keep-manifest-list")}
	}
	return failure
}
