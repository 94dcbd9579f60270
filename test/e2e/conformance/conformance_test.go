package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/zoo"
)

// Violations that only a kubelet shows; test/e2e has others. How each requirement follows from what a pod leaves is
// in the tables of runner/conformance.
func TestConformanceReportsViolations(t *testing.T) {
	t.Run("Zoo", reportViolations) // returns when the parallel subtests are complete
	testCluster.ExpectNoConformance(t)
}

func reportViolations(t *testing.T) {
	t.Helper()
	for name, tc := range map[string]struct {
		reason    string
		candidate zoo.Candidate
		zoo.Violations
	}{
		"Stubborn": {
			reason:    "a check that ignores SIGTERM and does not end by itself",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "stubborn"}, Endless: true},
			Violations: zoo.Violations{
				Failed:   map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "IgnoresSIGTERM"},
				Messages: map[string]string{"Terminated": "within 5 seconds of SIGTERM", "Killed": "stopped by SIGKILL"},
				Passes:   []string{"Killed"},
			},
		},
		"Liar": {
			reason:    "a pass that is reported before anything was checked",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "liar"}, Endless: true},
			Violations: zoo.Violations{
				Failed:   map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "PassesWhenTerminated"},
				Messages: map[string]string{"Terminated": "counts as passed"},
			},
		},
		"Privileged": {
			reason: "a Job that the policy of preflights rejects is not run",
			candidate: zoo.Candidate{Animal: zoo.Animal{
				Ending: "pass",
				Change: func(job *batchv1.Job) { job.Spec.Template.Spec.HostNetwork = true },
			}},
			Violations: zoo.Violations{
				Failed: map[string]string{"Manifest": "RefusedPodSecurity"}, Messages: map[string]string{"Manifest": "hostNetwork"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is the deletion of pods
			results := testCluster.Conformance(t, 3, testCluster.Manifest(t, tc.candidate)...)
			tc.Expect(t, tc.reason, results)
		})
	}
}

// unschedulable makes a Job run as the ServiceAccount of zoo.Access, on no node.
func unschedulable(job *batchv1.Job) {
	zoo.AsCandidate(job)
	job.Spec.Template.Spec.NodeSelector = map[string]string{"zoo.example.com/none": "true"}
}

// The rights of an existing account are read although its check does not run.
func TestConformanceFindsAnAccountThatWrites(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: zoo.NamespaceOf(t)}}
	if _, err := testCluster.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "access.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(zoo.Access("create", ""), "CAGE", zoo.NamespaceOf(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	testCluster.Kubectl(t, "apply", "-f", file)
	args := testCluster.Manifest(t, zoo.Candidate{Animal: zoo.Animal{Ending: "pass", Change: unschedulable}})
	access := testCluster.Conformance(t, 3, append(args, "--timeout", "5s")...)["ReadOnlyAccess"]
	if access.Reason != "MayWrite" || !strings.Contains(access.Message,
		zoo.NamespaceOf(t)+":candidate may create configmaps in namespace "+zoo.NamespaceOf(t)) {
		t.Errorf("%+v, want MayWrite", access)
	}
	testCluster.Kubectl(t, "get", "namespace", zoo.NamespaceOf(t)) // conformance must not delete it
	testCluster.Kubectl(t, "delete", "namespace", zoo.NamespaceOf(t), "--wait")
	testCluster.ExpectNoConformance(t)
}

// A check that the cluster does not run neither conforms nor violates a requirement.
func TestConformanceIsUndecided(t *testing.T) {
	candidate := zoo.Candidate{Animal: zoo.Animal{Ending: "pass", Change: unschedulable, Beside: zoo.Access("get, list", zoo.Annotated)}}
	result := testCluster.Conformance(t, 4, append(testCluster.Manifest(t, candidate), "--timeout", "5s")...)["Result"]
	if result.Outcome != preflight.Unknown || result.Reason != "Unschedulable" {
		t.Errorf("%+v, want Unknown Unschedulable", result)
	}
	testCluster.ExpectNoConformance(t)
}

// The check of an image without a manifest has no permissions, so that it is inconclusive.
func TestConformanceOfAnImage(t *testing.T) {
	image := testCluster.Image(t, "ingress", "examples/ingress")
	results := testCluster.Conformance(t, 0, image, "--timeout", "5m")
	if got := results["FailsClosed"]; got.Outcome != preflight.Skipped || got.Reason != "NoAccess" {
		t.Errorf("an image without a manifest has no access: %+v, want Skipped", got)
	}
	if got := results["Result"]; got.Outcome != preflight.Warn || got.Reason != "Inconclusive" || got.Remediation == "" {
		t.Errorf("an inconclusive check: %+v, want Warn Inconclusive with a remedy", got)
	}
	testCluster.ExpectNoConformance(t)
}
