package manifestpolicy

import "github.com/openshift/update-preflight/collector/finding"

// The reasons for which a manifest of a check is rejected.
var (
	ReasonRefusedManifest = finding.NewReason("RefusedManifest", finding.Explanation{
		Meaning: "Reported for a check whose manifest is not one of a check: a Job with one pod, and supporting objects of known kinds.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedImage = finding.NewReason("RefusedImage", finding.Explanation{
		Meaning: "Reported for a check whose manifest refers to an image that is not a digest of the release.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedPodSecurity = finding.NewReason("RefusedPodSecurity", finding.Explanation{
		Meaning: "Reported for a check whose manifest requires privileges on the node.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedAnnotation = finding.NewReason("RefusedAnnotation", finding.Explanation{
		Meaning: "Reported for a check whose manifest has an annotation that may change how a node or its network runs the pod.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedScheduling = finding.NewReason("RefusedScheduling", finding.Explanation{
		Meaning: "Reported for a check whose manifest bypasses the scheduler, displaces other pods, or influences where they run.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedDevice = finding.NewReason("RefusedDevice", finding.Explanation{
		Meaning: "Reported for a check whose manifest requests devices of the node.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedProbe = finding.NewReason("RefusedProbe", finding.Explanation{
		Meaning: "Reported for a check whose manifest makes the kubelet connect to other hosts.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedVolume = finding.NewReason("RefusedVolume", finding.Explanation{
		Meaning: "Reported for a check whose manifest has a volume that it could write to, other than scratch space.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	ReasonRefusedRBAC = finding.NewReason("RefusedRBAC", finding.Explanation{
		Meaning: "Reported for a check whose manifest grants more than read access.",
		Cause:   "A defect of the release.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
)

// Violation is a violation of the policy for manifests.
type Violation struct {
	Reason     finding.Reason
	Path, Text string
}

func (f Violation) String() string {
	return f.Path + ": " + f.Text
}

// field is a field of a manifest with a condition that it may not meet.
type field struct {
	name     string
	violated bool
	text     string
}

func violationsOf(reason finding.Reason, path string, fields []field) []Violation {
	var violations []Violation
	for _, f := range fields {
		if f.violated {
			violations = append(violations, Violation{reason, path + "." + f.name, f.text})
		}
	}
	return violations
}

// other is true for a value that is set to another value than only.
func other[T comparable](value *T, only T) bool {
	return value != nil && *value != only
}

func isTrue(value *bool) bool {
	return value != nil && *value
}
