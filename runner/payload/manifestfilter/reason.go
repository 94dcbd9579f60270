package manifestfilter

import "github.com/openshift/update-preflight/collector/finding"

// ReasonExcluded is reported when a preflight is excluded by EXCLUDE_MANIFESTS
// of the cluster-version operator.
//
// Cause: the cluster is of another kind.
//
// Remedy: none is needed.
const ReasonExcluded finding.Reason = "Excluded"

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
