package image

import "github.com/openshift/update-preflight/collector/finding"

// ReasonImagesPresent is reported when all images are available from where
// nodes would pull them.
//
// Cause: the images are available.
//
// Remedy: none is needed.
const ReasonImagesPresent finding.Reason = "ImagesPresent"

// ReasonNotSelected is reported when the check is excluded by the selection.
//
// Cause: images are excluded for this run.
//
// Remedy: include the check of images, or accept the finding.
const ReasonNotSelected finding.Reason = "NotSelected"

// ReasonImagesMissing is reported when images are not available from any
// repository.
//
// Cause: the release was not mirrored, or only in part.
//
// Remedy: mirror the release again: oc adm release mirror.
const ReasonImagesMissing finding.Reason = "ImagesMissing"

// ReasonBlobsMissing is reported when a manifest names blobs that the registry
// lacks.
//
// Cause: the image was mirrored only in part.
//
// Remedy: mirror the release again: oc adm release mirror.
const ReasonBlobsMissing finding.Reason = "BlobsMissing"

// ReasonDigestMismatch is reported when a registry serves other content than a
// digest identifies.
//
// Cause: a defect or compromise of the registry.
//
// Remedy: mirror the release again, or report it to the operators of the
// registry.
const ReasonDigestMismatch finding.Reason = "DigestMismatch"

// ReasonInvalidManifest is reported when a manifest is not one that nodes
// accept.
//
// Cause: the image is malformed.
//
// Remedy: do not update to this release.
const ReasonInvalidManifest finding.Reason = "InvalidManifest"

// ReasonManifestTooLarge is reported when a manifest is larger than nodes
// accept.
//
// Cause: the image is malformed.
//
// Remedy: do not update to this release.
const ReasonManifestTooLarge finding.Reason = "ManifestTooLarge"

// ReasonArchitectureMissing is reported when an image is missing for an
// architecture of the nodes.
//
// Cause: the release was not mirrored for all architectures.
//
// Remedy: mirror all architectures: oc adm release mirror --keep-manifest-list.
const ReasonArchitectureMissing finding.Reason = "ArchitectureMissing"

// ReasonMoreImages is reported when several causes are combined in one finding.
//
// Cause: images are unavailable for too many causes.
//
// Remedy: fix the other findings first.
const ReasonMoreImages finding.Reason = "MoreImages"
