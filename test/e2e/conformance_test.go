package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/openshift/update-preflight/test/zoo"
)

// A check that runs as root, writes a file, needs more than the memory limit, and ignores the errors of
// requests. Package conformance has other violations; how each requirement follows from what a pod leaves is
// in the tables of runner/conformance.
func TestConformanceReportsViolations(t *testing.T) {
	candidate := zoo.Candidate{Root: true, Animal: animal{
		Ending: "careless", Change: zoo.AsCandidate,
		Beside: zoo.Access("get, list", zoo.Annotated),
	}}
	// A node that is busy may need more than the default minute to stop a check, which is then reported as not tried.
	results := testCluster.Conformance(t, 3, append(testCluster.Manifest(t, candidate), "--timeout", "5m")...)
	want := zoo.Violations{
		Failed: map[string]string{
			"NonRoot": "RunsAsRoot", "ReadOnlyFilesystem": "WritesToFilesystem", "Memory": "TooMuchMemory", "FailsClosed": "FailsOpen",
		},
		Messages: map[string]string{
			"NonRoot": "image will run as root", "ReadOnlyFilesystem": "Unknown (CheckError)", "Memory": "ran out of memory",
			"FailsClosed": "Zoo.Animal Pass",
		},
		Passes: []string{"ReadOnlyAccess", "Result", "Idempotent", "ResultBudget", "Killed", "Terminated"},
	}
	want.Expect(t, "a check without care", results)
	testCluster.ExpectNoConformance(t)
}

// An example whose manifests are several files and mount a ConfigMap conforms. Its check is
// conclusive on this cluster.
func TestExampleConforms(t *testing.T) {
	const example = "examples/snapshot"
	image := testCluster.Image(t, "snapshot", example)
	zoo.ExpectConforms(t, testCluster.Conformance(t, 0, filepath.Join(root, example, "manifests"), "--image", image, "--timeout", "5m"))
	testCluster.ExpectNoConformance(t)
}
