package conformance_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/test/golden"
)

// summary is each result with its check, requirement, outcome and reason.
func summary(results []requirement.Result) []string {
	var all []string
	for _, result := range results {
		all = append(all, strings.Join([]string{result.Check, result.Requirement, string(result.Outcome), result.Reason}, " "))
	}
	return all
}

// A Job that a preflight would not run is not run, and needs no cluster.
func TestRejectedManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, manifest string
		want             []string
		message          string
	}{
		"Privileged": {
			reason:   "the policy of preflights rejects the Job",
			manifest: strings.Replace(job, "      containers:", "      hostNetwork: true\n      containers:", 1),
			want:     []string{"Zoo.Candidate Manifest Fail RefusedPodSecurity"}, message: "hostNetwork",
		},
		"WritingRole": {
			reason: "a role of the manifest has write access", manifest: strings.Replace(reading, "verbs: [get, list]", "verbs: [create]", 1),
			want: []string{"Zoo.Candidate Manifest Fail RefusedRBAC"}, message: `"create" is not read access`,
		},
		"UnknownField": {
			reason:   "a misspelled field is reported by file",
			manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: zoo, annotations: {" + annotated + "}}\ndato: {}\n",
			want:     []string{"0000_50_zoo_11_candidate.yaml Manifest Fail InvalidPreflight"}, message: "dato",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := withoutCluster(t, subject(t, tc.manifest))
			if diff := cmp.Diff(tc.want, summary(got)); diff != "" {
				t.Fatalf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(got[0].Message, tc.message) || got[0].Remediation == "" {
				t.Errorf("%s: message %q, remedy %q; want %q and a remedy", tc.reason, got[0].Message, got[0].Remediation, tc.message)
			}
		})
	}
}

func withoutCluster(t *testing.T, s conformance.Subject) []requirement.Result {
	t.Helper()
	report, err := conformance.Run(t.Context(),
		conformance.Config{From: "4.20.0", To: "4.21.0", Timeout: time.Minute, Progress: func(string) {}}, s)
	if err != nil {
		t.Fatal(err)
	}
	return report.Results
}

// An image with a tag that has no digest is not run.
func TestImageWithoutDigest(t *testing.T) {
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	tag := strings.TrimPrefix(server.URL, "http://") + "/openshift/ghost:latest"
	access := registry.Own(t.Context(), registry.Local{})
	defer access.Close()
	got := withoutCluster(t, conformance.Program(t.Context(), tag, access))
	if diff := cmp.Diff([]string{"Image.Preflight Image Fail RefusedImage"}, summary(got)); diff != "" {
		t.Fatalf("(-want, +got):\n%s", diff)
	}
	if want := "cannot read the image \"" + tag + "\""; !strings.Contains(got[0].Message, want) || got[0].Remediation == "" {
		t.Errorf("message %q, remedy %q; want the cause %q and a remedy", got[0].Message, got[0].Remediation, want)
	}
}

// A Job that the API server rejects violates the requirement; any other error is that of the
// cluster.
func TestInvalidManifests(t *testing.T) {
	var findings []finding.Finding
	for _, reason := range []string{"InvalidManifest", "NamespaceMissing", "ServiceAccountMissing"} {
		findings = append(findings, finding.Unknown(finding.ReportedReason(reason), "no").Named("Zoo.Candidate"))
	}
	want := []string{
		"Zoo.Candidate Manifest Fail InvalidManifest", "Zoo.Candidate Manifest Unknown NamespaceMissing",
		"Zoo.Candidate Manifest Fail ServiceAccountMissing",
	}
	checked := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "zoo"}}
	checked.Spec.Template.Spec.ServiceAccountName = "keeper"
	results := conformance.Invalid(findings, []jobplan.Check{{Name: "Zoo.Candidate", Job: checked}})
	if diff := cmp.Diff(want, summary(results)); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	// The remedy is on one line in text, so the snippet is, too.
	_, snippet, _ := strings.Cut(results[2].Remediation, " In YAML: ")
	var account corev1.ServiceAccount
	if err := yaml.UnmarshalStrict([]byte(snippet), &account); err != nil {
		t.Fatalf("%q: %v", results[2].Remediation, err)
	}
	if account.Kind != "ServiceAccount" || account.Name != "keeper" || account.Namespace != "zoo" ||
		account.Annotations[payload.Annotation] != "true" {
		t.Errorf("the remedy adds another object: %+v", account)
	}
}

// A check has the name that it will have in a release, whose build names a manifest after the
// operator's image.
func TestNamesAreThoseOfARelease(t *testing.T) {
	for file, want := range map[string]string{"job.yaml": "Zoo.Candidate", "0000_50_zoo_11_candidate.yaml": "Zoo.Candidate"} {
		made, err := conformance.Manifests(t.Context(), map[string][]byte{file: []byte(job)}, []conformance.Substitution{{PullSpec: image}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := conformance.Planned(made).Name; got != want {
			t.Errorf("the check in %s is %s, want %s", file, got, want)
		}
	}
}

// sample has one result of each outcome, and hostile text.
func sample() conformance.Report {
	return conformance.Report{Results: []requirement.Result{
		{
			Check: "Zoo.Captive", Requirement: "Result", Outcome: preflight.Pass, Reason: "Conforms",
			Message: "reported Zoo.Animal Pass (Passed) with exit code 0",
		},
		{Check: "Zoo.Captive", Requirement: "Killed", Outcome: preflight.Skipped, Reason: "TooFast", Message: "it ended by itself"},
		{
			Check: "Zoo.Captive", Requirement: "Time", Outcome: preflight.Warn, Reason: "Slow", Message: "it took 2m0s",
			Remediation: "Ask for less.",
		},
		{
			Check: "Zoo.Captive", Requirement: "NonRoot", Outcome: preflight.Fail, Reason: "RunsAsRoot", Message: "image <will> run\x1b[2J as root",
			Remediation: "USER 65532",
		},
		{
			Check: "Zoo.Other", Requirement: "Result", Outcome: preflight.Unknown, Reason: "ImagePull", Message: "the image cannot be pulled",
			Remediation: "See the pull secret.",
		},
	}}
}

func TestWrite(t *testing.T) {
	for _, output := range []string{"text", "json", "junit", "markdown", "html"} {
		t.Run(output, func(t *testing.T) {
			var got bytes.Buffer
			if err := format.Write(&got, output, sample(), format.Style{}); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/report."+output, got.Bytes())
			if bytes.ContainsRune(got.Bytes(), '\x1b') {
				t.Error("the output has terminal control characters")
			}
		})
	}
	if err := format.Write(&bytes.Buffer{}, "xml", sample(), format.Style{}); err == nil {
		t.Error("an unknown format is accepted")
	}
}

func TestJUnitOfHostileText(t *testing.T) {
	hostile := conformance.Report{Results: []requirement.Result{{
		Check: "\x00", Requirement: "]]>", Outcome: preflight.Fail,
		Message: "\xff\x1b", Remediation: "<&",
	}}}
	var got bytes.Buffer
	if err := format.Write(&got, "junit", hostile, format.Style{}); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(got.Bytes(), new(any)); err != nil {
		t.Errorf("%v:\n%s", err, got.String())
	}
}

func TestOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		outcomes []preflight.Outcome
		want     preflight.Outcome
	}{
		"Nothing": {reason: "a report without results is not a pass", want: preflight.Unknown},
		"Good": {
			reason:   "skipped requirements and warnings do not prevent conformance",
			outcomes: []preflight.Outcome{preflight.Pass, preflight.Skipped, preflight.Warn}, want: preflight.Pass,
		},
		"Untried": {
			reason:   "a requirement that could not be tested is inconclusive",
			outcomes: []preflight.Outcome{preflight.Unknown, preflight.Pass}, want: preflight.Unknown,
		},
		"Breaking": {
			reason: "one violation decides", outcomes: []preflight.Outcome{preflight.Unknown, preflight.Fail, preflight.Pass},
			want: preflight.Fail,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var report conformance.Report
			for _, outcome := range tc.outcomes {
				report.Results = append(report.Results, requirement.Result{Outcome: outcome})
			}
			if got := report.Outcome(); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestParseSubstitution(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         conformance.Substitution
		rejected     bool
	}{
		"All": {
			reason: "one image for all", text: "registry.example.com/a:1",
			want: conformance.Substitution{PullSpec: "registry.example.com/a:1"},
		},
		"One": {
			reason: "a port is not a tag", text: "localhost:5000/a=b@sha256:0",
			want: conformance.Substitution{Source: "localhost:5000/a", PullSpec: "b@sha256:0"},
		},
		"Tag":      {reason: "a source has no tag", text: "a:1=b:2", rejected: true},
		"Empty":    {reason: "an empty substitution", rejected: true},
		"Half":     {reason: "a substitution without an image", text: "a=", rejected: true},
		"NoSource": {reason: "a substitution with an empty source", text: "=b", rejected: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := conformance.ParseSubstitution(tc.text)
			if (err != nil) != tc.rejected {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
