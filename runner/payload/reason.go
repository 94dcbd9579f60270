package payload

import "github.com/openshift/update-preflight/collector/finding"

// ReasonNotARelease is reported when an image lacks the files of a release.
//
// Cause: the pull spec is not of a release image.
//
// Remedy: name a release image: oc adm release info.
const ReasonNotARelease finding.Reason = "NotARelease"

// ReasonInvalidRelease is reported when image-references or release-metadata is
// invalid.
//
// Cause: the image was not built as release images are.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonInvalidRelease finding.Reason = "InvalidRelease"

// ReasonVersionMismatch is reported when image-references and release-metadata
// state different versions.
//
// Cause: the image was not built as release images are.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonVersionMismatch finding.Reason = "VersionMismatch"

// ReasonTooManyPreflights is reported when the annotated objects of a release
// exceed the limits.
//
// Cause: the release has too many or too large preflights.
//
// Remedy: report it to the publisher of the release.
const ReasonTooManyPreflights finding.Reason = "TooManyPreflights"

// ReasonTooManyProblems is reported when too many manifests of a release are
// invalid.
//
// Cause: the release is malformed.
//
// Remedy: report it to the publisher of the release.
const ReasonTooManyProblems finding.Reason = "TooManyProblems"

// ReasonTooManyAdminGates is reported when the admin gates of a release exceed
// the limits.
//
// Cause: the release is malformed.
//
// Remedy: read the gates in the release: oc adm release extract.
const ReasonTooManyAdminGates finding.Reason = "TooManyAdminGates"

// ReasonMetadataNotString is reported when a value of the release metadata is
// not a string.
//
// Cause: the release was built by an incompatible tool.
//
// Remedy: report it to the publisher of the release.
const ReasonMetadataNotString finding.Reason = "MetadataNotString"

// ReasonImageNotByDigest is reported when the release lists an image without a
// digest, which its signature does not cover.
//
// Cause: the release was built by an incompatible tool.
//
// Remedy: do not update to this release.
const ReasonImageNotByDigest finding.Reason = "ImageNotByDigest"

// ReasonBrokenManifest is reported when a manifest without a preflight cannot
// be parsed.
//
// Cause: the manifest is malformed; the cluster-version operator would reject
// the release.
//
// Remedy: report it to the authors of the component.
const ReasonBrokenManifest finding.Reason = "BrokenManifest"

// ReasonBrokenPreflight is reported when a manifest that mentions the preflight
// annotation cannot be parsed.
//
// Cause: the manifest is malformed, so its check cannot be run.
//
// Remedy: report it to the authors of the component.
const ReasonBrokenPreflight finding.Reason = "BrokenPreflight"

// ReasonDuplicateManifest is reported when two manifests define the same
// object.
//
// Cause: the object was copied to another file.
//
// Remedy: report it to the authors of the component.
const ReasonDuplicateManifest finding.Reason = "DuplicateManifest"

// ReasonIrregularPreflight is reported when a preflight uses YAML that parsers
// may read differently.
//
// Cause: the manifest has an alias or a duplicate key.
//
// Remedy: report it to the authors of the component: preflights must not use
// aliases or duplicate keys.
const ReasonIrregularPreflight finding.Reason = "IrregularPreflight"

// ReasonPreflightTooLarge is reported when an object of a preflight has too
// many fields.
//
// Cause: the manifest is too large.
//
// Remedy: report it to the authors of the component.
const ReasonPreflightTooLarge finding.Reason = "PreflightTooLarge"

// ReasonAnnotationValue is reported when the preflight annotation is neither
// "true" nor "false".
//
// Cause: a typing error in the manifest.
//
// Remedy: report it to the authors of the component: the value must be "true".
const ReasonAnnotationValue finding.Reason = "AnnotationValue"

// ReasonAnnotationNotString is reported when the preflight annotation is not a
// string.
//
// Cause: the value is not quoted.
//
// Remedy: report it to the authors of the component: quote the value.
const ReasonAnnotationNotString finding.Reason = "AnnotationNotString"

// ReasonAnnotationMisplaced is reported when the preflight annotation is not
// among the annotations of the object.
//
// Cause: the annotation is on the pod template or another nested object, so no
// check is run.
//
// Remedy: report it to the authors of the component: set the annotation on the
// Job.
const ReasonAnnotationMisplaced finding.Reason = "AnnotationMisplaced"

// ReasonListNotSupported is reported when a List contains a preflight.
//
// Cause: the manifest has several objects in one.
//
// Remedy: report it to the authors of the component: use separate documents.
const ReasonListNotSupported finding.Reason = "ListNotSupported"

// ReasonUnsupportedKind is reported when an object of another kind has the
// preflight annotation.
//
// Cause: only Jobs, ServiceAccounts, ConfigMaps, and roles with their bindings
// are supported.
//
// Remedy: report it to the authors of the component.
const ReasonUnsupportedKind finding.Reason = "UnsupportedKind"

// ReasonInvalidPreflight is reported when an object of a preflight cannot be
// decoded.
//
// Cause: the manifest has unknown or duplicate fields, or lacks apiVersion or
// kind.
//
// Remedy: report it to the authors of the component: oc create --dry-run=server
// --validate=strict -f FILE validates the manifest.
const ReasonInvalidPreflight finding.Reason = "InvalidPreflight"

// ReasonInvalidName is reported when an object of a preflight has no valid
// name.
//
// Cause: the manifest is invalid.
//
// Remedy: report it to the authors of the component.
const ReasonInvalidName finding.Reason = "InvalidName"

// ReasonInvalidNamespace is reported when an object of a preflight has no valid
// namespace, or has one although its kind has none.
//
// Cause: the manifest is invalid.
//
// Remedy: report it to the authors of the component.
const ReasonInvalidNamespace finding.Reason = "InvalidNamespace"

// ReasonDeleteAnnotation is reported when a preflight has the annotation to be
// deleted.
//
// Cause: the manifest is contradictory.
//
// Remedy: report it to the authors of the component.
const ReasonDeleteAnnotation finding.Reason = "DeleteAnnotation"

// ReasonAppliedByClusterVersionOperator is reported when the cluster-version
// operator would also run a preflight during the update.
//
// Cause: the manifest has the annotation of a cluster profile.
//
// Remedy: report it to the authors of the component: remove the annotation.
const ReasonAppliedByClusterVersionOperator finding.Reason = "AppliedByClusterVersionOperator"

// ReasonTooManyDefinitions is reported when the CustomResourceDefinitions of a
// release exceed the limit.
//
// Cause: the release is malformed.
//
// Remedy: read the CustomResourceDefinitions in the release: oc adm release extract.
const ReasonTooManyDefinitions finding.Reason = "TooManyDefinitions"
