// Package manifestfilter answers: would the cluster-version operator apply this manifest to this cluster?
//
// [Cluster.Filter] returns the [Violation] if it would not, and [Cluster.Include] the annotation for the profile of the
// cluster.
//
// Manifests are filtered by feature set, feature gate, capability, exclude annotation, cluster profile and
// ClusterVersion override as the cluster-version operator does (openshift/library-go pkg/manifest), with three
// differences. The cluster profile is required only if the manifest names one, since the operator itself would apply
// such a Job. A filter that cannot be evaluated, for this cluster or for any, does not exclude a manifest: it is
// Unknown, so no check is lost. And release.openshift.io/major-version, which the operator rejects on Jobs, is Unknown
// too.
package manifestfilter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The annotations that filter manifests (openshift/library-go pkg/manifest).
const (
	excludePrefix          = "exclude.release.openshift.io/"
	includePrefix          = "include.release.openshift.io/"
	featureSetAnnotation   = "release.openshift.io/feature-set"
	featureGateAnnotation  = "release.openshift.io/feature-gate"
	MajorVersionAnnotation = "release.openshift.io/major-version"
	CapabilityAnnotation   = "capability.openshift.io/name"
	// sideAnnotation names the cluster of a hosted cluster that a check is for: its guest, which is the
	// default, or its management cluster. A cluster that is not hosted is both.
	sideAnnotation, sideGuest, sideManagement = "openshift.io/preflight-side", "guest", "management"

	// defaultProfile is the cluster profile of a cluster that names none
	// (cluster-version-operator pkg/payload/payload.go).
	defaultProfile = "self-managed-high-availability"
)

// manifest is a typed Kubernetes object.
type manifest interface {
	runtime.Object
	metav1.Object
}

// Cluster is the configuration that decides which manifests apply to a cluster.
type Cluster struct {
	// Architecture is the architecture of the control plane (GOARCH): which image of an index
	// is read. Empty means any, since all have the same manifests.
	Architecture string
	// Profile is the cluster profile; empty means self-managed-high-availability.
	Profile string
	// Hosted is true for the guest of a hosted cluster, and Management if its management cluster is known: checks for
	// the management cluster run there.
	Hosted, Management bool
	// Exclude is the cluster-version operator's EXCLUDE_MANIFESTS.
	Exclude string
	// Features are the features that FeatureGate "cluster" enables and disables; nil when unknown.
	Features *Features
	// Capabilities are the capabilities in the status of ClusterVersion; nil when unknown.
	Capabilities *configv1.ClusterVersionCapabilitiesStatus
	// Overrides are the overrides in the spec of ClusterVersion.
	Overrides []configv1.ComponentOverride
}

// Features are the feature set and the enabled feature gates.
type Features struct {
	Set     configv1.FeatureSet
	Enabled []configv1.FeatureGateName
}

// Filter reports why the cluster-version operator would not apply the object to
// the cluster, in the operator's order of checks. It returns nil when it would,
// apart from the cluster profile.
func (c Cluster) Filter(object manifest) *Violation {
	annotations := object.GetAnnotations()
	for _, rule := range []func(manifest, map[string]string) *Violation{
		c.excluded, c.contradictory, c.featureSet, c.featureGates, c.majorVersion, c.capabilities, c.side,
	} {
		if found := rule(object, annotations); found != nil {
			return found
		}
	}
	return c.overridden(object)
}

// skipped reports a manifest that does not apply to this cluster.
func skipped(reason finding.Reason, annotation, message string) *Violation {
	return &Violation{
		Outcome: preflight.Skipped, Reason: reason, Annotation: annotation, Message: message,
		Remediation: "Ignore the manifest: it does not apply to this cluster.",
	}
}

// leftOut reports a manifest that the cluster-version operator applies to no cluster, most likely by mistake.
func leftOut(reason finding.Reason, annotation, message, remediation string) *Violation {
	return &Violation{
		Outcome: preflight.Skipped, Reason: reason, Annotation: annotation, Message: message,
		Remediation: ToAuthors + remediation,
	}
}

// undecided reports a manifest for which it is unknown whether it applies.
func undecided(reason finding.Reason, annotation, message, remediation string, actions ...finding.Action) *Violation {
	return &Violation{
		Outcome: preflight.Unknown, Reason: reason, Annotation: annotation, Message: message, Remediation: remediation,
		Actions: actions,
	}
}

func (c Cluster) excluded(object manifest, annotations map[string]string) *Violation {
	key := excludePrefix + c.Exclude
	if annotations[key] != "true" {
		return nil
	}
	return skipped(reasonExcluded, key, Identity(object)+" has the annotation "+key+": \"true\"")
}

func (Cluster) contradictory(object manifest, annotations map[string]string) *Violation {
	_, set := annotations[featureSetAnnotation]
	_, gate := annotations[featureGateAnnotation]
	if !set || !gate {
		return nil
	}
	return leftOut(reasonContradictoryFilters, featureSetAnnotation,
		fmt.Sprintf("%s has both annotations %s and %s; the cluster-version operator does not apply such manifests", Identity(object),
			featureSetAnnotation, featureGateAnnotation),
		"remove one of the two annotations.")
}

// featureSet evaluates a list of feature sets; blanks are not trimmed.
func (c Cluster) featureSet(object manifest, annotations map[string]string) *Violation {
	value, ok := annotations[featureSetAnnotation]
	if !ok {
		return nil
	}
	known := []configv1.FeatureSet{
		"Default", configv1.CustomNoUpgrade, configv1.DevPreviewNoUpgrade, configv1.OKD,
		configv1.TechPreviewNoUpgrade,
	}
	var sets []configv1.FeatureSet
	for name := range strings.SplitSeq(value, ",") {
		if !slices.Contains(known, configv1.FeatureSet(name)) {
			return leftOut(ReasonUnknownFeatureSet, featureSetAnnotation,
				fmt.Sprintf("%s is for feature set %.100q, which is not one of %s; the cluster-version operator does "+
					"not apply such manifests",
					Identity(object), name, list(known)),
				"list existing feature sets, separated by commas without blanks.")
		}
		sets = append(sets, configv1.FeatureSet(name))
	}
	if c.Features == nil {
		return featuresUnknown(object, featureSetAnnotation)
	}
	if has := cmp.Or(c.Features.Set, "Default"); !slices.Contains(sets, has) {
		return skipped(reasonOtherFeatureSet, featureSetAnnotation,
			fmt.Sprintf("%s is for the feature sets %s; the cluster has %s", Identity(object), list(sets), has))
	}
	return nil
}

// featureGates evaluates a list of gates that must be enabled or, with a minus sign, disabled.
// Items without a name require nothing.
func (c Cluster) featureGates(object manifest, annotations map[string]string) *Violation {
	value, ok := annotations[featureGateAnnotation]
	if !ok {
		return nil
	}
	for item := range strings.SplitSeq(value, ",") {
		name, off := strings.CutPrefix(strings.TrimSpace(item), "-")
		switch {
		case name == "":
			continue
		case c.Features == nil:
			return featuresUnknown(object, featureGateAnnotation)
		}
		switch on := slices.Contains(c.Features.Enabled, configv1.FeatureGateName(name)); {
		case on && off:
			return skipped(reasonFeatureGateEnabled, featureGateAnnotation,
				fmt.Sprintf("%s requires feature gate %s to be disabled, but it is enabled", Identity(object), words.External(name)))
		case !on && !off:
			return skipped(reasonFeatureGateDisabled, featureGateAnnotation,
				fmt.Sprintf("%s requires feature gate %s to be enabled, but it is disabled", Identity(object), words.External(name)))
		}
	}
	return nil
}

func featuresUnknown(object manifest, annotation string) *Violation {
	return undecided(reasonFeaturesUnknown, annotation,
		fmt.Sprintf("%s has the annotation %s, but the features of the cluster are unknown", Identity(object), annotation),
		"Obtain the permission to read the FeatureGate.", finding.Read("oc get featuregate cluster -o yaml"), finding.Roles())
}

func (Cluster) majorVersion(object manifest, annotations map[string]string) *Violation {
	if _, ok := annotations[MajorVersionAnnotation]; !ok {
		return nil
	}
	return leftOut(reasonMajorVersionFilter, MajorVersionAnnotation,
		fmt.Sprintf("%s has the annotation %s, which only FeatureGates and CustomResourceDefinitions can have; the "+
			"cluster-version operator does not apply such manifests", Identity(object), MajorVersionAnnotation),
		"check the version of the target in the check itself.")
}

// capabilities evaluates a list of capabilities that must all be enabled; an empty one
// requires none. One that the cluster does not know is new in the target, and disabled.
func (c Cluster) capabilities(object manifest, annotations map[string]string) *Violation {
	value := annotations[CapabilityAnnotation]
	if value == "" {
		return nil
	}
	for name := range strings.SplitSeq(value, "+") {
		switch capability := configv1.ClusterVersionCapability(name); {
		case c.Capabilities == nil:
			return undecided(reasonCapabilitiesUnknown, CapabilityAnnotation,
				fmt.Sprintf("%s has the annotation %s, but the capabilities of the cluster are unknown", Identity(object), CapabilityAnnotation),
				"Read the capabilities in the status of ClusterVersion.",
				finding.Read("oc get clusterversion version -o jsonpath={.status.capabilities}"))
		case slices.Contains(c.Capabilities.EnabledCapabilities, capability):
		case slices.Contains(c.Capabilities.KnownCapabilities, capability):
			return skipped(reasonCapabilityDisabled, CapabilityAnnotation,
				fmt.Sprintf("%s is for capability %s, which is disabled in the cluster", Identity(object), words.External(name)))
		default:
			return skipped(reasonCapabilityNotKnown, CapabilityAnnotation,
				fmt.Sprintf("%s is for capability %q, which is unknown to the cluster", Identity(object), words.External(name)))
		}
	}
	return nil
}

// WithoutCapability reports whether the object is for a capability that is disabled in the cluster, or that the cluster does not know.
func (c Cluster) WithoutCapability(object manifest) bool {
	found := c.capabilities(object, object.GetAnnotations())
	return found != nil && found.Outcome == preflight.Skipped
}

// ForManagement reports whether a manifest is for the management cluster of a hosted cluster.
func ForManagement(object metav1.Object) bool {
	return object.GetAnnotations()[sideAnnotation] == sideManagement
}

// side keeps a check for the management cluster from running in the guest, where it has nothing to read.
func (c Cluster) side(object manifest, annotations map[string]string) *Violation {
	value, ok := annotations[sideAnnotation]
	switch {
	case ok && value != sideGuest && value != sideManagement:
		return undecided(reasonUnknownSide, sideAnnotation,
			fmt.Sprintf("%s has the annotation %s with the value %q, which is neither %s nor %s", Identity(object), sideAnnotation,
				words.External(value), sideGuest, sideManagement),
			ToAuthors+"set the value to "+sideGuest+" or "+sideManagement+", or remove the annotation.")
	case value == sideManagement && c.Hosted && !c.Management:
		return undecided(reasonManagementSide, sideAnnotation,
			fmt.Sprintf("%s is for the management cluster of the hosted cluster, which this preflight of the guest "+
				"does not know", Identity(object)),
			"Run the preflight with the kubeconfig of the management cluster, and name the hosted cluster: `oc preflight run "+
				"--hosted-cluster NAMESPACE/NAME`.")
	}
	return nil
}

// overridden evaluates the first override of the object, as the operator does: a later override of the same object does
// not count (openshift/library-go pkg/manifest, getOverrideForManifest). For an object without a namespace, overrides
// of any namespace count.
func (c Cluster) overridden(object manifest) *Violation {
	kind := object.GetObjectKind().GroupVersionKind()
	first := slices.IndexFunc(c.Overrides, func(override configv1.ComponentOverride) bool {
		return override.Kind == kind.Kind && override.Group == kind.Group && override.Name == object.GetName() &&
			(override.Namespace == object.GetNamespace() || object.GetNamespace() == "")
	})
	if first < 0 || !c.Overrides[first].Unmanaged {
		return nil
	}
	return skipped(reasonOverridden, "", Identity(object)+
		" is unmanaged by spec.overrides of ClusterVersion \"version\", so the cluster-version operator does not apply it")
}

// Include returns the annotation that includes the object in the cluster's
// profile, "" when it names no profile at all.
func (c Cluster) Include(object manifest) (string, *Violation) {
	profile := cmp.Or(c.Profile, defaultProfile)
	var profiles []string
	for key := range object.GetAnnotations() {
		if name, ok := strings.CutPrefix(key, includePrefix); ok {
			profiles = append(profiles, words.External(name))
		}
	}
	if len(profiles) == 0 {
		return "", nil
	}
	slices.Sort(profiles)
	annotation := includePrefix + profile
	switch value, ok := object.GetAnnotations()[annotation]; {
	case !ok:
		return "", skipped(reasonOtherClusterProfile, includePrefix+profiles[0],
			fmt.Sprintf("%s is for the cluster profiles %s; the cluster has %s", Identity(object), words.External(strings.Join(profiles, ", ")),
				profile))
	case value != "true":
		return "", leftOut(reasonClusterProfileValue, annotation,
			fmt.Sprintf("%s has the annotation %s with the value %q; the cluster-version operator applies only manifests with \"true\"",
				Identity(object), annotation, words.External(value)),
			"set the value to \"true\", or remove the annotation.")
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

// Identity names an object in messages.
func Identity(object manifest) string {
	kind := object.GetObjectKind().GroupVersionKind().GroupKind().String()
	return fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
}
