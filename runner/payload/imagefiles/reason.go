package imagefiles

import "github.com/openshift/update-preflight/collector/finding"

// ReasonNotVerified is reported when a release is read that was not verified.
//
// Cause: a defect of the calling program.
//
// Remedy: verify the release first.
const ReasonNotVerified finding.Reason = "NotVerified"

// ReasonInvalidPullSpec is reported when the pull spec of the release is not by
// the verified digest.
//
// Cause: a defect of the calling program.
//
// Remedy: name the release as REPOSITORY@sha256:DIGEST.
const ReasonInvalidPullSpec finding.Reason = "InvalidPullSpec"

// ReasonDigestMismatch is reported when a registry serves other content than
// the digest identifies.
//
// Cause: a defect or compromise of the registry or a proxy.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonDigestMismatch finding.Reason = "DigestMismatch"

// ReasonLayerTruncated is reported when a registry ends the response before the
// layer is complete.
//
// Cause: the connection broke, or the registry lacks a part of the layer.
//
// Remedy: run the preflight again; if it persists, mirror the release again: oc
// adm release mirror.
const ReasonLayerTruncated finding.Reason = "LayerTruncated"

// ReasonLayerTooLarge is reported when the layer of the manifests exceeds the
// limits.
//
// Cause: the image is not a release image.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonLayerTooLarge finding.Reason = "LayerTooLarge"

// ReasonDuplicateEntry is reported when the layer has a file twice.
//
// Cause: the image was not built as release images are.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonDuplicateEntry finding.Reason = "DuplicateEntry"

// ReasonUnsafeEntry is reported when the layer has an entry with a path outside
// of the image.
//
// Cause: the image was not built as release images are.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonUnsafeEntry finding.Reason = "UnsafeEntry"

// ReasonNotAFile is reported when an entry of the manifests is not a regular
// file.
//
// Cause: the image was not built as release images are.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonNotAFile finding.Reason = "NotAFile"

// ReasonWhiteout is reported when the layer deletes a manifest of a lower
// layer.
//
// Cause: the image was not built as release images are.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonWhiteout finding.Reason = "Whiteout"

// ReasonFileTooLarge is reported when a manifest exceeds 8 MiB.
//
// Cause: the image was not built as release images are.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonFileTooLarge finding.Reason = "FileTooLarge"

// ReasonMalformedLayer is reported when the layer of the manifests is not a
// valid tar archive.
//
// Cause: the image is not a release image, or was built by an incompatible
// tool.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonMalformedLayer finding.Reason = "MalformedLayer"
