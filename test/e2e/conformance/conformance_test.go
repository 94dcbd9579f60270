package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/test/zoo"
)

// testConformance runs "oc-preflight conformance", and returns one result by requirement: a
// failure, if there is one.
func testConformance(t *testing.T, code int, args ...string) map[string]requirement.Result {
	t.Helper()
	got := testCluster.Call(t, append([]string{"conformance", "-o", "json"}, args...)...)
	if got.Code != code {
		t.Fatalf("conformance %v: exit code %d, want %d\n%s%s", args, got.Code, code, got.Stderr, got.Stdout)
	}
	var report conformance.Report
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil {
		t.Fatalf("%v\n%s", err, got.Stdout)
	}
	results := map[string]requirement.Result{}
	for _, result := range report.Results {
		t.Logf("%-8s %-19s %s (%s)", result.Outcome, result.Requirement, result.Message, result.Reason)
		if results[result.Requirement].Outcome != preflight.Fail {
			results[result.Requirement] = result
		}
	}
	return results
}

// Violations that only a kubelet shows. How each requirement follows from what a pod leaves is
// in the tables of runner/conformance.
func TestConformanceReportsViolations(t *testing.T) {
	t.Run("Zoo", reportViolations) // returns when the parallel subtests are complete
	expectNothingLeft(t)
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
		"Careless": {
			reason:    "a check that runs as root, writes a file, needs more than the memory limit, and ignores the errors of requests",
			candidate: zoo.Candidate{Root: true, Animal: zoo.Animal{Ending: "careless", Change: zoo.AsCandidate, Beside: zoo.Access("get, list", zoo.Annotated)}},
			want: map[string]string{
				"NonRoot": "RunsAsRoot", "ReadOnlyFilesystem": "WritesToFilesystem", "Memory": "TooMuchMemory", "FailsClosed": "FailsOpen",
			},
			messages: map[string]string{
				"NonRoot": "image will run as root", "ReadOnlyFilesystem": "Unknown (CheckError)", "Memory": "ran out of memory", "FailsClosed": "Zoo.Animal Pass",
			},
			passes: []string{"ReadOnlyAccess", "Result", "Idempotent", "ResultBudget", "Killed", "Terminated"},
		},
		"Privileged": {
			reason:    "a Job that the policy of preflights rejects is not run",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "pass", Change: func(job *batchv1.Job) { job.Spec.Template.Spec.HostNetwork = true }}},
			want:      map[string]string{"Manifest": "RefusedPodSecurity"}, messages: map[string]string{"Manifest": "hostNetwork"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is the deletion of pods
			results := testConformance(t, 3, testCluster.Manifest(t, tc.candidate)...)
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
	access := testConformance(t, 3, append(args, "--timeout", "5s")...)["ReadOnlyAccess"]
	if access.Reason != "MayWrite" || !strings.Contains(access.Message, zoo.NamespaceOf(t)+":candidate may create configmaps in namespace "+zoo.NamespaceOf(t)) {
		t.Errorf("%+v, want MayWrite", access)
	}
	testCluster.Kubectl(t, "get", "namespace", zoo.NamespaceOf(t)) // conformance must not delete it
	testCluster.Kubectl(t, "delete", "namespace", zoo.NamespaceOf(t), "--wait")
	expectNothingLeft(t)
}

// A check that the cluster does not run neither conforms nor violates a requirement.
func TestConformanceIsUndecided(t *testing.T) {
	candidate := zoo.Candidate{Animal: zoo.Animal{Ending: "pass", Change: unschedulable, Beside: zoo.Access("get, list", zoo.Annotated)}}
	result := testConformance(t, 4, append(testCluster.Manifest(t, candidate), "--timeout", "5s")...)["Result"]
	if result.Outcome != preflight.Unknown || result.Reason != "Unschedulable" {
		t.Errorf("%+v, want Unknown Unschedulable", result)
	}
	expectNothingLeft(t)
}

// An example whose manifests are several files and mount a ConfigMap conforms. Its check is
// conclusive on this cluster.
func TestExampleConforms(t *testing.T) {
	const example = "examples/snapshot"
	image := testCluster.Image(t, "snapshot", example)
	results := testConformance(t, 0, filepath.Join(root, example, "manifests"), "--image", image, "--timeout", "5m")
	expectPasses(t, results)
	expectNothingLeft(t)
}

// expectPasses fails the test unless the check meets each requirement. A check that ends
// before it can be stopped is not stopped.
func expectPasses(t *testing.T, results map[string]requirement.Result) {
	t.Helper()
	if len(results) != 14 {
		t.Errorf("%d results, want one of each requirement", len(results))
	}
	for name, result := range results {
		if result.Outcome != preflight.Pass && result.Reason != "TooFast" && result.Reason != "NoAccess" {
			t.Errorf("%s: %+v, want Pass", name, result)
		}
	}
}

// The check of an image without a manifest has no permissions, so that it is inconclusive.
func TestConformanceOfAnImage(t *testing.T) {
	image := testCluster.Image(t, "ingress", "examples/ingress")
	results := testConformance(t, 0, image, "--timeout", "5m")
	if got := results["FailsClosed"]; got.Outcome != preflight.Skipped || got.Reason != "NoAccess" {
		t.Errorf("an image without a manifest has no access: %+v, want Skipped", got)
	}
	if got := results["Result"]; got.Outcome != preflight.Warn || got.Reason != "Inconclusive" || got.Remediation == "" {
		t.Errorf("an inconclusive check: %+v, want Warn Inconclusive with a remedy", got)
	}
	expectNothingLeft(t)
}

// expectNothingLeft fails the test if objects or namespaces of conformance remain.
func expectNothingLeft(t *testing.T) {
	t.Helper()
	testCluster.ExpectNothingLeft(t)
	left, err := testCluster.Client(t).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "preflight.openshift.io/conformance"})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d namespaces remain (%v)", len(left.Items), err)
	}
}
