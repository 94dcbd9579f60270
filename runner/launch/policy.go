package launch

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
)

// The rules that a manifest may break. They are the reasons of the findings
// that refuse it.
const (
	ruleManifest    = "RefusedManifest"
	ruleImage       = "RefusedImage"
	rulePodSecurity = "RefusedPodSecurity"
	ruleAnnotation  = "RefusedAnnotation"
	ruleScheduling  = "RefusedScheduling"
	ruleDevice      = "RefusedDevice"
	ruleProbe       = "RefusedProbe"
	ruleVolume      = "RefusedVolume"
	ruleRBAC        = "RefusedRBAC"
)

// fault is one thing in a manifest that a preflight may not have.
type fault struct {
	rule, path, text string
}

func (f fault) String() string {
	return f.path + ": " + f.text
}

// field is one that a manifest may not set, or not so.
type field struct {
	name   string
	broken bool
	text   string
}

// faultsOf are the faults of those fields below path that break the rule.
func faultsOf(rule, path string, fields []field) []fault {
	var faults []fault
	for _, f := range fields {
		if f.broken {
			faults = append(faults, fault{rule, path + "." + f.name, f.text})
		}
	}
	return faults
}

// jobFaults are the faults of a Job in a release with these images. What is
// allowed and what is not is written down field by field in
// testdata/fields.txt, which a test holds against the types of the API.
func jobFaults(job *batchv1.Job, images map[string]bool) []fault {
	template := job.Spec.Template
	faults := append(shapeFaults(job), annotationFaults("spec.template.metadata.annotations", template.Annotations)...)
	return append(faults, podFaults("spec.template.spec", template.Spec, images)...)
}

// shapeFaults are about the Job itself: a check is one pod that runs to its
// end, in the namespace that its author chose.
func shapeFaults(job *batchv1.Job) []fault {
	const onePod = "a check is one pod, which has no index"
	spec := job.Spec
	faults := faultsOf(ruleManifest, "metadata", []field{
		{"name", job.Name == "", "is required"},
		{"namespace", job.Namespace == "", "is required: a preflight has no namespace of its own"},
	})
	return append(faults, faultsOf(ruleManifest, "spec", []field{
		{"completions", other(spec.Completions, 1), "is not 1, and a check is one pod"},
		{"parallelism", other(spec.Parallelism, 1), "is not 1, and a check is one pod"},
		{"completionMode", other(spec.CompletionMode, batchv1.NonIndexedCompletion), onePod},
		{"backoffLimitPerIndex", spec.BackoffLimitPerIndex != nil, onePod},
		{"maxFailedIndexes", spec.MaxFailedIndexes != nil, onePod},
		{"successPolicy", spec.SuccessPolicy != nil, onePod},
		{"suspend", isTrue(spec.Suspend), "the Job would never start"},
		{"managedBy", other(spec.ManagedBy, batchv1.JobControllerName), "the Job would not be run by Kubernetes' own controller"},
		{"scheduling", spec.Scheduling != nil, "a check is one pod, which is scheduled by itself"},
	})...)
}

// annotationFaults hold the annotations of the pod to what no container runtime
// and no network acts on: by annotations a pod gets devices, other networks, or
// loses its confinement, and nobody knows all of them.
func annotationFaults(path string, annotations map[string]string) []fault {
	known := []string{
		"", "openshift.io", "preflight.openshift.io", "target.workload.openshift.io", "release.openshift.io",
		"kubectl.kubernetes.io", "cluster-autoscaler.kubernetes.io",
	}
	var faults []fault
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		domain := ""
		if before, _, found := strings.Cut(key, "/"); found {
			domain = before
		}
		if !slices.Contains(known, domain) {
			faults = append(faults, fault{ruleAnnotation, path + "." + key, "annotations of this domain may change how a node or its network runs the pod"})
		}
	}
	return faults
}

// other is true for a value that is there and is another.
func other[T comparable](value *T, only T) bool {
	return value != nil && *value != only
}

func isTrue(value *bool) bool {
	return value != nil && *value
}
