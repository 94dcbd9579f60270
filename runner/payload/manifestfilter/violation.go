package manifestfilter

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
)

// maxName bounds the name of a finding, below the limit of 256 of ClusterVersion for names of risks.
const maxName = 200

// ToAuthors begins the remedy of a defect of a manifest.
const ToAuthors = "Report it to the authors of the component: "

// Violation is a broken rule or an unmet filter of a manifest, without its place.
type Violation struct {
	Outcome              preflight.Outcome
	Reason               finding.Reason
	Message, Remediation string
	Actions              []finding.Action
	// Annotation is the affected annotation, line its line in the file; "" and 0 when the whole object is affected.
	Annotation string
	Line       int
}

// Fail returns a violation for which the manifest is not applied.
func Fail(reason finding.Reason, message, remediation string, actions ...finding.Action) *Violation {
	return &Violation{Outcome: preflight.Fail, Reason: reason, Message: message, Remediation: remediation, Actions: actions}
}

// Warn returns a violation that does not block.
func Warn(reason finding.Reason, message, remediation string, actions ...finding.Action) *Violation {
	return &Violation{Outcome: preflight.Warn, Reason: reason, Message: message, Remediation: remediation, Actions: actions}
}

// At is the finding for a violation at a place in a file. Fail and Unknown block.
func (v *Violation) At(file string, place manifestdoc.Place) finding.Finding {
	message := words.External(file) + ": " + v.Message
	evidence := map[string]string{"file": words.External(file)}
	if v.Annotation != "" {
		evidence["annotation"] = words.External(v.Annotation)
	}
	if v.Line > 0 {
		place.Line = v.Line
	}
	if place.Number > 0 {
		evidence["document"] = strconv.Itoa(place.Number)
		evidence["line"] = strconv.Itoa(place.Line)
		message = words.External(file) + ", document " + strconv.Itoa(place.Number) + " (line " + strconv.Itoa(place.Line) + "): " + v.Message
	}
	return finding.Reported(gap.Proven("the annotations of the manifest"), v.Outcome, v.Reason, "%s",
		message).Named(findingName(file)).From(finding.SourcePayload).
		Remedy("%s", v.Remediation).Do(v.Actions...).Observed(evidence)
}

// findingName derives the name of a finding from the name of a file:
// 0000_50_cloud-credential_preflight.yaml is Payload.CloudCredentialPreflight.
func findingName(file string) string {
	stem := strings.TrimSuffix(file, path.Ext(file))
	stem = regexp.MustCompile(`^0000_\d+_`).ReplaceAllString(stem, "")
	words := strings.FieldsFunc(stem, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	name := strings.TrimSuffix("Payload."+strings.Join(words, ""), ".")
	return name[:min(len(name), maxName)]
}

// Component returns the part of the file's name that identifies the component that
// ships it (cluster-version-operator pkg/payload/task_graph.go), or the name
// without extension if it has another form.
func Component(file string) string {
	match := regexp.MustCompile(`^0000_(\d+)_([a-zA-Z0-9]+(-[a-zA-Z0-9]+)*?)_`).FindStringSubmatch(file)
	if match == nil {
		return strings.TrimSuffix(file, path.Ext(file))
	}
	return match[2]
}

// The reasons for which a manifest is left out, or may be.
var (
	reasonExcluded = finding.NewReason("Excluded", finding.Explanation{
		Meaning: "EXCLUDE_MANIFESTS of the cluster-version operator excludes the check.",
		Cause:   "The cluster is of another kind.",
	})
	reasonContradictoryFilters = finding.NewReason("ContradictoryFilters", finding.Explanation{
		Meaning: "The check has annotations for both a feature set and feature gates.",
		Cause:   "The cluster-version operator does not apply such manifests, so the check does not run.",
		Remedy:  "Report it to the authors of the component: remove one of them.",
	})
	ReasonUnknownFeatureSet = finding.NewReason("UnknownFeatureSet", finding.Explanation{
		Meaning: "The check names an unknown feature set. It does not run.",
		Cause:   "The manifest has a typo, and the cluster-version operator does not apply it.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonOtherFeatureSet = finding.NewReason("OtherFeatureSet", finding.Explanation{
		Meaning: "The check is for other feature sets.",
		Cause:   "The cluster uses a different feature set.",
	})
	reasonFeatureGateEnabled = finding.NewReason("FeatureGateEnabled", finding.Explanation{
		Meaning: "The check requires a feature gate to be disabled, but it is enabled.",
		Cause:   "The cluster has different features.",
	})
	reasonFeatureGateDisabled = finding.NewReason("FeatureGateDisabled", finding.Explanation{
		Meaning: "The check requires a feature gate to be enabled, but it is disabled.",
		Cause:   "The cluster has different features.",
	})
	reasonFeaturesUnknown = finding.NewReason("FeaturesUnknown", finding.Explanation{
		Meaning: "The features of the cluster could not be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain the permission: oc get featuregate cluster -o yaml.",
	})
	reasonMajorVersionFilter = finding.NewReason("MajorVersionFilter", finding.Explanation{
		Meaning: "The check has the annotation for major versions.",
		Cause: "The annotation is only for FeatureGates and CustomResourceDefinitions. The cluster-version operator " +
			"does not apply other manifests that have it.",
		Remedy: "Report it to the authors of the component: the check must read the target version itself.",
	})
	reasonManagementSide = finding.NewReason("ManagementSide", finding.Explanation{
		Meaning: "The check is for the management cluster, but the preflight evaluates only the guest of a hosted " +
			"cluster. It does not run.",
		Cause: "Its manifest has the annotation " + sideAnnotation + ": management, and the preflight was run without --hosted-cluster.",
		Remedy: "Run the preflight with the kubeconfig of the management cluster, and name the hosted cluster with " +
			"--hosted-cluster.",
	})
	reasonUnknownSide = finding.NewReason("UnknownSide", finding.Explanation{
		Meaning: "The annotation " + sideAnnotation + " of the check is neither guest nor management. The check does not run.",
		Cause:   "The manifest has a typo.",
		Remedy:  "Report it to the authors of the component.",
	})
	reasonCapabilitiesUnknown = finding.NewReason("CapabilitiesUnknown", finding.Explanation{
		Meaning: "The capabilities of the cluster could not be read.",
		Cause:   "ClusterVersion \"version\" has no capabilities in its status.",
		Remedy:  "Read them: oc get clusterversion version -o jsonpath={.status.capabilities}.",
	})
	reasonCapabilityDisabled = finding.NewReason("CapabilityDisabled", finding.Explanation{
		Meaning: "The check is for a disabled capability.",
		Cause:   "The capability is not enabled in the cluster.",
	})
	reasonCapabilityNotKnown = finding.NewReason("CapabilityNotKnown", finding.Explanation{
		Meaning: "The check is for a capability that the cluster does not know.",
		Cause:   "The capability is new in the target.",
	})
	reasonOverridden = finding.NewReason("Overridden", finding.Explanation{
		Meaning: "The check is unmanaged by spec.overrides of ClusterVersion.",
		Cause:   "An administrator excluded the object from management.",
	})
	reasonOtherClusterProfile = finding.NewReason("OtherClusterProfile", finding.Explanation{
		Meaning: "The check is for other cluster profiles.",
		Cause:   "The cluster uses a different profile.",
	})
	reasonClusterProfileValue = finding.NewReason("ClusterProfileValue", finding.Explanation{
		Meaning: "The annotation of a cluster profile is not \"true\". The check does not run.",
		Cause:   "The cluster-version operator does not apply such manifests. The value may be a typo.",
		Remedy:  "Report it to the authors of the component: the value must be \"true\".",
	})
)
