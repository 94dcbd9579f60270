// Package imagefiles answers: which files does this image have in the directory of its
// manifests?
//
// [ReadRelease] reads those of a release, for which it requires proof that its digest was
// verified, and [Read] those of another image. Nothing is decompressed before it is verified
// by digest. [Resolve] returns the digest to which a pull spec resolves.
//
// # Limitations
//
// Only the last layer of a release is read, where "oc adm release new" puts the manifests.
package imagefiles

import (
	"context"

	"github.com/google/go-containerregistry/pkg/name"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
)

// ImageDirectory is the directory of the manifests in an image that is not a release.
const ImageDirectory = "manifests"

// maxImageLayers bounds the layers of an image of manifests, which together have the bound of one of a release.
const maxImageLayers = 16

var reasonNotAnImageOfManifests = finding.NewReason("NotAnImageOfManifests", finding.Explanation{
	Meaning: "Reported for an image with manifests that does not have the form of one: at most 16 layers of 64 MiB in " +
		"total, with each manifest in one layer.",
	Cause:  "The image is another one, or has a large base image.",
	Remedy: "Build the image \"FROM scratch\" with one COPY of the manifests to /manifests/.",
})

// Read calls visit with every file directly in /manifests of an image, by its name.
// All layers are read, and no file may be in two of them, since one would hide the other.
// The pull spec must be by digest, by which all content is verified. The bounds are those
// of a release. The error comes from visit, or is an *Error.
func Read(ctx context.Context, pullSpec string, source Source, visit func(file string, content []byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	image, err := name.NewDigest(pullSpec, name.StrictValidation)
	if err != nil {
		return malformedImage("%q is not a pull spec by digest", words.External(pullSpec))
	}
	access := source.Access
	if access == nil {
		access = registry.Own(ctx, registry.Local{})
		defer access.Close()
	}
	f := &fetcher{image: image, what: "the image", choice: allLayers, cache: source.Cache, architecture: source.Architecture}
	layers, err := f.layers(ctx, access)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, layer := range layers {
		err := eachManifest(ctx, layer, ImageDirectory, func(file string, content []byte) error {
			if seen[file] {
				return malformedImage("the file %q is in two layers of %s", words.External(file), pullSpec)
			}
			seen[file] = true
			return visit(file, content)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func allLayers(manifest ocimanifest.Manifest) ([]ocispec.Descriptor, error) {
	if len(manifest.Layers) > maxImageLayers {
		return nil, malformedImage("the image has %d layers; the limit is %d", len(manifest.Layers), maxImageLayers)
	}
	left := int64(maxLayer)
	for _, layer := range manifest.Layers {
		if err := ocimanifest.CheckDescriptor(layer, "a layer", left); err != nil {
			return nil, unusable(err)
		}
		left -= layer.Size
	}
	return manifest.Layers, nil
}

func malformedImage(format string, args ...any) *Error {
	failure := Reject(reasonNotAnImageOfManifests, format, args...)
	failure.Remediation, failure.Actions = "Build the image FROM scratch with one COPY of the manifests to /manifests/.", nil
	return failure
}
