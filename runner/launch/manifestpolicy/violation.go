package manifestpolicy

import "github.com/openshift/update-preflight/collector/finding"

// ReasonRefusedManifest is reported for a check whose manifest is not one of a check:
// a Job with one pod, and supporting objects of known kinds.
//
// Cause: a defect of the release.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedManifest finding.Reason = "RefusedManifest"

// ReasonRefusedImage is reported for a check whose manifest refers to an image that
// is not a digest of the release.
//
// Cause: a defect of the release.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedImage finding.Reason = "RefusedImage"

// ReasonRefusedPodSecurity is reported for a check whose manifest requires privileges on
// the node.
//
// Cause: a defect of the release.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedPodSecurity finding.Reason = "RefusedPodSecurity"

// ReasonRefusedAnnotation is reported for a check whose manifest has an annotation that
// may change how a node or its network runs the pod.
//
// Cause: a defect of the release.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedAnnotation finding.Reason = "RefusedAnnotation"

// ReasonRefusedScheduling is reported for a check whose manifest bypasses the scheduler,
// displaces other pods, or influences where they run.
//
// Cause: a defect of the release.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedScheduling finding.Reason = "RefusedScheduling"

// ReasonRefusedDevice is reported for a check whose manifest requests devices of the
// node.
//
// Cause: a defect of the release.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedDevice finding.Reason = "RefusedDevice"

// ReasonRefusedProbe is reported for a check whose manifest makes the kubelet connect to
// other hosts.
//
// Cause: a defect of the release.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedProbe finding.Reason = "RefusedProbe"

// ReasonRefusedVolume is reported for a check whose manifest has a volume that it could
// write to, other than scratch space.
//
// Cause: a defect of the release.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedVolume finding.Reason = "RefusedVolume"

// ReasonRefusedRBAC is reported for a check whose manifest grants more than read
// access.
//
// Cause: a defect of the release.
//
// Remedy: report it to the owners of the component. To update without this check,
// accept the finding.
const ReasonRefusedRBAC finding.Reason = "RefusedRBAC"

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

// violationsOf are the violations of the fields below path.
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
