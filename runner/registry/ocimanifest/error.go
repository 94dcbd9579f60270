package ocimanifest

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/finding"
)

// ReasonInvalidManifest is reported when content is not an image manifest or index
// of schema version 2.
//
// Cause: the registry or a proxy served something else, or the image was pushed by
// an incompatible tool.
//
// Remedy: mirror the image again: oc image mirror.
const ReasonInvalidManifest finding.Reason = "InvalidManifest"

// ReasonManifestTooLarge is reported when a manifest has more than [MaxSize] bytes.
//
// Cause: the registry served something else, or the image is malformed; nodes
// reject such a manifest too.
//
// Remedy: mirror the image again: oc image mirror.
const ReasonManifestTooLarge finding.Reason = "ManifestTooLarge"

// ReasonSchemaVersion1 is reported when a manifest has Docker's schema version 1,
// whose digest does not cover the layers.
//
// Cause: the registry converted the manifest.
//
// Remedy: mirror the image to a registry that preserves manifests: oc image mirror.
const ReasonSchemaVersion1 finding.Reason = "SchemaVersion1"

// ReasonAmbiguousManifest is reported when a manifest has both layers and
// manifests, so that clients may read it as an image or as an index.
//
// Cause: the manifest is malformed (CVE-2021-41190).
//
// Remedy: do not use the image; report it to its provider.
const ReasonAmbiguousManifest finding.Reason = "AmbiguousManifest"

// ReasonNestedIndex is reported when an image of an index is an index itself.
//
// Cause: the index was built by an incompatible tool.
//
// Remedy: ask the provider of the image for an index without nested indexes.
const ReasonNestedIndex finding.Reason = "NestedIndex"

// ReasonSizeMismatch is reported when an image has another size than its
// descriptor in the index.
//
// Cause: the registry served something else, or the index is malformed.
//
// Remedy: mirror the image again: oc image mirror --keep-manifest-list.
const ReasonSizeMismatch finding.Reason = "SizeMismatch"

// ReasonNoLinuxImage is reported when an index has no image for linux.
//
// Cause: the image is for another operating system.
//
// Remedy: choose an image for linux.
const ReasonNoLinuxImage finding.Reason = "NoLinuxImage"

// ReasonArchitectureMissing is reported when an index has no image for an
// architecture of the cluster.
//
// Cause: the image was not built or not mirrored for this architecture.
//
// Remedy: choose the image for this architecture, or mirror all architectures:
// oc image mirror --keep-manifest-list.
const ReasonArchitectureMissing finding.Reason = "ArchitectureMissing"

// ReasonUnsupportedDigest is reported when content is not identified by a sha256
// digest.
//
// Cause: the descriptor is malformed or uses another algorithm.
//
// Remedy: ask the provider of the image for one with sha256 digests.
const ReasonUnsupportedDigest finding.Reason = "UnsupportedDigest"

// ReasonForeignContent is reported when content is stored outside of the registry.
//
// Cause: the descriptor has URLs, or the layer is nondistributable.
//
// Remedy: ask the provider of the image for one whose content is in the registry.
const ReasonForeignContent finding.Reason = "ForeignContent"

// ReasonInlineContent is reported when a descriptor embeds its content.
//
// Cause: the manifest was built by an incompatible tool.
//
// Remedy: ask the provider of the image for one without embedded data.
const ReasonInlineContent finding.Reason = "InlineContent"

// ReasonInvalidSize is reported when a descriptor has no valid size.
//
// Cause: the descriptor is malformed.
//
// Remedy: report it to the provider of the image.
const ReasonInvalidSize finding.Reason = "InvalidSize"

// ReasonTooLarge is reported when content has more bytes than are read.
//
// Cause: the image is not a release image, or the descriptor is malformed.
//
// Remedy: check the pull spec of the image.
const ReasonTooLarge finding.Reason = "TooLarge"

// Error reports that a manifest must not be used.
type Error struct {
	Reason  finding.Reason
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func violation(reason finding.Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
