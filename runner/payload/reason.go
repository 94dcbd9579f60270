package payload

import "github.com/openshift/update-preflight/collector/finding"

// The reasons for which the content of a release is rejected.
var (
	reasonNotARelease = finding.NewReason("NotARelease", finding.Explanation{
		Meaning: "Reported when an image lacks the files of a release.",
		Cause:   "The pull spec is not of a release image.",
		Remedy:  "Name a release image: oc adm release info.",
	})
	reasonInvalidRelease = finding.NewReason("InvalidRelease", finding.Explanation{
		Meaning: "Reported when image-references or release-metadata is invalid.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonVersionMismatch = finding.NewReason("VersionMismatch", finding.Explanation{
		Meaning: "Reported when image-references and release-metadata state different versions.",
		Cause:   "The image was not built as release images are.",
		Remedy:  "Compare the digest with the announcement of the release, and mirror the release again: oc adm release mirror.",
	})
	reasonTooManyPreflights = finding.NewReason("TooManyPreflights", finding.Explanation{
		Meaning: "Reported when the annotated objects of a release exceed the limits.",
		Cause:   "The release has too many or too large preflights.",
		Remedy:  "Report it to the publisher of the release.",
	})
	reasonTooManyProblems = finding.NewReason("TooManyProblems", finding.Explanation{
		Meaning: "Reported when too many manifests of a release are invalid.",
		Cause:   "The release is malformed.",
		Remedy:  "Report it to the publisher of the release.",
	})
	ReasonTooManyAdminGates = finding.NewReason("TooManyAdminGates", finding.Explanation{
		Meaning: "Reported when the admin gates of a release exceed the limits.",
		Cause:   "The release is malformed.",
		Remedy:  "Read the gates in the release: oc adm release extract.",
	})
	reasonMetadataNotString = finding.NewReason("MetadataNotString", finding.Explanation{
		Meaning: "Reported when a value of the release metadata is not a string.",
		Cause:   "The release was built by an incompatible tool.",
		Remedy:  "Report it to the publisher of the release.",
	})
	reasonImageNotByDigest = finding.NewReason("ImageNotByDigest", finding.Explanation{
		Meaning: "Reported when the release lists an image without a digest, which its signature does not cover.",
		Cause:   "The release was built by an incompatible tool.",
		Remedy:  "Do not update to this release.",
	})
	reasonBrokenManifest = finding.NewReason("BrokenManifest", finding.Explanation{
		Meaning: "Reported when a manifest without a preflight cannot be parsed.",
		Cause:   "The manifest is malformed; the cluster-version operator would reject the release.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonBrokenPreflight = finding.NewReason("BrokenPreflight", finding.Explanation{
		Meaning: "Reported when a manifest that mentions the preflight annotation cannot be parsed.",
		Cause:   "The manifest is malformed, so its check cannot be run.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonDuplicateManifest = finding.NewReason("DuplicateManifest", finding.Explanation{
		Meaning: "Reported when two manifests define the same object.",
		Cause:   "The object was copied to another file.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonIrregularPreflight = finding.NewReason("IrregularPreflight", finding.Explanation{
		Meaning: "Reported when a preflight uses YAML that parsers may read differently.",
		Cause:   "The manifest has an alias or a duplicate key.",
		Remedy:  "Report it to the authors of the component: preflights must not use aliases or duplicate keys.",
	})
	reasonPreflightTooLarge = finding.NewReason("PreflightTooLarge", finding.Explanation{
		Meaning: "Reported when an object of a preflight has too many fields.",
		Cause:   "The manifest is too large.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonAnnotationValue = finding.NewReason("AnnotationValue", finding.Explanation{
		Meaning: "Reported when the preflight annotation is neither \"true\" nor \"false\".",
		Cause:   "A typing error in the manifest.",
		Remedy:  "Report it to the authors of the component: the value must be \"true\".",
	})
	reasonAnnotationNotString = finding.NewReason("AnnotationNotString", finding.Explanation{
		Meaning: "Reported when the preflight annotation is not a string.",
		Cause:   "The value is not quoted.",
		Remedy:  "Report it to the authors of the component: quote the value.",
	})
	reasonAnnotationMisplaced = finding.NewReason("AnnotationMisplaced", finding.Explanation{
		Meaning: "Reported when the preflight annotation is not among the annotations of the object.",
		Cause:   "The annotation is on the pod template or another nested object, so no check is run.",
		Remedy:  "Report it to the authors of the component: set the annotation on the Job.",
	})
	reasonListNotSupported = finding.NewReason("ListNotSupported", finding.Explanation{
		Meaning: "Reported when a List contains a preflight.",
		Cause:   "The manifest has several objects in one.",
		Remedy:  "Report it to the authors of the component: use separate documents.",
	})
	reasonUnsupportedKind = finding.NewReason("UnsupportedKind", finding.Explanation{
		Meaning: "Reported when an object of another kind has the preflight annotation.",
		Cause:   "Only Jobs, ServiceAccounts, ConfigMaps, and roles with their bindings are supported.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonInvalidPreflight = finding.NewReason("InvalidPreflight", finding.Explanation{
		Meaning: "Reported when an object of a preflight cannot be decoded.",
		Cause:   "The manifest has unknown or duplicate fields, or lacks apiVersion or kind.",
		Remedy: "Report it to the authors of the component: oc create --dry-run=server --validate=strict -f FILE " +
			"validates the manifest.",
	})
	reasonInvalidName = finding.NewReason("InvalidName", finding.Explanation{
		Meaning: "Reported when an object of a preflight has no valid name.",
		Cause:   "The manifest is invalid.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonInvalidNamespace = finding.NewReason("InvalidNamespace", finding.Explanation{
		Meaning: "Reported when an object of a preflight has no valid namespace, or has one although its kind has none.",
		Cause:   "The manifest is invalid.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonDeleteAnnotation = finding.NewReason("DeleteAnnotation", finding.Explanation{
		Meaning: "Reported when a preflight has the annotation to be deleted.",
		Cause:   "The manifest is contradictory.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonAppliedByClusterVersionOperator = finding.NewReason("AppliedByClusterVersionOperator", finding.Explanation{
		Meaning: "Reported when the cluster-version operator would also run a preflight during the update.",
		Cause:   "The manifest has the annotation of a cluster profile.",
		Remedy:  "Report it to the authors of the component: remove the annotation.",
	})
	reasonTooManyDefinitions = finding.NewReason("TooManyDefinitions", finding.Explanation{
		Meaning: "Reported when the CustomResourceDefinitions of a release exceed the limit.",
		Cause:   "The release is malformed.",
		Remedy:  "Read the CustomResourceDefinitions in the release: oc adm release extract.",
	})
)
