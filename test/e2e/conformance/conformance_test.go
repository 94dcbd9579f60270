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

// conformed runs "oc preflight conformance", and returns the results by
// requirement, failures first.
func conformed(t *testing.T, code int, args ...string) map[string]conformance.Result {
	t.Helper()
	got := house.Call(t, append([]string{"conformance", "-o", "json"}, args...)...)
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

func TestConformanceTellsWhatIsWrong(t *testing.T) {
	t.Run("Zoo", tellWhatIsWrong) // returns when all of it is done
	expectNothingOfConformance(t)
}

func tellWhatIsWrong(t *testing.T) {
	t.Helper()
	for name, tc := range map[string]struct {
		reason  string
		captive zoo.Captive
		// want are the reasons of the requirements that fail, says what some of
		// them have in their message.
		want, says map[string]string
		// passes are requirements that must pass.
		passes []string
	}{
		"Panic": {
			reason: "a check that always panics", captive: zoo.Captive{Animal: zoo.Animal{Ending: "panic"}},
			want: map[string]string{"Result": "Panic"}, says: map[string]string{"Result": "on every cluster"},
		},
		"Forbidden": {
			reason: "a check whose manifest lacks its rules", captive: zoo.Captive{Animal: zoo.Animal{Ending: "reader"}},
			want: map[string]string{"Result": "Forbidden"}, says: map[string]string{"Result": "on every cluster"},
		},
		"Sleep": {
			reason: "a check that waits until its deadline and reports Unknown when it is stopped", captive: zoo.Captive{Animal: zoo.Animal{Ending: "sleep"}, Endless: true},
			want: map[string]string{"Result": "Timeout"}, says: map[string]string{"Result": "on every cluster"}, passes: []string{"Killed", "Terminated"},
		},
		"Silent": {
			reason: "a promised result that does not come", captive: zoo.Captive{Animal: zoo.Animal{Ending: "silent"}},
			want: map[string]string{"Result": "NoResult"}, says: map[string]string{"Result": "exit code 0 and left no final result"},
		},
		"Flood": {
			reason: "a log that is too long to read", captive: zoo.Captive{Animal: zoo.Animal{Ending: "flood"}},
			want: map[string]string{"Output": "TooMuchOutput"}, says: map[string]string{"Output": "more than 1024 KiB"},
		},
		"Stubborn": {
			reason: "SIGTERM does not end it, and it does not end by itself", captive: zoo.Captive{Animal: zoo.Animal{Ending: "stubborn"}, Endless: true},
			want: map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "IgnoresSIGTERM"},
			says: map[string]string{"Terminated": "within 5 seconds of SIGTERM"},
		},
		"Fork": {
			reason: "a child that is to answer dies with its parent", captive: zoo.Captive{Animal: zoo.Animal{Ending: "fork"}},
			want: map[string]string{"Result": "NoResult"}, says: map[string]string{"Result": "left no final result"},
		},
		"Huge": {
			reason: "a result that the kubelet cuts", captive: zoo.Captive{Animal: zoo.Animal{Ending: "huge"}},
			want: map[string]string{"Result": "NoResult"}, says: map[string]string{"Result": "4096 bytes, the limit of a kubelet"},
		},
		"WrongFrame": {
			reason: "a result that was damaged", captive: zoo.Captive{Animal: zoo.Animal{Ending: "wrong-frame"}},
			want: map[string]string{"Result": "BadResult"}, says: map[string]string{"Result": "checksum"},
		},
		"Root": {
			reason: "an image that runs as root", captive: zoo.Captive{Animal: zoo.Animal{Ending: "pass"}, Root: true},
			want: map[string]string{"NonRoot": "RunsAsRoot"}, says: map[string]string{"NonRoot": "image will run as root"},
		},
		"Forever": {
			reason: "a program that says nothing, and does not end", captive: zoo.Captive{Animal: zoo.Animal{Ending: "forever"}, Endless: true},
			want: map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Killed": "NothingLeft"},
			says: map[string]string{"Killed": "stopped by SIGKILL"},
		},
		"Liar": {
			reason: "a pass that is reported before anything was checked", captive: zoo.Captive{Animal: zoo.Animal{Ending: "liar"}, Endless: true},
			want: map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "PassesWhenTerminated"},
			says: map[string]string{"Terminated": "counts as a pass"},
		},
		"Hog": {
			reason: "more memory than a node has for thirty of them", captive: zoo.Captive{Animal: zoo.Animal{Ending: "hog"}},
			want: map[string]string{"Memory": "TooMuchMemory"}, says: map[string]string{"Memory": "ran out of memory"},
		},
		"Scribble": {
			reason: "a file where there may be no place for one", captive: zoo.Captive{Animal: zoo.Animal{Ending: "scribble"}, Root: true},
			want: map[string]string{"NonRoot": "RunsAsRoot", "ReadOnlyFilesystem": "WritesToFilesystem"},
			says: map[string]string{"ReadOnlyFilesystem": "Unknown (CheckError)"},
		},
		"Fickle": {
			reason: "another answer each time", captive: zoo.Captive{Animal: zoo.Animal{Ending: "fickle"}},
			want: map[string]string{"Idempotent": "NotIdempotent"},
			says: map[string]string{"Idempotent": "unchanged it reports"},
		},
		"FailsOpen": {
			reason:  "an error of the API server that is taken for good news",
			captive: zoo.Captive{Animal: zoo.Animal{Ending: "open", Change: zoo.AsCaptive, Beside: zoo.Access("get, list", zoo.Marked)}},
			want:    map[string]string{"FailsClosed": "FailsOpen"}, says: map[string]string{"FailsClosed": "Zoo.Animal Pass"},
		},
		"WritingRole": {
			reason:  "a role of the manifest that writes",
			captive: zoo.Captive{Animal: zoo.Animal{Ending: "writer", Change: zoo.AsCaptive, Beside: zoo.Access("create", zoo.Marked)}},
			want:    map[string]string{"Manifest": "RefusedRBAC"}, says: map[string]string{"Manifest": "\"create\" is not read access"},
		},
		"Privileged": {
			reason:  "what the policy of a preflight refuses is not run at all",
			captive: zoo.Captive{Animal: zoo.Animal{Ending: "pass", Change: func(job *batchv1.Job) { job.Spec.Template.Spec.HostNetwork = true }}},
			want:    map[string]string{"Manifest": "RefusedPodSecurity"}, says: map[string]string{"Manifest": "hostNetwork"},
		},
		"UnknownField": {
			reason:  "a manifest with a slip of the pen",
			captive: zoo.Captive{Animal: zoo.Animal{Ending: "pass", Beside: `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: zoo, annotations: {openshift.io/preflight-check: "true"}}, dato: {}}`}},
			want:    map[string]string{"Manifest": "InvalidPreflight"}, says: map[string]string{"Manifest": "dato"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is waiting for pods to go
			results := conformed(t, 3, house.Manifest(t, tc.captive)...)
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
				t.Errorf("%s: what fails (-want, +got):\n%s", tc.reason, diff)
			}
			for _, requirement := range tc.passes {
				if results[requirement].Outcome != preflight.Pass {
					t.Errorf("%s: %+v, want Pass", tc.reason, results[requirement])
				}
			}
			for requirement, says := range tc.says {
				if got := results[requirement].Message; !strings.Contains(got, says) {
					t.Errorf("%s: %s says %q, want %q", tc.reason, requirement, got, says)
				}
			}
		})
	}
}

// An existing account may write. The check runs as a copy that only reads, so that it
// is Forbidden on every cluster.
func TestConformanceFindsAnAccountThatWrites(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: zoo.Cage(t)}}
	if _, err := house.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "access.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(zoo.Access("create", ""), "CAGE", zoo.Cage(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	house.Kubectl(t, "apply", "-f", file)
	results := conformed(t, 3, house.Manifest(t, zoo.Captive{Animal: zoo.Animal{Ending: "writer", Change: zoo.AsCaptive}})...)
	access := results["ReadOnlyAccess"]
	if access.Reason != "MayWrite" || !strings.Contains(access.Message, zoo.Cage(t)+":captive may create configmaps in namespace "+zoo.Cage(t)) {
		t.Errorf("want that it may write, got %+v", access)
	}
	if result := results["Result"]; result.Reason != "Forbidden" || result.Outcome != preflight.Fail {
		t.Errorf("want that the check is denied its write, got %+v", result)
	}
	house.Kubectl(t, "get", "namespace", zoo.Cage(t)) // it was there before
	house.Kubectl(t, "delete", "namespace", zoo.Cage(t), "--wait")
	expectNothingOfConformance(t)
}

func TestConformanceOfWhatIsGood(t *testing.T) {
	t.Run("Zoo", takeWhatIsGood)
	expectNothingOfConformance(t)
}

func takeWhatIsGood(t *testing.T) {
	t.Helper()
	for name, tc := range map[string]struct {
		reason  string
		captive zoo.Captive
		// passes are requirements that must not have been skipped.
		passes []string
	}{
		"Pass": {reason: "a check by the SDK", captive: zoo.Captive{Animal: zoo.Animal{Ending: "pass"}}, passes: []string{"Result", "Idempotent", "Memory"}},
		"Long": {reason: "a result of 10 KiB is handed over whole", captive: zoo.Captive{Animal: zoo.Animal{Ending: "long"}}, passes: []string{"ResultBudget"}},
		"Reader": {
			reason:  "a check that reads, and says so when it cannot",
			captive: zoo.Captive{Animal: zoo.Animal{Ending: "reader", Change: zoo.AsCaptive, Beside: zoo.Access("get, list", zoo.Marked)}},
			passes:  []string{"ReadOnlyAccess", "FailsClosed", "Killed", "Terminated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := conformed(t, 0, house.Manifest(t, tc.captive)...)
			if len(results) != 14 {
				t.Errorf("%s: %d results, want one for each requirement", tc.reason, len(results))
			}
			for _, requirement := range tc.passes {
				if results[requirement].Outcome != preflight.Pass {
					t.Errorf("%s: %+v", tc.reason, results[requirement])
				}
			}
		})
	}
}

// A check that is inconclusive for another cause has a warning with a remedy.
func TestConformanceOfAnInconclusiveCheck(t *testing.T) {
	results := conformed(t, 0, house.Manifest(t, zoo.Captive{Animal: zoo.Animal{Ending: "unknown"}})...)
	if got := results["Result"]; got.Outcome != preflight.Warn || got.Reason != conformance.ReasonInconclusive || got.Remediation == "" {
		t.Errorf("an inconclusive check: %+v, want Warn Inconclusive with a remedy", got)
	}
	expectNothingOfConformance(t)
}

// Every example conforms. Those that read the configuration of OpenShift, which this
// cluster does not have, are inconclusive here.
func TestExamplesConform(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "examples", "*", "manifests"))
	if err != nil || len(files) < 3 {
		t.Fatalf("the examples are not there: %v %v", files, err)
	}
	for _, manifests := range files {
		name := filepath.Base(filepath.Dir(manifests))
		t.Run(name, func(t *testing.T) {
			image := house.Image(t, name, "examples/"+name)
			for requirement, result := range conformed(t, 0, manifests, "--image", image) {
				if result.Outcome == preflight.Warn && result.Reason != conformance.ReasonInconclusive {
					t.Errorf("%s: %s", requirement, result.Message)
				}
			}
			expectNothingOfConformance(t)
		})
	}
}

func TestConformanceOfAnImage(t *testing.T) {
	image := house.Image(t, "ingress", "examples/ingress")
	results := conformed(t, 0, image)
	if got := results["FailsClosed"]; got.Outcome != preflight.Skipped || got.Reason != "NoAccess" {
		t.Errorf("an image alone has no access to be cut off from: %+v", got)
	}
	ghost := conformed(t, 4, local.Registry+"/openshift/ghost@sha256:"+strings.Repeat("0", 64), "--timeout", "15s")
	if got := ghost["Result"]; got.Outcome != preflight.Unknown || got.Reason != "ImagePull" {
		t.Errorf("an image that cannot be pulled: %+v, want Unknown", got)
	}
	ghost = conformed(t, 3, local.Registry+"/openshift/ghost:latest")
	if got := ghost["Image"]; got.Reason != "RefusedImage" || !strings.Contains(got.Message, "cannot read") {
		t.Errorf("want why the tag has no digest: %+v", got)
	}
	expectNothingOfConformance(t)
}

// The other formats say the same.
func TestConformanceFormats(t *testing.T) {
	args := append([]string{"conformance"}, house.Manifest(t, zoo.Captive{Animal: zoo.Animal{Ending: "silent"}})...)
	text := house.Call(t, args...)
	for _, want := range []string{"Zoo.Captive\n", "FAIL     Result ", "Fix: ", "Does not conform"} {
		if !strings.Contains(text.Stdout, want) {
			t.Errorf("the text does not say %q:\n%s", want, text.Stdout)
		}
	}
	junit := house.Call(t, append(args, "-o", "junit")...)
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
	if want := []string{"Zoo.Captive 1/14", "conformance 1/1"}; !slices.Equal(got, want) {
		t.Errorf("the suites with failures and tests are %q, want %q", got, want)
	}
}

// expectNothingOfConformance fails when objects or namespaces are left.
func expectNothingOfConformance(t *testing.T) {
	t.Helper()
	house.ExpectNothingLeft(t)
	left, err := house.Client(t).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "preflight.openshift.io/conformance"})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d namespaces are left (%v)", len(left.Items), err)
	}
}
