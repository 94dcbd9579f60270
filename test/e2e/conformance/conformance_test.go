package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		// want has the reasons of the failed requirements, messages parts of the messages
		// of some.
		want, messages map[string]string
		// passes are requirements that must pass.
		passes []string
	}{
		"Stubborn": {
			reason: "a check that ignores SIGTERM and does not end by itself", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "stubborn"}, Endless: true},
			want:     map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "IgnoresSIGTERM"},
			messages: map[string]string{"Terminated": "within 5 seconds of SIGTERM", "Killed": "stopped by SIGKILL"}, passes: []string{"Killed"},
		},
		"Liar": {
			reason: "a pass that is reported before anything was checked", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "liar"}, Endless: true},
			want:     map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "PassesWhenTerminated"},
			messages: map[string]string{"Terminated": "counts as a pass"},
		},
		"Privileged": {
			reason:    "a Job that the policy of preflights rejects is not run",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "pass", Change: func(job *batchv1.Job) { job.Spec.Template.Spec.HostNetwork = true }}},
			want:      map[string]string{"Manifest": "RefusedPodSecurity"}, messages: map[string]string{"Manifest": "hostNetwork"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is the deletion of pods
			results := testCluster.Conformance(t, 3, testCluster.Manifest(t, tc.candidate)...)
			failed := map[string]string{}
			for requirement, result := range results {
				if result.Outcome == preflight.Fail {
					failed[requirement] = result.Reason
					if result.Remediation == "" {
						t.Errorf("%s: %s has no remedy", tc.reason, requirement)
					}
				}
			}
			if diff := cmp.Diff(tc.want, failed); diff != "" {
				t.Errorf("%s: failed requirements (-want, +got):\n%s", tc.reason, diff)
			}
			for _, requirement := range tc.passes {
				if results[requirement].Outcome != preflight.Pass {
					t.Errorf("%s: %+v, want Pass", tc.reason, results[requirement])
				}
			}
			for requirement, message := range tc.messages {
				if got := results[requirement].Message; !strings.Contains(got, message) {
					t.Errorf("%s: the message of %s is %q, want %q", tc.reason, requirement, got, message)
				}
			}
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
	if access.Reason != "MayWrite" || !strings.Contains(access.Message, zoo.NamespaceOf(t)+":candidate may create configmaps in namespace "+zoo.NamespaceOf(t)) {
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
