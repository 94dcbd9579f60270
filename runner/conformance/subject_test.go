package conformance_test

import (
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

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/registry"
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
			reason: "the policy of preflights rejects the Job", manifest: strings.Replace(job, "      containers:", "      hostNetwork: true\n      containers:", 1),
			want: []string{"Zoo.Candidate Manifest Fail RefusedPodSecurity"}, message: "hostNetwork",
		},
		"WritingRole": {
			reason: "a role of the manifest has write access", manifest: strings.Replace(reading, "verbs: [get, list]", "verbs: [create]", 1),
			want: []string{"Zoo.Candidate Manifest Fail RefusedRBAC"}, message: `"create" is not read access`,
		},
		"UnknownField": {
			reason: "a misspelled field is reported by file", manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: zoo, annotations: {" + annotated + "}}\ndato: {}\n",
			want: []string{"0000_50_zoo_11_candidate.yaml Manifest Fail InvalidPreflight"}, message: "dato",
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
	report, err := conformance.Run(t.Context(), conformance.Config{From: "4.20.0", To: "4.21.0", Timeout: time.Minute, Progress: func(string) {}}, s)
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
	want := []string{"Zoo.Candidate Manifest Fail InvalidManifest", "Zoo.Candidate Manifest Unknown NamespaceMissing", "Zoo.Candidate Manifest Fail ServiceAccountMissing"}
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
	if account.Kind != "ServiceAccount" || account.Name != "keeper" || account.Namespace != "zoo" || account.Annotations[payload.Annotation] != "true" {
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
