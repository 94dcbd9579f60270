package payload

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

// ReasonMalformedLayer is reported when the layer of the manifests is not a
// valid tar archive.
//
// Cause: the image is not a release image, or was built by an incompatible
// tool.
//
// Remedy: compare the digest with the announcement of the release, and mirror
// the release again: oc adm release mirror.
const ReasonMalformedLayer finding.Reason = "MalformedLayer"

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

// ReasonExcluded is reported when a preflight is excluded by EXCLUDE_MANIFESTS
// of the cluster-version operator.
//
// Cause: the cluster is of another kind.
//
// Remedy: none is needed.
const ReasonExcluded finding.Reason = "Excluded"

// ReasonOtherClusterProfile is reported when a preflight is for other cluster
// profiles.
//
// Cause: the cluster has another profile.
//
// Remedy: none is needed.
const ReasonOtherClusterProfile finding.Reason = "OtherClusterProfile"

// ReasonClusterProfileValue is reported when the annotation of a cluster
// profile is not "true". The preflight is not run.
//
// Cause: the cluster-version operator applies no such manifest. It may be a typing error.
//
// Remedy: report it to the authors of the component: the value must be "true".
const ReasonClusterProfileValue finding.Reason = "ClusterProfileValue"

// ReasonContradictoryFilters is reported when a preflight has annotations for
// both a feature set and feature gates.
//
// Cause: the cluster-version operator applies no such manifest, and the preflight is not run.
//
// Remedy: report it to the authors of the component: remove one of them.
const ReasonContradictoryFilters finding.Reason = "ContradictoryFilters"

// ReasonUnknownFeatureSet is reported when a preflight names an unknown feature
// set. It is not run.
//
// Cause: a typing error in the manifest, which the cluster-version operator does not apply.
//
// Remedy: report it to the authors of the component.
const ReasonUnknownFeatureSet finding.Reason = "UnknownFeatureSet"

// ReasonOtherFeatureSet is reported when a preflight is for other feature sets.
//
// Cause: the cluster has another feature set.
//
// Remedy: none is needed.
const ReasonOtherFeatureSet finding.Reason = "OtherFeatureSet"

// ReasonFeatureGateEnabled is reported when a preflight requires a disabled
// feature gate that is enabled.
//
// Cause: the cluster has other features.
//
// Remedy: none is needed.
const ReasonFeatureGateEnabled finding.Reason = "FeatureGateEnabled"

// ReasonFeatureGateDisabled is reported when a preflight requires an enabled
// feature gate that is disabled.
//
// Cause: the cluster has other features.
//
// Remedy: none is needed.
const ReasonFeatureGateDisabled finding.Reason = "FeatureGateDisabled"

// ReasonFeaturesUnknown is reported when the features of the cluster could not
// be read.
//
// Cause: a permission is missing, or the API server did not respond.
//
// Remedy: obtain the permission: oc get featuregate cluster -o yaml.
const ReasonFeaturesUnknown finding.Reason = "FeaturesUnknown"

// ReasonMajorVersionFilter is reported when a preflight has the annotation for
// major versions.
//
// Cause: the annotation applies only to FeatureGates and
// CustomResourceDefinitions, and the cluster-version operator applies no other manifest with it.
//
// Remedy: report it to the authors of the component: check the version of the
// target in the check.
const ReasonMajorVersionFilter finding.Reason = "MajorVersionFilter"

// ReasonCapabilitiesUnknown is reported when the capabilities of the cluster
// could not be read.
//
// Cause: ClusterVersion "version" has no capabilities in its status.
//
// Remedy: read them: oc get clusterversion version -o
// jsonpath={.status.capabilities}.
const ReasonCapabilitiesUnknown finding.Reason = "CapabilitiesUnknown"

// ReasonCapabilityDisabled is reported when a preflight is for a disabled
// capability.
//
// Cause: the cluster has not enabled the capability.
//
// Remedy: none is needed.
const ReasonCapabilityDisabled finding.Reason = "CapabilityDisabled"

// ReasonCapabilityNotKnown is reported when a preflight is for a capability
// that the cluster does not know.
//
// Cause: the capability is new in the target.
//
// Remedy: none is needed.
const ReasonCapabilityNotKnown finding.Reason = "CapabilityNotKnown"

// ReasonOverridden is reported when a preflight is unmanaged by spec.overrides
// of ClusterVersion.
//
// Cause: an administrator excluded the object from management.
//
// Remedy: none is needed.
const ReasonOverridden finding.Reason = "Overridden"

// ReasonTooManyDefinitions is reported when the CustomResourceDefinitions of a
// release exceed the limit.
//
// Cause: the release is malformed.
//
// Remedy: read the CustomResourceDefinitions in the release: oc adm release extract.
const ReasonTooManyDefinitions finding.Reason = "TooManyDefinitions"
