// Package ocimanifest answers: which images and layers does this manifest refer to?
//
// It is the only parser of manifests: for the release image, the images that nodes pull and their signature
// attachments. It does no I/O; its results are as trustworthy as the digest by which the bytes were fetched.
//
// # Policy
//
// The type of a manifest follows from its content, never from the media type in a response. A manifest is an image,
// which has layers, or an index, which has manifests. A manifest with both is rejected (CVE-2021-41190), as is schema
// version 1, whose digest does not cover the layers. Keys are case-sensitive. Every blob of an image has a sha256
// digest and a size.
//
// # Bounds
//
// A manifest has at most [MaxSize] bytes, the limit of nodes (containers/image, internal/iolimits:
// MaxManifestBodySize), and at most 1000 layers or manifests: two bytes of JSON allocate a descriptor of two hundred.
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

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// MaxSize bounds a manifest, in bytes.
	MaxSize = 4 << 20
	// maxDescriptors bounds the layers or manifests of one manifest.
	maxDescriptors = 1000
	// maxBlob bounds the size of a blob, in bytes, so that the sum of all sizes of a release cannot overflow.
	maxBlob = 1 << 40
	// maxText bounds the text of a manifest repeated in a message, in bytes.
	maxText = 512
)

// The Docker media types that correspond to OCI's.
const (
	dockerManifest     = "application/vnd.docker.distribution.manifest.v2+json"
	dockerManifestList = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerForeignLayer = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
)

// Manifest is an image or an index of images (OCI image-spec, manifest.md and image-index.md).
type Manifest struct {
	// MediaType is the mediaType field of the manifest; empty when it is absent.
	MediaType string
	// Config and Layers are the blobs of an image.
	Config ocispec.Descriptor
	Layers []ocispec.Descriptor
	// Manifests are the images of an index, and their attestations.
	Manifests []ocispec.Descriptor
}

// IsIndex reports whether the manifest lists images instead of layers.
func (m Manifest) IsIndex() bool { return len(m.Manifests) > 0 }

// Parse parses a manifest. The error is always an [*Error].
func Parse(content []byte) (Manifest, error) {
	if len(content) > MaxSize {
		return Manifest{}, violation(ReasonManifestTooLarge, "the manifest has %d bytes; the limit is %d", len(content), MaxSize)
	}
	var parsed struct {
		SchemaVersion int                `json:"schemaVersion"`
		MediaType     string             `json:"mediaType"`
		Config        ocispec.Descriptor `json:"config"`
		Layers        descriptors        `json:"layers"`
		Manifests     descriptors        `json:"manifests"`
	}
	if err := utiljson.Unmarshal(content, &parsed); err != nil {
		return Manifest{}, violation(reasonInvalidManifest, "the manifest is not an image manifest: %s", words.Line(err.Error(), maxText))
	}
	switch {
	case parsed.SchemaVersion == 1:
		return Manifest{}, violation(ReasonSchemaVersion1, "the manifest has schema version 1, whose digest does not cover the layers")
	case parsed.SchemaVersion != 2:
		return Manifest{}, violation(reasonInvalidManifest, "the manifest has schema version %d, not 2", parsed.SchemaVersion)
	case len(parsed.Layers) > 0 && len(parsed.Manifests) > 0:
		return Manifest{}, violation(reasonAmbiguousManifest, "the manifest has both layers and manifests")
	case len(parsed.Layers)+len(parsed.Manifests) == 0:
		return Manifest{}, violation(reasonInvalidManifest, "the manifest has neither layers nor manifests")
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
		return violation(reasonInvalidManifest, "the manifest has media type %q, which contradicts its content", words.Line(m.MediaType, maxText))
	}
	if m.IsIndex() {
		return nil // the descriptors of an index are checked when they are selected
	}
	for _, blob := range m.Blobs() {
		if err := checkName(blob, "a blob of the image"); err != nil {
			return err
		}
		if blob.Size < 0 || blob.Size > maxBlob {
			return violation(reasonInvalidSize, "a blob of the image (%s) has size %d", blob.Digest, blob.Size)
		}
	}
	return nil
}

// Blobs are the layers and the configuration of an image.
func (m Manifest) Blobs() []ocispec.Descriptor {
	return append(slices.Clip(m.Layers), m.Config)
}

// Images returns the linux images of an index for the given architectures; without
// any, for all. An architecture without an image is an error.
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
	available := words.Line(strings.Join(platforms, ", "), maxText)
	for _, architecture := range architectures {
		if !found[architecture] {
			return nil, violation(ReasonArchitectureMissing, "the index has no image for linux/%s, only for: %s", architecture, available)
		}
	}
	if len(images) == 0 {
		return nil, violation(ReasonNoLinuxImage, "the index has no image for linux, only for: %s", available)
	}
	return images, nil
}

// Image parses the manifest of an image in an index, given its descriptor.
func Image(described ocispec.Descriptor, content []byte) (Manifest, error) {
	if int64(len(content)) != described.Size {
		return Manifest{}, violation(reasonSizeMismatch, "the image %s has %d bytes; its descriptor in the index has size %d", described.Digest,
			len(content), described.Size)
	}
	manifest, err := Parse(content)
	if err == nil && manifest.IsIndex() {
		return Manifest{}, violation(reasonNestedIndex, "the image %s in the index is an index itself", described.Digest)
	}
	return manifest, err
}

// CheckDescriptor checks a descriptor before its content is fetched: the content
// must be in the registry under a sha256 digest and have 1 to limit bytes. The
// error is an [*Error] that names the content as what.
func CheckDescriptor(descriptor ocispec.Descriptor, what string, limit int64) error {
	if err := checkName(descriptor, what); err != nil {
		return err
	}
	text := fmt.Sprintf("%s (%s)", what, descriptor.Digest)
	switch {
	case len(descriptor.URLs) > 0 || isForeign(descriptor.MediaType):
		return violation(reasonForeignContent, "%s is stored outside of the registry", text)
	case len(descriptor.Data) > 0:
		return violation(reasonInlineContent, "%s embeds its data in the descriptor", text)
	case descriptor.Size <= 0:
		return violation(reasonInvalidSize, "%s has size %d", text, descriptor.Size)
	case descriptor.Size > limit:
		return violation(reasonTooLarge, "%s has %d bytes; the limit is %d", text, descriptor.Size, limit)
	}
	return nil
}

func checkName(descriptor ocispec.Descriptor, what string) error {
	if descriptor.Digest.Validate() != nil || descriptor.Digest.Algorithm() != digest.SHA256 {
		return violation(reasonUnsupportedDigest, "%s (%s) has no sha256 digest", what, words.Line(string(descriptor.Digest), maxText))
	}
	return nil
}

// isForeign is true for media types of layers stored outside of the registry.
func isForeign(mediaType string) bool {
	return mediaType == dockerForeignLayer || strings.HasPrefix(mediaType, "application/vnd.oci.image.layer.nondistributable.")
}

// descriptors is a list of at most maxDescriptors descriptors.
type descriptors []ocispec.Descriptor

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

// The reasons for which an image was not read.
var (
	reasonInvalidManifest = finding.NewReason("InvalidManifest", finding.Explanation{
		Meaning: "The content is not an image manifest or index of schema version 2.",
		Cause:   "The registry or a proxy served something else, or the image was pushed by an incompatible tool.",
		Remedy:  "Mirror the image again: oc image mirror.",
	})
	ReasonManifestTooLarge = finding.NewReason("ManifestTooLarge", finding.Explanation{
		Meaning: "A manifest is larger than 4 MiB.",
		Cause:   "The registry served something else, or the image is malformed; nodes reject such a manifest too.",
		Remedy:  "Mirror the image again: oc image mirror.",
	})
	ReasonSchemaVersion1 = finding.NewReason("SchemaVersion1", finding.Explanation{
		Meaning: "A manifest uses Docker schema version 1, whose digest does not cover the layers.",
		Cause:   "The registry converted the manifest.",
		Remedy:  "Mirror the image to a registry that preserves manifests: oc image mirror.",
	})
	reasonAmbiguousManifest = finding.NewReason("AmbiguousManifest", finding.Explanation{
		Meaning: "A manifest contains both layers and manifests, so clients may read it as an image or as an index.",
		Cause:   "The manifest is malformed (CVE-2021-41190).",
		Remedy:  "Do not use the image; report it to its provider.",
	})
	reasonNestedIndex = finding.NewReason("NestedIndex", finding.Explanation{
		Meaning: "An image in an index is itself an index.",
		Cause:   "The index was built by an incompatible tool.",
		Remedy:  "Ask the provider of the image for an index without nested indexes.",
	})
	reasonSizeMismatch = finding.NewReason("SizeMismatch", finding.Explanation{
		Meaning: "The size of an image differs from its descriptor in the index.",
		Cause:   "The registry served something else, or the index is malformed.",
		Remedy:  "Mirror the image again: oc image mirror --keep-manifest-list.",
	})
	ReasonNoLinuxImage = finding.NewReason("NoLinuxImage", finding.Explanation{
		Meaning: "An index has no image for linux.",
		Cause:   "The image is for another operating system.",
		Remedy:  "Choose an image for linux.",
	})
	ReasonArchitectureMissing = finding.NewReason("ArchitectureMissing", finding.Explanation{
		Meaning: "An index has no image for an architecture of the cluster.",
		Cause:   "The image was not built or not mirrored for this architecture.",
		Remedy:  "Choose an image for this architecture, or mirror all architectures: oc image mirror --keep-manifest-list.",
	})
	reasonUnsupportedDigest = finding.NewReason("UnsupportedDigest", finding.Explanation{
		Meaning: "Content is not identified by a sha256 digest.",
		Cause:   "The descriptor is malformed or uses another algorithm.",
		Remedy:  "Ask the provider for an image with sha256 digests.",
	})
	reasonForeignContent = finding.NewReason("ForeignContent", finding.Explanation{
		Meaning: "Content is stored outside of the registry.",
		Cause:   "The descriptor has URLs, or the layer is nondistributable.",
		Remedy:  "Ask the provider for an image whose content is in the registry.",
	})
	reasonInlineContent = finding.NewReason("InlineContent", finding.Explanation{
		Meaning: "A descriptor embeds its content.",
		Cause:   "The manifest was built by an incompatible tool.",
		Remedy:  "Ask the provider for an image without embedded data.",
	})
	reasonInvalidSize = finding.NewReason("InvalidSize", finding.Explanation{
		Meaning: "A descriptor has no valid size.",
		Cause:   "The descriptor is malformed.",
		Remedy:  "Report it to the provider of the image.",
	})
	reasonTooLarge = finding.NewReason("TooLarge", finding.Explanation{
		Meaning: "Content is larger than the limit.",
		Cause:   "The image is not a release image, or the descriptor is malformed.",
		Remedy:  "Check the pull spec of the image.",
	})
)

// Violation reports that a manifest must not be used.
type Violation struct {
	Reason  finding.Reason
	Message string
}

// Error returns the message.
func (e *Violation) Error() string { return e.Message }

func violation(reason finding.Reason, format string, args ...any) *Violation {
	return &Violation{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
