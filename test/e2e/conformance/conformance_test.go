package conformance_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/test/zoo"
)

// testConformance runs "oc-preflight conformance", and returns one result by requirement: a
// failure, if there is one.
func testConformance(t *testing.T, code int, args ...string) map[string]conformance.Result {
	t.Helper()
	got := testCluster.Call(t, append([]string{"conformance", "-o", "json"}, args...)...)
	if got.Code != code {
		t.Fatalf("conformance %v: exit code %d, want %d\n%s%s", args, got.Code, code, got.Stderr, got.Stdout)
	}
	var report conformance.Report
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil {
		t.Fatalf("%v\n%s", err, got.Stdout)
	}
	results := map[string]conformance.Result{}
	for _, result := range report.Results {
		t.Logf("%-8s %-19s %s (%s)", result.Outcome, result.Requirement, result.Message, result.Reason)
		if results[result.Requirement].Outcome != preflight.Fail {
			results[result.Requirement] = result
		}
	}
	return results
}

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
		"Panic": {
			reason: "a check that always panics", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "panic"}},
			want: map[string]string{"Result": "Panic"}, messages: map[string]string{"Result": "on every cluster"},
		},
		"Forbidden": {
			reason: "a check whose manifest lacks its rules", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "reader"}},
			want: map[string]string{"Result": "Forbidden"}, messages: map[string]string{"Result": "on every cluster"},
		},
		"Sleep": {
			reason: "a check that waits until its deadline and reports Unknown when it is stopped", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "sleep"}, Endless: true},
			want: map[string]string{"Result": "Timeout"}, messages: map[string]string{"Result": "on every cluster"}, passes: []string{"Killed", "Terminated"},
		},
		"Silent": {
			reason: "a declared result that is missing", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "silent"}},
			want: map[string]string{"Result": "NoResult"}, messages: map[string]string{"Result": "exit code 0 and left no final result"},
		},
		"Flood": {
			reason: "a log that exceeds the limit", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "flood"}},
			want: map[string]string{"Output": "TooMuchOutput"}, messages: map[string]string{"Output": "more than 1024 KiB"},
		},
		"Stubborn": {
			reason: "a check that ignores SIGTERM and does not end by itself", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "stubborn"}, Endless: true},
			want:     map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "IgnoresSIGTERM"},
			messages: map[string]string{"Terminated": "within 5 seconds of SIGTERM"},
		},
		"Fork": {
			reason: "the kubelet kills a child process when its parent ends", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "fork"}},
			want: map[string]string{"Result": "NoResult"}, messages: map[string]string{"Result": "left no final result"},
		},
		"Huge": {
			reason: "a result that the kubelet truncates", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "huge"}},
			want: map[string]string{"Result": "NoResult"}, messages: map[string]string{"Result": "4096 bytes, the limit of a kubelet"},
		},
		"WrongFrame": {
			reason: "a corrupted result", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "wrong-frame"}},
			want: map[string]string{"Result": "BadResult"}, messages: map[string]string{"Result": "checksum"},
		},
		"Root": {
			reason: "an image that runs as root", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "pass"}, Root: true},
			want: map[string]string{"NonRoot": "RunsAsRoot"}, messages: map[string]string{"NonRoot": "image will run as root"},
		},
		"Forever": {
			reason: "a program without a result that does not end", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "forever"}, Endless: true},
			want:     map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Killed": "NothingLeft"},
			messages: map[string]string{"Killed": "stopped by SIGKILL"},
		},
		"Liar": {
			reason: "a pass that is reported before anything was checked", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "liar"}, Endless: true},
			want:     map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "PassesWhenTerminated"},
			messages: map[string]string{"Terminated": "counts as a pass"},
		},
		"Hog": {
			reason: "more memory than the limit of a check", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "hog"}},
			want: map[string]string{"Memory": "TooMuchMemory"}, messages: map[string]string{"Memory": "ran out of memory"},
		},
		"Scribble": {
			reason: "a write to the file system of the image", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "scribble"}, Root: true},
			want:     map[string]string{"NonRoot": "RunsAsRoot", "ReadOnlyFilesystem": "WritesToFilesystem"},
			messages: map[string]string{"ReadOnlyFilesystem": "Unknown (CheckError)"},
		},
		"Fickle": {
			reason: "another result at each run", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "fickle"}},
			want:     map[string]string{"Idempotent": "NotIdempotent"},
			messages: map[string]string{"Idempotent": "unchanged it reports"},
		},
		"FailsOpen": {
			reason:    "an error of the API server that is reported as a pass",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "open", Change: zoo.AsCandidate, Beside: zoo.Access("get, list", zoo.Annotated)}},
			want:      map[string]string{"FailsClosed": "FailsOpen"}, messages: map[string]string{"FailsClosed": "Zoo.Animal Pass"},
		},
		"WritingRole": {
			reason:    "a role of the manifest with write access",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "writer", Change: zoo.AsCandidate, Beside: zoo.Access("create", zoo.Annotated)}},
			want:      map[string]string{"Manifest": "RefusedRBAC"}, messages: map[string]string{"Manifest": "\"create\" is not read access"},
		},
		"Privileged": {
			reason:    "a Job that the policy of preflights rejects is not run",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "pass", Change: func(job *batchv1.Job) { job.Spec.Template.Spec.HostNetwork = true }}},
			want:      map[string]string{"Manifest": "RefusedPodSecurity"}, messages: map[string]string{"Manifest": "hostNetwork"},
		},
		"UnknownField": {
			reason:    "a manifest with a misspelled field",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "pass", Beside: `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: zoo, annotations: {openshift.io/preflight-check: "true"}}, dato: {}}`}},
			want:      map[string]string{"Manifest": "InvalidPreflight"}, messages: map[string]string{"Manifest": "dato"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is the deletion of pods
			results := testConformance(t, 3, testCluster.Manifest(t, tc.candidate)...)
			failed := map[string]string{}
			for requirement, result := range results {
				if result.Outcome == preflight.Fail {
					failed[requirement] = string(result.Reason)
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

// An existing account has write access. The check runs as a copy with read access only, so
// that it is Forbidden on every cluster.
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
	results := testConformance(t, 3, testCluster.Manifest(t, zoo.Candidate{Animal: zoo.Animal{Ending: "writer", Change: zoo.AsCandidate}})...)
	access := results["ReadOnlyAccess"]
	if access.Reason != "MayWrite" || !strings.Contains(access.Message, zoo.NamespaceOf(t)+":candidate may create configmaps in namespace "+zoo.NamespaceOf(t)) {
		t.Errorf("%+v, want MayWrite", access)
	}
	if result := results["Result"]; result.Reason != "Forbidden" || result.Outcome != preflight.Fail {
		t.Errorf("%+v, want Fail with Forbidden", result)
	}
	testCluster.Kubectl(t, "get", "namespace", zoo.NamespaceOf(t)) // conformance must not delete it
	testCluster.Kubectl(t, "delete", "namespace", zoo.NamespaceOf(t), "--wait")
	expectNothingLeft(t)
}

func TestConformingChecks(t *testing.T) {
	t.Run("Zoo", expectConformance)
	expectNothingLeft(t)
}

func expectConformance(t *testing.T) {
	t.Helper()
	for name, tc := range map[string]struct {
		reason    string
		candidate zoo.Candidate
		// passes are requirements that must pass.
		passes []string
	}{
		"Pass": {reason: "a check of the SDK", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "pass"}}, passes: []string{"Result", "Idempotent", "Memory"}},
		"Long": {reason: "a result of 10 KiB is not truncated", candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "long"}}, passes: []string{"ResultBudget"}},
		"Finisher": {
			reason:    "a check that completes its work after SIGTERM may pass",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "finisher"}},
		},
		"Reader": {
			reason:    "a check that is inconclusive without read access",
			candidate: zoo.Candidate{Animal: zoo.Animal{Ending: "reader", Change: zoo.AsCandidate, Beside: zoo.Access("get, list", zoo.Annotated)}},
			passes:    []string{"ReadOnlyAccess", "FailsClosed", "Killed", "Terminated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := testConformance(t, 0, testCluster.Manifest(t, tc.candidate)...)
			if len(results) != 14 {
				t.Errorf("%s: %d results, want one of each requirement", tc.reason, len(results))
			}
			for _, requirement := range tc.passes {
				if results[requirement].Outcome != preflight.Pass {
					t.Errorf("%s: %+v", tc.reason, results[requirement])
				}
			}
		})
	}
}

// A check that is inconclusive for any other reason results in a warning with a remedy.
func TestConformanceOfAnInconclusiveCheck(t *testing.T) {
	results := testConformance(t, 0, testCluster.Manifest(t, zoo.Candidate{Animal: zoo.Animal{Ending: "unknown"}})...)
	if got := results["Result"]; got.Outcome != preflight.Warn || got.Reason != conformance.ReasonInconclusive || got.Remediation == "" {
		t.Errorf("an inconclusive check: %+v, want Warn Inconclusive with a remedy", got)
	}
	expectNothingLeft(t)
}

// Every example conforms. Examples that read the configuration of OpenShift are inconclusive
// on this cluster, which does not have it.
func TestExamplesConform(t *testing.T) {
	// Two examples each use these; the one that is tested first must not delete them.
	shared := []string{"openshift-cluster-storage-operator", "openshift-ingress-operator"}
	for _, namespace := range shared {
		testCluster.Kubectl(t, "create", "namespace", namespace)
	}
	t.Run("Examples", expectExamplesConform)
	testCluster.Kubectl(t, append([]string{"delete", "--wait", "namespace"}, shared...)...)
	expectNothingLeft(t)
}

func expectExamplesConform(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "examples", "*", "manifests"))
	if err != nil || len(files) < 3 {
		t.Fatalf("examples: %v, %v; want at least 3", files, err)
	}
	for _, manifests := range files {
		name := filepath.Base(filepath.Dir(manifests))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image := testCluster.Image(t, name, "examples/"+name)
			for requirement, result := range testConformance(t, 0, manifests, "--image", image, "--timeout", "5m") {
				if result.Outcome == preflight.Warn && result.Reason != conformance.ReasonInconclusive {
					t.Errorf("%s: %s", requirement, result.Message)
				}
			}
		})
	}
}

func TestConformanceOfAnImage(t *testing.T) {
	image := testCluster.Image(t, "ingress", "examples/ingress")
	results := testConformance(t, 0, image, "--timeout", "5m")
	if got := results["FailsClosed"]; got.Outcome != preflight.Skipped || got.Reason != "NoAccess" {
		t.Errorf("an image without a manifest has no access: %+v, want Skipped", got)
	}
	missing := testConformance(t, 4, local.Registry+"/openshift/ghost@sha256:"+strings.Repeat("0", 64), "--timeout", "15s")
	if got := missing["Result"]; got.Outcome != preflight.Unknown || got.Reason != "ImagePull" {
		t.Errorf("an image that cannot be pulled: %+v, want Unknown", got)
	}
	missing = testConformance(t, 3, local.Registry+"/openshift/ghost:latest")
	if got := missing["Image"]; got.Reason != "RefusedImage" || !strings.Contains(got.Message, "cannot read") {
		t.Errorf("a tag without a digest: %+v, want RefusedImage with the cause", got)
	}
	expectNothingLeft(t)
}

// The formats text and JUnit have the same results.
func TestConformanceFormats(t *testing.T) {
	args := append([]string{"conformance"}, testCluster.Manifest(t, zoo.Candidate{Animal: zoo.Animal{Ending: "silent"}})...)
	text := testCluster.Call(t, args...)
	for _, want := range []string{"Zoo.Candidate\n", "FAIL     Result ", "Fix: ", "Does not conform"} {
		if !strings.Contains(text.Stdout, want) {
			t.Errorf("the text does not contain %q:\n%s", want, text.Stdout)
		}
	}
	junit := testCluster.Call(t, append(args, "-o", "junit")...)
	var suites struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(junit.Stdout), &suites); err != nil {
		t.Fatalf("%v\n%s", err, junit.Stdout)
	}
	var got []string
	for _, suite := range suites.Suites {
		got = append(got, fmt.Sprintf("%s %d/%d", suite.Name, suite.Failures, suite.Tests))
	}
	if want := []string{"Zoo.Candidate 1/14", "conformance 1/1"}; !slices.Equal(got, want) {
		t.Errorf("the suites with failures and tests are %q, want %q", got, want)
	}
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
