// Package manifestpolicy answers: in what does this manifest violate the policy for checks?
//
// [Job] returns the violations of a Job, and [Rules] those of the rules of a role. A check is
// one pod that only reads, runs images of its release, and does not affect other pods.
package manifestpolicy

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
)

// Job are the violations of a Job in a release with these images. The rule
// for each field is in testdata/fields.txt, which a test compares with the types of
// the API.
func Job(job *batchv1.Job, images map[string]bool) []Violation {
	template := job.Spec.Template
	violations := append(shapeViolations(job), annotationViolations("spec.template.metadata.annotations", template.Annotations)...)
	return append(violations, podViolations("spec.template.spec", template.Spec, images)...)
}

// shapeViolations are the violations of the Job itself: a check is one pod that
// terminates, in the namespace that its author chose.
func shapeViolations(job *batchv1.Job) []Violation {
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
func annotationViolations(path string, annotations map[string]string) []Violation {
	known := []string{
		"", "openshift.io", "preflight.openshift.io", "target.workload.openshift.io", "release.openshift.io",
		"kubectl.kubernetes.io", "cluster-autoscaler.kubernetes.io",
	}
	var violations []Violation
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		domain := ""
		if before, _, found := strings.Cut(key, "/"); found {
			domain = before
		}
		if !slices.Contains(known, domain) {
			violations = append(violations, Violation{reasonRefusedAnnotation, path + "." + key, "annotations of this domain may change how a node or its network runs the pod"})
		}
	}
	return violations
}
