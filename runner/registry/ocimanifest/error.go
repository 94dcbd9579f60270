package ocimanifest

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/finding"
)

// The reasons for which an image was not read.
var (
	reasonInvalidManifest = finding.NewReason("InvalidManifest", finding.Explanation{
		Meaning: "Reported when content is not an image manifest or index of schema version 2.",
		Cause:   "The registry or a proxy served something else, or the image was pushed by an incompatible tool.",
		Remedy:  "Mirror the image again: oc image mirror.",
	})
	ReasonManifestTooLarge = finding.NewReason("ManifestTooLarge", finding.Explanation{
		Meaning: "Reported when a manifest has more than 4 MiB.",
		Cause:   "The registry served something else, or the image is malformed; nodes reject such a manifest too.",
		Remedy:  "Mirror the image again: oc image mirror.",
	})
	ReasonSchemaVersion1 = finding.NewReason("SchemaVersion1", finding.Explanation{
		Meaning: "Reported when a manifest has Docker's schema version 1, whose digest does not cover the layers.",
		Cause:   "The registry converted the manifest.",
		Remedy:  "Mirror the image to a registry that preserves manifests: oc image mirror.",
	})
	reasonAmbiguousManifest = finding.NewReason("AmbiguousManifest", finding.Explanation{
		Meaning: "Reported when a manifest has both layers and manifests, so that clients may read it as an image or as an index.",
		Cause:   "The manifest is malformed (CVE-2021-41190).",
		Remedy:  "Do not use the image; report it to its provider.",
	})
	reasonNestedIndex = finding.NewReason("NestedIndex", finding.Explanation{
		Meaning: "Reported when an image of an index is an index itself.",
		Cause:   "The index was built by an incompatible tool.",
		Remedy:  "Ask the provider of the image for an index without nested indexes.",
	})
	reasonSizeMismatch = finding.NewReason("SizeMismatch", finding.Explanation{
		Meaning: "Reported when an image has another size than its descriptor in the index.",
		Cause:   "The registry served something else, or the index is malformed.",
		Remedy:  "Mirror the image again: oc image mirror --keep-manifest-list.",
	})
	ReasonNoLinuxImage = finding.NewReason("NoLinuxImage", finding.Explanation{
		Meaning: "Reported when an index has no image for linux.",
		Cause:   "The image is for another operating system.",
		Remedy:  "Choose an image for linux.",
	})
	ReasonArchitectureMissing = finding.NewReason("ArchitectureMissing", finding.Explanation{
		Meaning: "Reported when an index has no image for an architecture of the cluster.",
		Cause:   "The image was not built or not mirrored for this architecture.",
		Remedy: "Choose the image for this architecture, or mirror all architectures: oc image mirror " +
			"--keep-manifest-list.",
	})
	reasonUnsupportedDigest = finding.NewReason("UnsupportedDigest", finding.Explanation{
		Meaning: "Reported when content is not identified by a sha256 digest.",
		Cause:   "The descriptor is malformed or uses another algorithm.",
		Remedy:  "Ask the provider of the image for one with sha256 digests.",
	})
	reasonForeignContent = finding.NewReason("ForeignContent", finding.Explanation{
		Meaning: "Reported when content is stored outside of the registry.",
		Cause:   "The descriptor has URLs, or the layer is nondistributable.",
		Remedy:  "Ask the provider of the image for one whose content is in the registry.",
	})
	reasonInlineContent = finding.NewReason("InlineContent", finding.Explanation{
		Meaning: "Reported when a descriptor embeds its content.",
		Cause:   "The manifest was built by an incompatible tool.",
		Remedy:  "Ask the provider of the image for one without embedded data.",
	})
	reasonInvalidSize = finding.NewReason("InvalidSize", finding.Explanation{
		Meaning: "Reported when a descriptor has no valid size.",
		Cause:   "The descriptor is malformed.",
		Remedy:  "Report it to the provider of the image.",
	})
	reasonTooLarge = finding.NewReason("TooLarge", finding.Explanation{
		Meaning: "Reported when content has more bytes than are read.",
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
