package e2e_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/test/release"
)

// conformed runs "oc preflight conformance", and returns the results by
// requirement, failures first.
func conformed(t *testing.T, code int, args ...string) map[string]conformance.Result {
	t.Helper()
	got := call(t, append([]string{"conformance", "-o", "json"}, args...)...)
	if got.code != code {
		t.Fatalf("conformance %v: exit code %d, want %d\n%s%s", args, got.code, code, got.stderr, got.stdout)
	}
	var report conformance.Report
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatalf("%v\n%s", err, got.stdout)
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

// captive is an animal whose manifest is not in a release yet.
type captive struct {
	animal
	// root has the image run as root.
	root bool
	// endless ones are not waited for as long as for others.
	endless bool
}

// cage is the namespace of a test's captive.
func cage(t *testing.T) string {
	t.Helper()
	return "cage-" + strings.ToLower(filepath.Base(t.Name()))
}

// manifest writes the manifest of a captive as its author has it, with a tag,
// and returns the arguments that have it run.
func (c captive) manifest(t *testing.T) []string {
	t.Helper()
	c.Namespace = cage(t)
	text, err := yaml.Marshal(c.Job("captive"))
	if err != nil {
		t.Fatal(err)
	}
	beside := strings.ReplaceAll(c.Beside, "CAGE", c.Namespace)
	file := filepath.Join(t.TempDir(), "0000_50_zoo_11_captive.yaml")
	if err := os.WriteFile(file, []byte(string(text)+"---\n"+beside), 0o600); err != nil {
		t.Fatal(err)
	}
	image := house.Image(t, "zoo", "test/e2e/zoo")
	if c.root {
		image = rootImage(t)
	}
	args := []string{file, "--image", zooImage + "=" + image}
	if c.endless {
		args = append(args, "--timeout", "20s")
	}
	return args
}

func rootImage(t *testing.T) string {
	t.Helper()
	binary, err := house.Binaries.Build(t.Context(), "test/e2e/zoo")
	if err != nil {
		t.Fatal(err)
	}
	image, err := release.BuildImage(t.Context(), local.Registry, "zoo-root", release.Image{
		Files: map[string]release.File{"bin/preflight": {Mode: 0o755, Data: binary}}, Config: v1.Config{User: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// marked is what makes objects part of a captive's manifest.
const marked = `, annotations: {openshift.io/preflight-check: "true"}`

// access are the documents that let the captive make some requests about
// ConfigMaps. CAGE stands for its namespace.
func access(verb, annotations string) string {
	meta := "metadata: {name: captive, namespace: CAGE" + annotations + "}"
	return fmt.Sprintf(`{apiVersion: v1, kind: ServiceAccount, %[1]s}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, %[1]s, rules: [{apiGroups: [""], resources: [configmaps], verbs: [%[2]s]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, %[1]s,
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: captive},
 subjects: [{kind: ServiceAccount, name: captive, namespace: CAGE}]}
`, meta, verb)
}

func asCaptive(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "captive" }

func TestConformanceTellsWhatIsWrong(t *testing.T) {
	t.Run("Zoo", tellWhatIsWrong) // returns when all of it is done
	expectNothingOfConformance(t)
}

func tellWhatIsWrong(t *testing.T) {
	t.Helper()
	for name, tc := range map[string]struct {
		reason string
		captive
		// want are the reasons of the requirements that fail, says what some of
		// them have in their message.
		want, says map[string]string
		// passes are requirements that must pass.
		passes []string
	}{
		"Panic": {
			reason: "a check that always panics", captive: captive{animal: animal{Ending: "panic"}},
			want: map[string]string{"Result": "Panic"}, says: map[string]string{"Result": "on every cluster"},
		},
		"Forbidden": {
			reason: "a check whose manifest lacks its rules", captive: captive{animal: animal{Ending: "reader"}},
			want: map[string]string{"Result": "Forbidden"}, says: map[string]string{"Result": "on every cluster"},
		},
		"Sleep": {
			reason: "a check that waits until its deadline and reports Unknown when it is stopped", captive: captive{animal: animal{Ending: "sleep"}, endless: true},
			want: map[string]string{"Result": "Timeout"}, says: map[string]string{"Result": "on every cluster"}, passes: []string{"Killed", "Terminated"},
		},
		"Silent": {
			reason: "a promised result that does not come", captive: captive{animal: animal{Ending: "silent"}},
			want: map[string]string{"Result": "NoResult"}, says: map[string]string{"Result": "exit code 0 and left no final result"},
		},
		"Flood": {
			reason: "a log that nobody can read", captive: captive{animal: animal{Ending: "flood"}},
			want: map[string]string{"Output": "TooMuchOutput"}, says: map[string]string{"Output": "more than 1024 KiB"},
		},
		"Stubborn": {
			reason: "SIGTERM does not end it, and it does not end by itself", captive: captive{animal: animal{Ending: "stubborn"}, endless: true},
			want: map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "IgnoresSIGTERM"},
			says: map[string]string{"Terminated": "within 5 seconds of SIGTERM"},
		},
		"Fork": {
			reason: "a child that is to answer dies with its parent", captive: captive{animal: animal{Ending: "fork"}},
			want: map[string]string{"Result": "NoResult"}, says: map[string]string{"Result": "left no final result"},
		},
		"Huge": {
			reason: "a result that the kubelet cuts", captive: captive{animal: animal{Ending: "huge"}},
			want: map[string]string{"Result": "NoResult"}, says: map[string]string{"Result": "4096 bytes, the limit of a kubelet"},
		},
		"WrongFrame": {
			reason: "a result that was damaged", captive: captive{animal: animal{Ending: "wrong-frame"}},
			want: map[string]string{"Result": "BadResult"}, says: map[string]string{"Result": "checksum"},
		},
		"Root": {
			reason: "an image that runs as root", captive: captive{animal: animal{Ending: "pass"}, root: true},
			want: map[string]string{"NonRoot": "RunsAsRoot"}, says: map[string]string{"NonRoot": "image will run as root"},
		},
		"Forever": {
			reason: "a program that says nothing, and does not end", captive: captive{animal: animal{Ending: "forever"}, endless: true},
			want: map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Killed": "NothingLeft"},
			says: map[string]string{"Killed": "stopped by SIGKILL"},
		},
		"Liar": {
			reason: "a pass that is said before anything was looked at", captive: captive{animal: animal{Ending: "liar"}, endless: true},
			want: map[string]string{"Result": "Timeout", "Time": "NeverEnds", "Terminated": "PassesWhenTerminated"},
			says: map[string]string{"Terminated": "counts as a pass"},
		},
		"Hog": {
			reason: "more memory than a node has for thirty of them", captive: captive{animal: animal{Ending: "hog"}},
			want: map[string]string{"Memory": "TooMuchMemory"}, says: map[string]string{"Memory": "ran out of memory"},
		},
		"Scribble": {
			reason: "a file where there may be no place for one", captive: captive{animal: animal{Ending: "scribble"}, root: true},
			want: map[string]string{"NonRoot": "RunsAsRoot", "ReadOnlyFilesystem": "WritesToFilesystem"},
			says: map[string]string{"ReadOnlyFilesystem": "Unknown (CheckError)"},
		},
		"Fickle": {
			reason: "another answer each time", captive: captive{animal: animal{Ending: "fickle"}},
			want: map[string]string{"Idempotent": "NotIdempotent"},
			says: map[string]string{"Idempotent": "unchanged it reports"},
		},
		"FailsOpen": {
			reason:  "an error of the API server that is taken for good news",
			captive: captive{animal: animal{Ending: "open", Change: asCaptive, Beside: access("get, list", marked)}},
			want:    map[string]string{"FailsClosed": "FailsOpen"}, says: map[string]string{"FailsClosed": "Zoo.Animal Pass"},
		},
		"WritingRole": {
			reason:  "a role of the manifest that writes",
			captive: captive{animal: animal{Ending: "writer", Change: asCaptive, Beside: access("create", marked)}},
			want:    map[string]string{"Manifest": "RefusedRBAC"}, says: map[string]string{"Manifest": "\"create\" is not reading"},
		},
		"Privileged": {
			reason:  "what the policy of a preflight refuses is not run at all",
			captive: captive{animal: animal{Ending: "pass", Change: func(job *batchv1.Job) { job.Spec.Template.Spec.HostNetwork = true }}},
			want:    map[string]string{"Manifest": "RefusedPodSecurity"}, says: map[string]string{"Manifest": "hostNetwork"},
		},
		"UnknownField": {
			reason:  "a manifest with a slip of the pen",
			captive: captive{animal: animal{Ending: "pass", Beside: `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: zoo, annotations: {openshift.io/preflight-check: "true"}}, dato: {}}`}},
			want:    map[string]string{"Manifest": "InvalidPreflight"}, says: map[string]string{"Manifest": "dato"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is waiting for pods to go
			results := conformed(t, 3, tc.manifest(t)...)
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

// An account that was there before may write, and so does the check.
func TestConformanceFindsAnAccountThatWrites(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cage(t)}}
	if _, err := client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "access.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(access("create", ""), "CAGE", cage(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "-f", file)
	results := conformed(t, 3, captive{animal: animal{Ending: "writer", Change: asCaptive}}.manifest(t)...)
	access := results["ReadOnlyAccess"]
	if access.Reason != "MayWrite" || !strings.Contains(access.Message, cage(t)+":captive may create configmaps in namespace "+cage(t)) {
		t.Errorf("want that it may write, got %+v", access)
	}
	if again := results["Idempotent"]; again.Reason != "NotIdempotent" {
		t.Errorf("it cannot write the same twice, got %+v", again)
	}
	kubectl(t, "get", "namespace", cage(t)) // it was there before
	kubectl(t, "delete", "namespace", cage(t), "--wait")
	expectNothingOfConformance(t)
}

func TestConformanceOfWhatIsGood(t *testing.T) {
	t.Run("Zoo", takeWhatIsGood)
	expectNothingOfConformance(t)
}

func takeWhatIsGood(t *testing.T) {
	t.Helper()
	for name, tc := range map[string]struct {
		reason string
		captive
		// passes are requirements that must not have been skipped.
		passes []string
	}{
		"Pass": {reason: "a check by the SDK", captive: captive{animal: animal{Ending: "pass"}}, passes: []string{"Result", "Idempotent", "Memory"}},
		"Long": {reason: "a result of 10 KiB is handed over whole", captive: captive{animal: animal{Ending: "long"}}, passes: []string{"ResultBudget"}},
		"Reader": {
			reason:  "a check that reads, and says so when it cannot",
			captive: captive{animal: animal{Ending: "reader", Change: asCaptive, Beside: access("get, list", marked)}},
			passes:  []string{"ReadOnlyAccess", "FailsClosed", "Killed", "Terminated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := conformed(t, 0, tc.manifest(t)...)
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
	results := conformed(t, 0, captive{animal: animal{Ending: "unknown"}}.manifest(t)...)
	if got := results["Result"]; got.Outcome != preflight.Warn || got.Reason != conformance.ReasonInconclusive || got.Remediation == "" {
		t.Errorf("an inconclusive check: %+v, want Warn Inconclusive with a remedy", got)
	}
	expectNothingOfConformance(t)
}

// Every example is fit to be shipped.
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
				if result.Outcome == preflight.Warn {
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
		t.Errorf("an image that cannot be pulled tells nothing: %+v", got)
	}
	ghost = conformed(t, 3, local.Registry+"/openshift/ghost:latest")
	if got := ghost["Image"]; got.Reason != "RefusedImage" || !strings.Contains(got.Message, "cannot read") {
		t.Errorf("want why the tag has no digest: %+v", got)
	}
	expectNothingOfConformance(t)
}

// The other formats say the same.
func TestConformanceFormats(t *testing.T) {
	args := append([]string{"conformance"}, captive{animal: animal{Ending: "silent"}}.manifest(t)...)
	text := call(t, args...)
	for _, want := range []string{"Zoo.Captive\n", "FAIL     Result ", "Fix: ", "Does not conform"} {
		if !strings.Contains(text.stdout, want) {
			t.Errorf("the text does not say %q:\n%s", want, text.stdout)
		}
	}
	junit := call(t, append(args, "-o", "junit")...)
	var suites struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(junit.stdout), &suites); err != nil {
		t.Fatalf("%v\n%s", err, junit.stdout)
	}
	if len(suites.Suites) != 1 || suites.Suites[0].Name != "Zoo.Captive" || suites.Suites[0].Tests != 14 || suites.Suites[0].Failures != 1 {
		t.Errorf("want one suite of 14 with one failure, got %+v", suites)
	}
}

// expectNothingOfConformance fails when objects or namespaces are left.
func expectNothingOfConformance(t *testing.T) {
	t.Helper()
	expectNoResidue(t)
	left, err := client(t).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "preflight.openshift.io/conformance"})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d namespaces are left (%v)", len(left.Items), err)
	}
}
