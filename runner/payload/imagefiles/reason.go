package imagefiles

import "github.com/openshift/update-preflight/collector/finding"

var (
	reasonNotVerified = finding.NewReason("NotVerified", finding.Explanation{
		Meaning: "Reported when a release is read that was not verified.",
		Cause:   "A defect of the calling program.",
		Remedy:  "Verify the release first.",
	})
	reasonInvalidPullSpec = finding.NewReason("InvalidPullSpec", finding.Explanation{
		Meaning: "Reported when the pull spec of the release is not by the verified digest.",
		Cause:   "A defect of the calling program.",
		Remedy:  "Name the release as REPOSITORY@sha256:DIGEST.",
	})
	reasonDigestMismatch = finding.NewReason("DigestMismatch", finding.Explanation{
		Meaning: "Reported when a registry serves other content than the digest identifies.",
		Cause:   "A defect or compromise of the registry or a proxy.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonLayerTruncated = finding.NewReason("LayerTruncated", finding.Explanation{
		Meaning: "Reported when a registry ends the response before the layer is complete.",
		Cause:   "The connection broke, or the registry lacks a part of the layer.",
		Remedy:  "Run the preflight again; if it persists, mirror the release again: oc adm release mirror.",
	})
	reasonLayerTooLarge = finding.NewReason("LayerTooLarge", finding.Explanation{
		Meaning: "Reported when the layer of the manifests exceeds the limits.",
		Cause:   "The image is not a release image.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonDuplicateEntry = finding.NewReason("DuplicateEntry", finding.Explanation{
		Meaning: "Reported when the layer has a file twice.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonUnsafeEntry = finding.NewReason("UnsafeEntry", finding.Explanation{
		Meaning: "Reported when the layer has an entry with a path outside of the image.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonNotAFile = finding.NewReason("NotAFile", finding.Explanation{
		Meaning: "Reported when an entry of the manifests is not a regular file.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonWhiteout = finding.NewReason("Whiteout", finding.Explanation{
		Meaning: "Reported when the layer deletes a manifest of a lower layer.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonFileTooLarge = finding.NewReason("FileTooLarge", finding.Explanation{
		Meaning: "Reported when a manifest exceeds 8 MiB.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonMalformedLayer = finding.NewReason("MalformedLayer", finding.Explanation{
		Meaning: "Reported when the layer of the manifests is not a valid tar archive.",
		Cause:   "The image is not a release image, or was built by an incompatible tool.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
)
