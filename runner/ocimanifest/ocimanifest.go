// Package ocimanifest answers: which images and layers does this manifest name?
//
// It is the one reader of manifests, for the release image, for the images that
// nodes pull and for the signatures beside them, so that all three judge the same
// bytes alike. It parses only: what it returns is as trustworthy as the digest by
// which the bytes were fetched.
//
// # Policy
//
// The content decides what a manifest is, never the type that a server says it
// has. A manifest is an image, which has layers, or an index, which has
// manifests; one that could be read as both is refused (CVE-2021-41190), and so
// is schema version 1, whose digest does not bind the layers. Keys have one
// spelling. Every blob of an image is named by a sha256 digest and has a size.
//
// # Bounds
//
// A manifest has at most [MaxSize] bytes, which is what nodes read
// (containers/image, internal/iolimits: MaxManifestBodySize), and at most 1000 layers or
// manifests: two bytes of JSON make a descriptor of two hundred.
package ocimanifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/openshift/update-preflight/collector/words"
)

const (
	// MaxSize bounds a manifest, in bytes.
	MaxSize = 4 << 20
	// maxDescriptors bounds the layers or manifests of one manifest.
	maxDescriptors = 1000
	// maxBlob is more than any layer has, in bytes. It keeps the sum of all sizes
	// of a release from overflowing.
	maxBlob = 1 << 40
	// maxText bounds text of a manifest that a message repeats, in bytes.
	maxText = 512
)

// The media types of Docker that OCI's replace.
const (
	dockerManifest     = "application/vnd.docker.distribution.manifest.v2+json"
	dockerManifestList = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerForeignLayer = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
)

// Manifest is an image or an index of images (OCI image-spec, manifest.md and
// image-index.md).
type Manifest struct {
	// MediaType is what the manifest says of itself; empty when it does not.
	MediaType string
	// Config and Layers are the blobs of an image.
	Config ocispec.Descriptor
	Layers []ocispec.Descriptor
	// Manifests are the images of an index, and what is attached to them.
	Manifests []ocispec.Descriptor
}

// IsIndex reports whether the manifest names images instead of layers.
func (m Manifest) IsIndex() bool { return len(m.Manifests) > 0 }

// Parse reads a manifest. What it refuses is an [Error].
func Parse(content []byte) (Manifest, error) {
	if len(content) > MaxSize {
		return Manifest{}, refuse(ManifestTooLarge, "the manifest has %d bytes, and %d are the limit", len(content), MaxSize)
	}
	var parsed struct {
		SchemaVersion int                `json:"schemaVersion"`
		MediaType     string             `json:"mediaType"`
		Config        ocispec.Descriptor `json:"config"`
		Layers        descriptors        `json:"layers"`
		Manifests     descriptors        `json:"manifests"`
	}
	if err := utiljson.Unmarshal(content, &parsed); err != nil {
		return Manifest{}, refuse(InvalidManifest, "the manifest is not an image manifest: %s", words.Line(err.Error(), maxText))
	}
	switch {
	case parsed.SchemaVersion == 1:
		return Manifest{}, refuse(SchemaVersion1, "the manifest has schema version 1, which does not bind the layers to the digest")
	case parsed.SchemaVersion != 2:
		return Manifest{}, refuse(InvalidManifest, "the manifest has schema version %d, not 2", parsed.SchemaVersion)
	case len(parsed.Layers) > 0 && len(parsed.Manifests) > 0:
		return Manifest{}, refuse(AmbiguousManifest, "the manifest has both layers and manifests")
	case len(parsed.Layers)+len(parsed.Manifests) == 0:
		return Manifest{}, refuse(InvalidManifest, "the manifest has neither layers nor manifests")
	}
	manifest := Manifest{MediaType: parsed.MediaType, Config: parsed.Config, Layers: parsed.Layers, Manifests: parsed.Manifests}
	return manifest, manifest.validate()
}

func (m Manifest) validate() error {
	allowed := []string{"", ocispec.MediaTypeImageManifest, dockerManifest}
	if m.IsIndex() {
		allowed = []string{"", ocispec.MediaTypeImageIndex, dockerManifestList}
	}
	if !slices.Contains(allowed, m.MediaType) {
		return refuse(InvalidManifest, "the manifest has the media type %q, which does not fit its content", words.Line(m.MediaType, maxText))
	}
	if m.IsIndex() {
		return nil // of an index, only the images that are chosen matter
	}
	for _, blob := range m.Blobs() {
		if err := checkName(blob, "a blob of the image"); err != nil {
			return err
		}
		if blob.Size < 0 || blob.Size > maxBlob {
			return refuse(InvalidSize, "a blob of the image (%s) has the size %d", blob.Digest, blob.Size)
		}
	}
	return nil
}

// Blobs are the layers and the configuration of an image.
func (m Manifest) Blobs() []ocispec.Descriptor {
	return append(slices.Clip(m.Layers), m.Config)
}

// Images are the images of an index that nodes of these architectures pull, those
// for linux; without architectures all of them. Every architecture must have one.
func (m Manifest) Images(architectures ...string) ([]ocispec.Descriptor, error) {
	var images []ocispec.Descriptor
	platforms := make([]string, 0, len(m.Manifests))
	found := map[string]bool{}
	for _, image := range m.Manifests {
		if image.Platform == nil {
			continue // an attestation
		}
		platforms = append(platforms, image.Platform.OS+"/"+image.Platform.Architecture)
		if image.Platform.OS != "linux" || len(architectures) > 0 && !slices.Contains(architectures, image.Platform.Architecture) {
			continue
		}
		if err := CheckDescriptor(image, "the image in the index", MaxSize); err != nil {
			return nil, err
		}
		found[image.Platform.Architecture] = true
		images = append(images, image)
	}
	there := words.Line(strings.Join(platforms, ", "), maxText)
	for _, architecture := range architectures {
		if !found[architecture] {
			return nil, refuse(ArchitectureMissing, "the index has no image for linux/%s, only for: %s", architecture, there)
		}
	}
	if len(images) == 0 {
		return nil, refuse(NoLinuxImage, "the index has no image for linux, only for: %s", there)
	}
	return images, nil
}

// Image parses the content of an image that an index describes.
func Image(described ocispec.Descriptor, content []byte) (Manifest, error) {
	if int64(len(content)) != described.Size {
		return Manifest{}, refuse(SizeMismatch, "the image %s has %d bytes, and the index says %d", described.Digest, len(content), described.Size)
	}
	manifest, err := Parse(content)
	if err == nil && manifest.IsIndex() {
		return Manifest{}, refuse(NestedIndex, "the image %s in the index is an index itself", described.Digest)
	}
	return manifest, err
}

// CheckDescriptor refuses content that is not in the registry under its sha256
// digest, and content that is empty or has more than limit bytes, before it is
// fetched. The error names it as what.
func CheckDescriptor(descriptor ocispec.Descriptor, what string, limit int64) error {
	if err := checkName(descriptor, what); err != nil {
		return err
	}
	text := fmt.Sprintf("%s (%s)", what, descriptor.Digest)
	switch {
	case len(descriptor.URLs) > 0 || isForeign(descriptor.MediaType):
		return refuse(ForeignContent, "%s is stored outside of the registry", text)
	case len(descriptor.Data) > 0:
		return refuse(InlineContent, "%s carries its data inline", text)
	case descriptor.Size <= 0:
		return refuse(InvalidSize, "%s has the size %d", text, descriptor.Size)
	case descriptor.Size > limit:
		return refuse(TooLarge, "%s has %d bytes, and %d are the limit", text, descriptor.Size, limit)
	}
	return nil
}

func checkName(descriptor ocispec.Descriptor, what string) error {
	if descriptor.Digest.Validate() != nil || descriptor.Digest.Algorithm() != digest.SHA256 {
		return refuse(UnsupportedDigest, "%s (%s) is not named by a sha256 digest", what, words.Line(string(descriptor.Digest), maxText))
	}
	return nil
}

// isForeign is true for layers that a registry may not distribute.
func isForeign(mediaType string) bool {
	return mediaType == dockerForeignLayer || strings.HasPrefix(mediaType, "application/vnd.oci.image.layer.nondistributable.")
}

// descriptors are at most maxDescriptors, whatever the length of the list.
type descriptors []ocispec.Descriptor

// UnmarshalJSON implements json.Unmarshaler.
func (d *descriptors) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	switch start, err := decoder.Token(); {
	case err != nil:
		return err
	case start == nil:
		return nil // null
	case start != json.Delim('['):
		return errors.New("layers or manifests are not a list")
	}
	for decoder.More() {
		if len(*d) == maxDescriptors {
			return fmt.Errorf("more than %d layers or manifests", maxDescriptors)
		}
		var each json.RawMessage
		if err := decoder.Decode(&each); err != nil {
			return err
		}
		var descriptor ocispec.Descriptor
		if err := utiljson.Unmarshal(each, &descriptor); err != nil {
			return err
		}
		*d = append(*d, descriptor)
	}
	return nil
}
