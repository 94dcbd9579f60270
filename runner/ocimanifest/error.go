package ocimanifest

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/finding"
)

// The reasons for which a manifest is refused.
const (
	// InvalidManifest is content that is no manifest of schema version 2.
	InvalidManifest finding.Reason = "InvalidManifest"
	// ManifestTooLarge is a manifest of more than MaxSize bytes.
	ManifestTooLarge finding.Reason = "ManifestTooLarge"
	// SchemaVersion1 is a manifest of Docker's schema version 1.
	SchemaVersion1 finding.Reason = "SchemaVersion1"
	// AmbiguousManifest is an image and an index at once.
	AmbiguousManifest finding.Reason = "AmbiguousManifest"
	// NestedIndex is an index in an index.
	NestedIndex finding.Reason = "NestedIndex"
	// SizeMismatch is an image of another size than the index says.
	SizeMismatch finding.Reason = "SizeMismatch"
	// NoLinuxImage is an index without an image for linux.
	NoLinuxImage finding.Reason = "NoLinuxImage"
	// ArchitectureMissing is an index without an image for an architecture.
	ArchitectureMissing finding.Reason = "ArchitectureMissing"
	// UnsupportedDigest is content that is not named by a sha256 digest.
	UnsupportedDigest finding.Reason = "UnsupportedDigest"
	// ForeignContent is content that is stored outside of the registry.
	ForeignContent finding.Reason = "ForeignContent"
	// InlineContent is content in the manifest itself.
	InlineContent finding.Reason = "InlineContent"
	// InvalidSize is content without a size that can be.
	InvalidSize finding.Reason = "InvalidSize"
	// TooLarge is content that has more bytes than the caller allows.
	TooLarge finding.Reason = "TooLarge"
)

// Error says why a manifest must not be used.
type Error struct {
	Reason  finding.Reason
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func refuse(reason finding.Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
