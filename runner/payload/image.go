package payload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// imageManifest is what matters here of the two kinds of manifest: an image
// has layers, an index has manifests.
type imageManifest struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     types.MediaType `json:"mediaType"`
	Layers        []v1.Descriptor `json:"layers"`
	Manifests     []v1.Descriptor `json:"manifests"`
}

// manifestLayer finds the layer that holds the release's manifests: the last
// one, which "oc adm release new" appends. In an index, every architecture has
// the same (openshift/oc pkg/cli/image/append).
func (f *fetcher) manifestLayer(ctx context.Context) (v1.Descriptor, error) {
	content, err := f.manifest(ctx, f.image.DigestStr())
	if err != nil {
		return v1.Descriptor{}, err
	}
	manifest, err := parseImageManifest(content)
	if err != nil {
		return v1.Descriptor{}, err
	}
	if len(manifest.Manifests) > 0 {
		manifest, err = f.child(ctx, manifest)
	}
	if err != nil {
		return v1.Descriptor{}, err
	}
	if len(manifest.Layers) == 0 {
		return v1.Descriptor{}, refuse("NotARelease", "the image %q has no layers", f.image.String())
	}
	layer := manifest.Layers[len(manifest.Layers)-1]
	return layer, checkDescriptor(layer, "the last layer", maxLayer)
}

// child reads the image of one architecture out of an index.
func (f *fetcher) child(ctx context.Context, index imageManifest) (imageManifest, error) {
	descriptor, err := choose(index.Manifests, f.architecture)
	if err != nil {
		return imageManifest{}, err
	}
	if err := checkDescriptor(descriptor, "the image in the index", maxManifest); err != nil {
		return imageManifest{}, err
	}
	content, err := f.manifest(ctx, descriptor.Digest.String())
	if err != nil {
		return imageManifest{}, err
	}
	if int64(len(content)) != descriptor.Size {
		return imageManifest{}, refuse("SizeMismatch", "the image %s has %d bytes, and the index says %d", descriptor.Digest, len(content), descriptor.Size)
	}
	manifest, err := parseImageManifest(content)
	if err == nil && len(manifest.Manifests) > 0 {
		return imageManifest{}, refuse("NestedIndex", "the image %s in the index is an index itself", descriptor.Digest)
	}
	return manifest, err
}

// choose takes the image for linux on the architecture; where none is asked
// for, linux/amd64, else the first for linux.
func choose(manifests []v1.Descriptor, architecture string) (v1.Descriptor, error) {
	var images []v1.Descriptor
	platforms := make([]string, 0, len(manifests))
	for _, manifest := range manifests {
		if manifest.Platform == nil {
			continue // an attestation
		}
		platforms = append(platforms, manifest.Platform.OS+"/"+manifest.Platform.Architecture)
		if manifest.Platform.OS == "linux" {
			images = append(images, manifest)
		}
	}
	there := oneLine(strings.Join(platforms, ", "))
	if len(images) == 0 {
		return v1.Descriptor{}, refuse("NoLinuxImage", "the index has no image for linux, only for: %s", there)
	}
	chosen := slices.IndexFunc(images, func(image v1.Descriptor) bool { return image.Platform.Architecture == cmp.Or(architecture, "amd64") })
	switch {
	case chosen >= 0:
		return images[chosen], nil
	case architecture == "":
		return images[0], nil
	}
	failure := refuse("ArchitectureMissing", "the index has no image for linux/%s, which this cluster's control plane has, only for: %s", architecture, there)
	failure.Remediation = "Choose the release for this architecture, or the multi-architecture one; on a mirror, mirror it with all architectures: oc adm release mirror --keep-manifest-list"
	return v1.Descriptor{}, failure
}

// parseImageManifest goes by the content alone, never by what a server says it
// is. A manifest that could be read as both kinds is refused (CVE-2021-41190).
func parseImageManifest(content []byte) (imageManifest, error) {
	var manifest imageManifest
	if err := utiljson.Unmarshal(content, &manifest); err != nil {
		failure := refuse("InvalidManifest", "the manifest is not an image manifest")
		failure.Err = err
		return imageManifest{}, failure
	}
	switch {
	case manifest.SchemaVersion == 1:
		failure := refuse("SchemaVersion1", "the manifest has schema version 1, which does not bind the layers to the digest")
		failure.Remediation = "Mirror the release again, to a registry that keeps manifests as they are: oc adm release mirror"
		return imageManifest{}, failure
	case manifest.SchemaVersion != 2:
		return imageManifest{}, refuse("InvalidManifest", "the manifest has schema version %d, not 2", manifest.SchemaVersion)
	case len(manifest.Layers) > 0 && len(manifest.Manifests) > 0:
		return imageManifest{}, refuse("AmbiguousManifest", "the manifest has both layers and manifests")
	}
	return manifest, checkMediaType(manifest)
}

func checkMediaType(manifest imageManifest) error {
	allowed := []types.MediaType{"", types.OCIManifestSchema1, types.DockerManifestSchema2}
	if len(manifest.Manifests) > 0 {
		allowed = []types.MediaType{"", types.OCIImageIndex, types.DockerManifestList}
	}
	if !slices.Contains(allowed, manifest.MediaType) {
		return refuse("InvalidManifest", "the manifest has the media type %q, which does not fit its content", oneLine(string(manifest.MediaType)))
	}
	return nil
}

// checkDescriptor refuses whatever could be had from elsewhere than the
// repository, and what is too large, before anything is asked for.
func checkDescriptor(descriptor v1.Descriptor, what string, limit int64) error {
	text := fmt.Sprintf("%s (%s)", what, oneLine(descriptor.Digest.String()))
	switch {
	case descriptor.Digest.Algorithm != "sha256":
		return refuse("UnsupportedDigest", "%s is not named by a sha256 digest", text)
	case len(descriptor.URLs) > 0 || !descriptor.MediaType.IsDistributable():
		return refuse("ForeignContent", "%s is to be had from outside the registry", text)
	case len(descriptor.Data) > 0:
		return refuse("InlineContent", "%s carries its data inline", text)
	case descriptor.Size <= 0:
		return refuse("InvalidSize", "%s has the size %d", text, descriptor.Size)
	case descriptor.Size > limit:
		return refuse("TooLarge", "%s has %d bytes, and %d are the limit", text, descriptor.Size, limit)
	}
	return nil
}
