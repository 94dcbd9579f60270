package launch

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/finding"
)

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

// violation is a violation of the policy for manifests.
type violation struct {
	reason     finding.Reason
	path, text string
}

func (f violation) String() string {
	return f.path + ": " + f.text
}

// field is a field of a manifest with a condition that it may not meet.
type field struct {
	name     string
	violated bool
	text     string
}

// violationsOf are the violations of the fields below path.
func violationsOf(reason finding.Reason, path string, fields []field) []violation {
	var violations []violation
	for _, f := range fields {
		if f.violated {
			violations = append(violations, violation{reason, path + "." + f.name, f.text})
		}
	}
	return violations
}

// jobViolations are the violations of a Job in a release with these images. The rule
// for each field is in testdata/fields.txt, which a test compares with the types of
// the API.
func jobViolations(job *batchv1.Job, images map[string]bool) []violation {
	template := job.Spec.Template
	violations := append(shapeViolations(job), annotationViolations("spec.template.metadata.annotations", template.Annotations)...)
	return append(violations, podViolations("spec.template.spec", template.Spec, images)...)
}

// shapeViolations are the violations of the Job itself: a check is one pod that
// terminates, in the namespace that its author chose.
func shapeViolations(job *batchv1.Job) []violation {
	const onePod = "a check is one pod, which has no index"
	spec := job.Spec
	violations := violationsOf(ReasonRefusedManifest, "metadata", []field{
		{"name", job.Name == "", "is required"},
		{"namespace", job.Namespace == "", "is required: a preflight has no default namespace"},
	})
	return append(violations, violationsOf(ReasonRefusedManifest, "spec", []field{
		{"completions", other(spec.Completions, 1), "is not 1, and a check is one pod"},
		{"parallelism", other(spec.Parallelism, 1), "is not 1, and a check is one pod"},
		{"completionMode", other(spec.CompletionMode, batchv1.NonIndexedCompletion), onePod},
		{"backoffLimitPerIndex", spec.BackoffLimitPerIndex != nil, onePod},
		{"maxFailedIndexes", spec.MaxFailedIndexes != nil, onePod},
		{"successPolicy", spec.SuccessPolicy != nil, onePod},
		{"suspend", isTrue(spec.Suspend), "the Job would never start"},
		{"managedBy", other(spec.ManagedBy, batchv1.JobControllerName), "the Job would not be run by the Job controller of Kubernetes"},
		{"scheduling", spec.Scheduling != nil, "a check is one pod, which is scheduled by itself"},
	})...)
}

// annotationViolations reject annotations of the pod in domains other than those that no
// container runtime or network evaluates: by annotations, which cannot be listed
// completely, a pod gets devices or other networks, or loses its confinement.
func annotationViolations(path string, annotations map[string]string) []violation {
	known := []string{
		"", "openshift.io", "preflight.openshift.io", "target.workload.openshift.io", "release.openshift.io",
		"kubectl.kubernetes.io", "cluster-autoscaler.kubernetes.io",
	}
	var violations []violation
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		domain := ""
		if before, _, found := strings.Cut(key, "/"); found {
			domain = before
		}
		if !slices.Contains(known, domain) {
			violations = append(violations, violation{ReasonRefusedAnnotation, path + "." + key, "annotations of this domain may change how a node or its network runs the pod"})
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
