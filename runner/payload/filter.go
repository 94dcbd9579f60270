package payload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The annotations that filter manifests (openshift/library-go pkg/manifest).
const (
	excludePrefix          = "exclude.release.openshift.io/"
	includePrefix          = "include.release.openshift.io/"
	featureSetAnnotation   = "release.openshift.io/feature-set"
	featureGateAnnotation  = "release.openshift.io/feature-gate"
	majorVersionAnnotation = "release.openshift.io/major-version"
	capabilityAnnotation   = "capability.openshift.io/name"

	// defaultProfile is the cluster profile of a cluster that names none
	// (cluster-version-operator pkg/payload/payload.go).
	defaultProfile = "self-managed-high-availability"
)

// Cluster is what decides which manifests of a release count for a cluster.
type Cluster struct {
	// Architecture of the control plane, as Go calls it: which image of an index
	// is read. Empty takes any, since all hold the same manifests.
	Architecture string
	// Profile is the cluster profile; empty means self-managed-high-availability.
	Profile string
	// Exclude is the cluster-version operator's EXCLUDE_MANIFESTS.
	Exclude string
	// Features are what FeatureGate "cluster" says; nil when it is not known.
	Features *Features
	// Capabilities are those of the cluster's status; nil when they are not
	// known.
	Capabilities *configv1.ClusterVersionCapabilitiesStatus
	// Overrides are those of ClusterVersion's spec.
	Overrides []configv1.ComponentOverride
}

// Features are the feature set and the gates that are on.
type Features struct {
	Set     configv1.FeatureSet
	Enabled []configv1.FeatureGateName
}

// filter says why the cluster-version operator would not apply the object to
// the cluster, in the order in which it looks. It returns nil when it would,
// but for the cluster profile.
func (c Cluster) filter(object Object) *problem {
	annotations := object.GetAnnotations()
	for _, rule := range []func(Object, map[string]string) *problem{
		c.excluded, c.contradictory, c.featureSet, c.featureGates, c.majorVersion, c.capabilities,
	} {
		if said := rule(object, annotations); said != nil {
			return said
		}
	}
	return c.overridden(object)
}

// skipped is said of what does not apply to this cluster.
func skipped(reason, annotation, message string) *problem {
	return &problem{
		outcome: preflight.Skipped, reason: reason, annotation: annotation, message: message,
		remediation: "Nothing is to be done: the manifest is not for a cluster like this one.",
	}
}

// unreadableFilter is said of what nobody can tell whether it applies.
func unreadableFilter(reason, annotation, message, remediation string) *problem {
	return &problem{outcome: preflight.Unknown, reason: reason, annotation: annotation, message: message, remediation: remediation}
}

func (c Cluster) excluded(object Object, annotations map[string]string) *problem {
	key := excludePrefix + c.Exclude
	if annotations[key] != "true" {
		return nil
	}
	return skipped("Excluded", key, identity(object)+" has the annotation "+key+": \"true\"")
}

func (Cluster) contradictory(object Object, annotations map[string]string) *problem {
	_, set := annotations[featureSetAnnotation]
	_, gate := annotations[featureGateAnnotation]
	if !set || !gate {
		return nil
	}
	return unreadableFilter("ContradictoryFilters", featureSetAnnotation,
		fmt.Sprintf("%s has both annotations %s and %s, and the cluster-version operator applies no such manifest", identity(object), featureSetAnnotation, featureGateAnnotation),
		toAuthors+"keep one of the two.")
}

// featureSet takes a list of sets, as it is: blanks count.
func (c Cluster) featureSet(object Object, annotations map[string]string) *problem {
	value, ok := annotations[featureSetAnnotation]
	if !ok {
		return nil
	}
	known := []configv1.FeatureSet{"Default", configv1.CustomNoUpgrade, configv1.DevPreviewNoUpgrade, configv1.OKD, configv1.TechPreviewNoUpgrade}
	var sets []configv1.FeatureSet
	for name := range strings.SplitSeq(value, ",") {
		if !slices.Contains(known, configv1.FeatureSet(name)) {
			return unreadableFilter("UnknownFeatureSet", featureSetAnnotation,
				fmt.Sprintf("%s is for the feature set %.100q, which is none of %s", identity(object), name, list(known)),
				toAuthors+"name feature sets that exist, with commas and no blanks between them.")
		}
		sets = append(sets, configv1.FeatureSet(name))
	}
	if c.Features == nil {
		return featuresUnknown(object, featureSetAnnotation)
	}
	if has := cmp.Or(c.Features.Set, "Default"); !slices.Contains(sets, has) {
		return skipped("OtherFeatureSet", featureSetAnnotation,
			fmt.Sprintf("%s is for the feature sets %s, and the cluster has %s", identity(object), list(sets), has))
	}
	return nil
}

// featureGates takes a list of gates that must be on or, with a minus sign, off.
func (c Cluster) featureGates(object Object, annotations map[string]string) *problem {
	value, ok := annotations[featureGateAnnotation]
	if !ok {
		return nil
	}
	for item := range strings.SplitSeq(value, ",") {
		name, off := strings.CutPrefix(strings.TrimSpace(item), "-")
		switch {
		case name == "":
			return unreadableFilter("UnreadableFeatureGate", featureGateAnnotation,
				fmt.Sprintf("%s has the annotation %s with the value %q, which lacks the name of a gate", identity(object), featureGateAnnotation, oneLine(value)),
				toAuthors+"the value is a list of feature gates.")
		case c.Features == nil:
			return featuresUnknown(object, featureGateAnnotation)
		}
		switch on := slices.Contains(c.Features.Enabled, configv1.FeatureGateName(name)); {
		case on && off:
			return skipped("FeatureGateEnabled", featureGateAnnotation, fmt.Sprintf("%s is for clusters with the feature gate %s off, and it is on", identity(object), oneLine(name)))
		case !on && !off:
			return skipped("FeatureGateDisabled", featureGateAnnotation, fmt.Sprintf("%s is for clusters with the feature gate %s on, and it is not", identity(object), oneLine(name)))
		}
	}
	return nil
}

func featuresUnknown(object Object, annotation string) *problem {
	return unreadableFilter("FeaturesUnknown", annotation,
		fmt.Sprintf("%s has the annotation %s, and the features of the cluster are not known", identity(object), annotation),
		"Get the permission to read it: oc get featuregate cluster -o yaml")
}

func (Cluster) majorVersion(object Object, annotations map[string]string) *problem {
	if _, ok := annotations[majorVersionAnnotation]; !ok {
		return nil
	}
	return unreadableFilter("MajorVersionFilter", majorVersionAnnotation,
		fmt.Sprintf("%s has the annotation %s, which only FeatureGates and CustomResourceDefinitions can have", identity(object), majorVersionAnnotation),
		toAuthors+"have the check look at the target's version itself.")
}

// capabilities takes a list of capabilities that must all be on. One that the
// cluster does not know is new in the target, and off.
func (c Cluster) capabilities(object Object, annotations map[string]string) *problem {
	value, ok := annotations[capabilityAnnotation]
	if !ok {
		return nil
	}
	for name := range strings.SplitSeq(value, "+") {
		switch capability := configv1.ClusterVersionCapability(name); {
		case name == "":
			return unreadableFilter("UnreadableCapability", capabilityAnnotation,
				fmt.Sprintf("%s has the annotation %s with the value %q, which lacks the name of a capability", identity(object), capabilityAnnotation, oneLine(value)),
				toAuthors+"the value is a list of capabilities with plus signs between them.")
		case c.Capabilities == nil:
			return unreadableFilter("CapabilitiesUnknown", capabilityAnnotation,
				fmt.Sprintf("%s has the annotation %s, and the capabilities of the cluster are not known", identity(object), capabilityAnnotation),
				"Look at what ClusterVersion says: oc get clusterversion version -o jsonpath={.status.capabilities}")
		case slices.Contains(c.Capabilities.EnabledCapabilities, capability):
		case slices.Contains(c.Capabilities.KnownCapabilities, capability):
			return skipped("CapabilityDisabled", capabilityAnnotation, fmt.Sprintf("%s is for the capability %s, which the cluster has not enabled", identity(object), oneLine(name)))
		default:
			return skipped("CapabilityNotKnown", capabilityAnnotation, fmt.Sprintf("%s is for the capability %s, which the cluster does not know", identity(object), oneLine(name)))
		}
	}
	return nil
}

func (c Cluster) overridden(object Object) *problem {
	kind := object.GetObjectKind().GroupVersionKind()
	for _, override := range c.Overrides {
		if override.Unmanaged && override.Kind == kind.Kind && override.Group == kind.Group &&
			override.Namespace == object.GetNamespace() && override.Name == object.GetName() {
			return skipped("Overridden", "", identity(object)+" is unmanaged by spec.overrides of ClusterVersion \"version\", so that the cluster-version operator leaves it alone")
		}
	}
	return nil
}

// include returns the annotation that includes the object for the cluster's
// profile, "" when it names no profile at all.
func (c Cluster) include(object Object) (string, *problem) {
	profile := cmp.Or(c.Profile, defaultProfile)
	var profiles []string
	for key := range object.GetAnnotations() {
		if name, ok := strings.CutPrefix(key, includePrefix); ok {
			profiles = append(profiles, oneLine(name))
		}
	}
	if len(profiles) == 0 {
		return "", nil
	}
	slices.Sort(profiles)
	annotation := includePrefix + profile
	switch value, ok := object.GetAnnotations()[annotation]; {
	case !ok:
		return "", skipped("OtherClusterProfile", includePrefix+profiles[0],
			fmt.Sprintf("%s is for the cluster profiles %s, not for %s", identity(object), oneLine(strings.Join(profiles, ", ")), profile))
	case value != "true":
		said := fail("ClusterProfileValue", fmt.Sprintf("%s has the annotation %s with the value %q", identity(object), annotation, oneLine(value)), toAuthors+"the value must be \"true\".")
		said.annotation = annotation
		return "", said
	}
	return annotation, nil
}

func list[T ~string](names []T) string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return strings.Join(texts, ", ")
}
