package image

import "github.com/openshift/update-preflight/collector/finding"

var (
	reasonImagesPresent = finding.NewReason("ImagesPresent", finding.Explanation{
		Meaning: "Reported when all images are available from where nodes would pull them.",
		Cause:   "The images are available.",
	})
	reasonNotSelected = finding.NewReason("NotSelected", finding.Explanation{
		Meaning: "Reported when the check is excluded by the selection.",
		Cause:   "Images are excluded for this run.",
		Remedy:  "Check the images, or accept the finding.",
	})
	reasonImagesMissing = finding.NewReason("ImagesMissing", finding.Explanation{
		Meaning: "Reported when images are not available from any repository.",
		Cause:   "The release was not mirrored, or only in part.",
		Remedy:  "Mirror the release again: oc adm release mirror.",
	})
	reasonBlobsMissing = finding.NewReason("BlobsMissing", finding.Explanation{
		Meaning: "Reported when a manifest names blobs that the registry lacks.",
		Cause:   "The image was mirrored only in part.",
		Remedy:  "Mirror the release again: oc adm release mirror.",
	})
	reasonDigestMismatch = finding.NewReason("DigestMismatch", finding.Explanation{
		Meaning: "Reported when a registry serves other content than a digest identifies.",
		Cause:   "A defect or compromise of the registry.",
		Remedy:  "Mirror the release again, or report it to the operators of the registry.",
	})
	reasonInvalidManifest = finding.NewReason("InvalidManifest", finding.Explanation{
		Meaning: "Reported when a manifest is not one that nodes accept.",
		Cause:   "The image is malformed.",
		Remedy:  "Do not update to this release.",
	})
	reasonManifestTooLarge = finding.NewReason("ManifestTooLarge", finding.Explanation{
		Meaning: "Reported when a manifest is larger than nodes accept.",
		Cause:   "The image is malformed.",
		Remedy:  "Do not update to this release.",
	})
	reasonArchitectureMissing = finding.NewReason("ArchitectureMissing", finding.Explanation{
		Meaning: "Reported when an image is missing for an architecture of the nodes.",
		Cause:   "The release was not mirrored for all architectures.",
		Remedy:  "Mirror all architectures: oc adm release mirror --keep-manifest-list.",
	})
	reasonMoreImages = finding.NewReason("MoreImages", finding.Explanation{
		Meaning: "Reported when several causes are combined in one finding.",
		Cause:   "Images are unavailable for too many causes.",
		Remedy:  "Fix the other findings first.",
	})
)
