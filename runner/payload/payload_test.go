package payload_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
	"github.com/openshift/update-preflight/test/release"
)

// summary has the fields of a release that tests compare.
type summary struct {
	Jobs, Supporting, Problems []string
}

func summarize(r *payload.Release) summary {
	var s summary
	for _, job := range r.Jobs {
		s.Jobs = append(s.Jobs, job.File+" "+job.Component+" "+job.Job.Namespace+"/"+job.Job.Name)
	}
	for _, supporting := range r.Supporting {
		kind := supporting.Object.GetObjectKind().GroupVersionKind().Kind
		s.Supporting = append(s.Supporting, supporting.File+" "+supporting.Component+" "+kind+" "+supporting.Object.GetName())
	}
	for _, problem := range r.Problems {
		s.Problems = append(s.Problems, string(problem.Outcome)+" "+problem.Reason+" "+problem.Name)
	}
	return s
}

const supporting = `
kind: ServiceAccount
apiVersion: v1
metadata: {name: check, namespace: openshift-ingress, annotations: {openshift.io/preflight-check: "true"}}
---
# The names of roles may have colons.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "openshift:check", annotations: {openshift.io/preflight-check: "true"}}
rules:
- {apiGroups: [operator.openshift.io], resources: [ingresscontrollers], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "openshift:check", annotations: {openshift.io/preflight-check: "true"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "openshift:check"}
subjects:
- {kind: ServiceAccount, name: check, namespace: openshift-ingress}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: not-annotated, namespace: openshift-ingress}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: annotated, namespace: openshift-ingress, annotations: {openshift.io/preflight-check: "true"}}
data: {a: b}
--- # Same line: a document too.
`

func genuine() release.Release {
	return release.Release{
		Version: version, Previous: []string{"4.20.9"}, Metadata: map[string]string{"url": "https://example.com"},
		BaseLayers: []int{1 << 20, 1 << 20}, Padding: 20, PaddingBytes: 2000,
		Components: []release.Component{
			{Name: "cli", Image: image},
			{Name: "cluster-ingress-operator", Image: image, Manifests: map[string]string{
				"0000_50_cluster-ingress-operator_10_preflight.yaml": jobIn("openshift-ingress", "certificate"),
				"0000_50_cluster-ingress-operator_05_preflight.yaml": supporting,
			}},
			{Name: "etcd", Manifests: map[string]string{
				"0000_05_etcd_preflight.json": `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"disk","namespace":"openshift-etcd",
					"annotations":{"openshift.io/preflight-check":"true","text":"\ud83d\ude00"}},"spec":{"template":{"spec":{"containers":[]}}}}
					{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"explicitly-none","namespace":"openshift-etcd","annotations":{"openshift.io/preflight-check":"false"}}}`,
			}},
		},
	}
}

var genuineSummary = summary{
	Jobs: []string{
		"0000_05_etcd_preflight.json etcd openshift-etcd/disk",
		"0000_50_cluster-ingress-operator_10_preflight.yaml cluster-ingress-operator openshift-ingress/certificate",
	},
	Supporting: []string{
		"0000_50_cluster-ingress-operator_05_preflight.yaml cluster-ingress-operator ServiceAccount check",
		"0000_50_cluster-ingress-operator_05_preflight.yaml cluster-ingress-operator ClusterRole openshift:check",
		"0000_50_cluster-ingress-operator_05_preflight.yaml cluster-ingress-operator ClusterRoleBinding openshift:check",
		"0000_50_cluster-ingress-operator_05_preflight.yaml cluster-ingress-operator ConfigMap annotated",
	},
}

func TestExtract(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		change func(*release.Release)
		// architecture is the cluster's.
		architecture string
	}{
		"image": {reason: "most releases are one image"},
		"index": {
			reason: "a multi-architecture release has the manifests in every image",
			change: func(r *release.Release) { r.Architectures = []string{"arm64", "amd64"} },
		},
		"index with the cluster's": {
			reason: "the cluster's architecture need not be the first", architecture: "arm64",
			change: func(r *release.Release) { r.Architectures = []string{"amd64", "arm64"} },
		},
		"other architecture": {
			reason: "any architecture is used, independent of this machine",
			change: func(r *release.Release) { r.Architectures = []string{"s390x"} },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pushed := genuine()
			if test.change != nil {
				test.change(&pushed)
			}
			pullSpec, err := release.Push(t.Context(), serve(t, nil), pushed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := payload.Extract(t.Context(), forced(t, pullSpec),
				payload.Options{Cluster: manifestfilter.Cluster{Architecture: test.architecture}})
			if err != nil {
				t.Fatalf("Extract: %v; %s", err, test.reason)
			}
			if diff := cmp.Diff(genuineSummary, summarize(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			want := payload.Release{
				Release: update.Release{Version: version, Image: pullSpec}, Previous: []string{"4.20.9"},
				Metadata:           map[string]string{"url": "https://example.com"},
				Images:             map[string]string{"cli": image, "cluster-ingress-operator": image},
				ManifestLayerBytes: got.ManifestLayerBytes, BytesRead: got.BytesRead,
				Jobs: got.Jobs, Supporting: got.Supporting, Child: got.Child,
			}
			if (got.Child != "") != (test.architecture != "") || got.Child == got.Digest() {
				t.Errorf("%s: the image for the architecture is %q", test.reason, got.Child)
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if got.ManifestLayerBytes <= 0 || got.BytesRead < got.ManifestLayerBytes || got.BytesRead > got.ManifestLayerBytes+8<<10 {
				t.Errorf("read %d bytes for a layer of %d; the base layers must not be read", got.BytesRead, got.ManifestLayerBytes)
			}
		})
	}
}

func TestExtractCompression(t *testing.T) {
	t.Parallel()
	plain := releaseWith(t, entry{name: "./release-manifests/job.yaml", content: jobIn("ns", "job")})
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, layer := range map[string][]byte{
		"none": plain, "gzip": compressed(t, plain), "zstd": encoder.EncodeAll(plain, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := payload.Extract(t.Context(), forced(t, pushLayer(t, serve(t, nil), layer)), payload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := summary{Jobs: []string{"job.yaml job ns/job"}}
			if diff := cmp.Diff(want, summarize(got)); diff != "" {
				t.Errorf("the content decides, not the media type (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExtractIgnoresContentType reads from registries with other content types.
func TestExtractIgnoresContentType(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"", "text/html", "application/vnd.docker.distribution.manifest.v1+json", "application/octet-stream"} {
		host := serve(t, func(next http.Handler) http.Handler {
			return respond("/", func(w http.ResponseWriter, genuine *httptest.ResponseRecorder) {
				w.Header()["Content-Type"] = []string{contentType}
				w.WriteHeader(genuine.Code)
				_, _ = w.Write(genuine.Body.Bytes())
			})(next)
		})
		got, err := payload.Extract(t.Context(), forced(t, pushLayer(t, host, releaseWith(t))), payload.Options{})
		if err != nil || got.Version != version {
			t.Errorf("Content-Type %q: %v; only the digest counts", contentType, err)
		}
	}
}

func TestExtractClusterProfile(t *testing.T) {
	t.Parallel()
	annotated := func(lines string) string {
		return strings.Replace(jobIn("ns", "job"), "  annotations:\n", "  annotations:\n"+lines, 1)
	}
	job := []string{"job.yaml job ns/job"}
	tests := map[string]struct {
		reason   string
		manifest string
		profile  string
		want     summary
	}{
		"none": {
			reason: "an example without any include annotation must run", manifest: jobIn("ns", "job"), want: summary{Jobs: job},
		},
		"this": {
			reason:   "it runs, but the cluster-version operator would run it too",
			manifest: annotated("    include.release.openshift.io/self-managed-high-availability: \"true\"\n"),
			want:     summary{Jobs: job, Problems: []string{"Warn AppliedByClusterVersionOperator Payload.Job"}},
		},
		"other": {
			reason:   "it is for clusters of another profile",
			manifest: annotated("    include.release.openshift.io/ibm-cloud-managed: \"true\"\n"),
			want:     summary{Problems: []string{"Skipped OtherClusterProfile Payload.Job"}},
		},
		"option": {
			reason: "the profile is the caller's", profile: "ibm-cloud-managed",
			manifest: annotated("    include.release.openshift.io/ibm-cloud-managed: \"true\"\n"),
			want:     summary{Jobs: job, Problems: []string{"Warn AppliedByClusterVersionOperator Payload.Job"}},
		},
		"not true": {
			reason:   "the cluster-version operator leaves out manifests with another value",
			manifest: annotated("    include.release.openshift.io/self-managed-high-availability: \"True\"\n"),
			want:     summary{Problems: []string{"Skipped ClusterProfileValue Payload.Job"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pullSpec := pushLayer(t, serve(t, nil), releaseWith(t, entry{name: "release-manifests/job.yaml", content: test.manifest}))
			got, err := payload.Extract(t.Context(), forced(t, pullSpec), payload.Options{Cluster: manifestfilter.Cluster{Profile: test.profile}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, summarize(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// failureOf asserts that err is a complete *payload.Error.
func failureOf(t *testing.T, err error) *imagefiles.Error {
	t.Helper()
	var failure *imagefiles.Error
	if !errors.As(err, &failure) {
		t.Fatalf("Extract: got error %v, want a *payload.Error", err)
	}
	if failure.Outcome != preflight.Fail && failure.Outcome != preflight.Unknown || failure.Message == "" || failure.Remediation == "" {
		t.Errorf("the error is incomplete: %+v", failure)
	}
	if text := failure.Error(); strings.ContainsAny(text, "\n\r\x00") || len(text) > 2048 {
		t.Errorf("the text of the error is not one short line: %q", text)
	}
	return failure
}

func TestExtractEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	host := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
				w.Header().Set("Content-Length", "1000000")
				w.WriteHeader(http.StatusOK)
				_, _ = w.Write([]byte("the beginning"))
				_ = http.NewResponseController(w).Flush()
				cancel()
				<-r.Context().Done()
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	_, err := payload.Extract(ctx, forced(t, pushLayer(t, host, releaseWith(t))), payload.Options{})
	if failure := failureOf(t, err); failure.Reason.String() != "Interrupted" || failure.Outcome != preflight.Unknown {
		t.Errorf("got %s %s for a registry that hangs in a blob, want Unknown Interrupted: %v", failure.Outcome, failure.Reason, err)
	}
}

// Tests of: runner/payload/manifestdoc

// replace changes a valid Job.
func replace(from, to string) string {
	job := jobIn("ns", "job")
	if !strings.Contains(job, from) {
		return "the Job lacks: " + from
	}
	return strings.Replace(job, from, to, 1)
}

// testedManifest is a file of a release.
type testedManifest struct {
	reason string
	// file is job.yaml when empty.
	file, manifest string
	// outcome, problem and text are outcome, reason and part of the message of the only problem, if any.
	outcome preflight.Outcome
	problem string
	text    string
	// jobs is the number of Jobs that are kept.
	jobs int
}

// pushed pushes a release with the file, and returns its pull spec.
func (m testedManifest) pushed(t *testing.T) (pullSpec, file string) {
	t.Helper()
	file = m.file
	if file == "" {
		file = "job.yaml"
	}
	return pushLayer(t, serve(t, nil), releaseWith(t, entry{name: "release-manifests/" + file, content: m.manifest})), file
}

func testedManifests() map[string]testedManifest {
	const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}\n"
	return map[string]testedManifest{
		"valid":           {reason: "a valid Job is kept", manifest: jobIn("ns", "job"), jobs: 1},
		"yml":             {reason: "yml is one of the three extensions", file: "job.yml", manifest: jobIn("ns", "job"), jobs: 1},
		"other extension": {reason: "the cluster-version operator ignores other extensions", file: "job.txt", manifest: jobIn("ns", "job")},
		"two documents":   {reason: "a file may have several", manifest: jobIn("ns", "job") + "---\n" + jobIn("ns", "other"), jobs: 2},
		"same line": {
			reason: "a document may begin in the line of its marker", manifest: configMap +
				"--- {apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: ns, annotations: {openshift.io/preflight-check: \"true\"}}}",
			jobs: 1,
		},
		"after the end": {reason: "a document may end before the next begins", manifest: configMap + "...\n" + jobIn("ns", "job"), jobs: 1},
		"two in one": {
			reason: "content after a document must not be lost", manifest: configMap + jobIn("ns", "job"),
			outcome: preflight.Fail, problem: "BrokenPreflight",
		},
		"flow documents": {
			reason: "content after a document must not be lost", manifest: "{a: b}\n{c: d, openshift.io/preflight-check: x}",
			outcome: preflight.Fail, problem: "BrokenPreflight",
		},
		"empty": {reason: "an empty document is ignored", manifest: "---\n# comment\n---\nnull\n---\n"},
		"windows": {
			reason:   "lines may end with CRLF",
			manifest: strings.ReplaceAll(jobIn("ns", "job")+"---\n"+jobIn("ns", "other"), "\n", "\r\n"), jobs: 2,
		},
		"marker in a text": {reason: "a text is indented", manifest: replace("spec:\n", "    text: |\n      ---\n      a\nspec:\n"), jobs: 1},
		"escaped annotation": {
			reason:   "an escaped key is the same key",
			manifest: replace("openshift.io/preflight-check", `"openshift.io\x2fpreflight-check"`), jobs: 1,
		},
		"escaped in JSON": {
			reason: "an escaped key is the same key", file: "job.json", jobs: 1,
			manifest: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"ns","annotations":{"openshift.io\/preflight-check":"true"}}}`,
		},

		"broken": {
			reason: "a broken file that does not mention the annotation", manifest: "kind: Deployment\nmetadata: {name: a\nspec: b: c\n",
			outcome: preflight.Warn, problem: "BrokenManifest", text: "job.yaml, document 1 (line 1): the file cannot be parsed: yaml: line ",
		},
		"broken preflight": {
			reason:   "the enhancement's own example is broken like this",
			manifest: configMap + "---\n" + replace("        command:", "          resources:\n            requests: {cpu: 10m}\n        command:"),
			outcome:  preflight.Fail, problem: "BrokenPreflight",
			text: "document 2 (line 2): the file mentions openshift.io/preflight-check and cannot be parsed: yaml: line 17: mapping values " +
				"are not allowed",
		},
		"broken elsewhere": {
			reason: "the rest of the file is unknown", manifest: jobIn("ns", "job") + "---\n}\n",
			outcome: preflight.Fail, problem: "BrokenPreflight", jobs: 1,
		},
		"no object": {
			reason: "the cluster-version operator would reject the release", manifest: "- a\n- b\n", outcome: preflight.Warn,
			problem: "BrokenManifest",
		},
		"no kind": {
			reason: "the cluster-version operator would reject the release", manifest: "metadata: {name: a}", outcome: preflight.Warn,
			problem: "BrokenManifest",
		},
		"tokens": {
			reason: "the number of tokens is bounded", manifest: strings.Repeat("- a\n", 60_000), outcome: preflight.Warn,
			problem: "BrokenManifest", text: "tokens",
		},
		"tokens with annotation": {
			reason: "a document that is not parsed may be a check", manifest: jobIn("ns", "job") + "x:\n" + strings.Repeat("- a\n", 60_000),
			outcome: preflight.Fail, problem: "BrokenPreflight", text: "tokens",
		},
		"bytes": {
			reason: "the size of a document is bounded", manifest: "a: " + strings.Repeat("a", 3<<20), outcome: preflight.Warn,
			problem: "BrokenManifest", text: "bytes",
		},
		"documents": {
			reason: "the number of documents is bounded", manifest: strings.Repeat(configMap+"---\n", 1001), outcome: preflight.Warn,
			problem: "BrokenManifest", text: "1000 documents",
		},
		"deep": {reason: "depth is bounded", manifest: strings.Repeat("[", 20_000), outcome: preflight.Warn, problem: "BrokenManifest"},
		"bomb elsewhere": {
			reason: "an alias bomb is not expanded", manifest: "kind: A\nmetadata: {name: a}\n" + bomb(),
		},

		"boolean": {
			reason: "the cluster-version operator would lose all annotations", manifest: replace(`"true"`, `true`),
			outcome: preflight.Fail, problem: "AnnotationNotString", text: "line 7",
		},
		"false": {reason: "the annotation disables the check", manifest: replace(`"true"`, `"false"`)},
		"boolean false": {
			reason: "a boolean is not a string", manifest: replace(`"true"`, `false`), outcome: preflight.Fail,
			problem: "AnnotationNotString",
		},
		"True": {
			reason: "the value may be a typo", manifest: replace(`"true"`, `"True"`), outcome: preflight.Fail,
			problem: "AnnotationValue", text: `"True"`,
		},
		"yes": {
			reason: "the value may be a typo", manifest: replace(`"true"`, `yes`), outcome: preflight.Fail,
			problem: "AnnotationValue", text: `"yes"`,
		},
		"no value": {
			reason: "the value may be a typo", manifest: replace(`"true"`, ``), outcome: preflight.Fail,
			problem: "AnnotationNotString",
		},
		"on the pod": {
			reason: "an annotation on the pod has no effect, which is reported",
			manifest: replace("  annotations:\n    openshift.io/preflight-check: \"true\"\nspec:\n  template:\n",
				"spec:\n  template:\n    metadata: {annotations: {openshift.io/preflight-check: \"true\"}}\n"), outcome: preflight.Warn,
			problem: "AnnotationMisplaced", text: "line 8",
		},
		"in a comment": {reason: "a comment is not an annotation", manifest: "# openshift.io/preflight-check: \"true\"\n" + configMap},
		"as a label": {
			reason: "a label has no effect, which is reported", manifest: replace("annotations", "labels"),
			outcome: preflight.Warn, problem: "AnnotationMisplaced",
		},
		"alias": {
			reason: "aliases are rejected in preflights", manifest: replace("spec:\n", "    a: &a b\n    c: *a\nspec:\n"),
			outcome: preflight.Fail, problem: "IrregularPreflight", text: "an alias in line 9",
		},
		"alias bomb": {
			reason: "aliases are rejected in preflights", manifest: jobIn("ns", "job") + bomb(), outcome: preflight.Fail,
			problem: "IrregularPreflight", text: "an alias",
		},
		"merged annotation": {
			reason:   "aliases are rejected in preflights",
			manifest: "x: &x {openshift.io/preflight-check: \"true\"}\napiVersion: batch/v1\nkind: Job\nmetadata: {name: a, annotations: {<<: *x}}",
			outcome:  preflight.Fail, problem: "IrregularPreflight",
		},
		"second key": {
			reason: "parsers differ in which key they use", manifest: jobIn("ns", "job") + "metadata: {name: other}\n",
			outcome: preflight.Fail, problem: "IrregularPreflight", text: `a second key "metadata" in line 16`,
		},
		"second key in JSON": {
			reason: "parsers differ in which key they use", file: "job.json",
			manifest: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","name":"b","namespace":"ns","annotations":{"openshift.io/preflight-check":"true"}}}`,
			outcome:  preflight.Fail, problem: "IrregularPreflight", text: `a second key "name"`,
		},
		"unknown field": {
			reason: "a misspelled field would be ignored", manifest: replace("restartPolicy", "restartPolice"),
			outcome: preflight.Fail, problem: "InvalidPreflight",
			text: `document 1 (line 1): the object cannot be decoded: strict decoding error: unknown field "spec.template.spec.restartPolice"`,
		},
		"other case": {
			reason: "fields are case-sensitive", manifest: replace("restartPolicy", "restartpolicy"), outcome: preflight.Fail,
			problem: "InvalidPreflight", text: "restartpolicy",
		},
		"other type": {
			reason: "a field has one type", manifest: replace("restartPolicy: Never", "restartPolicy: 1"), outcome: preflight.Fail,
			problem: "InvalidPreflight",
		},
		"many containers": {
			reason:   "an item of two bytes is decoded into a container of half a KiB",
			manifest: replace("containers:", "initContainers: ["+strings.Repeat("{},", 10_000)+"]\n      containers:"),
			outcome:  preflight.Fail, problem: "PreflightTooLarge",
		},
		"no apiVersion": {
			reason: "a kind needs a group", manifest: replace("apiVersion: batch/v1\n", ""), outcome: preflight.Fail,
			problem: "InvalidPreflight", text: "no apiVersion",
		},
		"deployment": {reason: "only Jobs and supporting kinds", manifest: replace("apiVersion: batch/v1\nkind: Job",
			"apiVersion: apps/v1\nkind: Deployment"), outcome: preflight.Fail, problem: "UnsupportedKind", text: "apps/v1 Deployment"},
		"old job": {
			reason: "only the current API version", manifest: replace("batch/v1", "batch/v1beta1"), outcome: preflight.Fail,
			problem: "UnsupportedKind",
		},
		"secret": {
			reason:   "only Jobs and supporting kinds",
			manifest: "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: ns, annotations: {openshift.io/preflight-check: \"true\"}}}",
			outcome:  preflight.Fail, problem: "UnsupportedKind",
		},
		"list": {
			reason: "the cluster-version operator does not accept lists",
			manifest: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: ns, " +
				"annotations: {openshift.io/preflight-check: \"true\"}}}",
			outcome: preflight.Fail, problem: "ListNotSupported", text: "line 4",
		},
		"delete": {
			reason: "an object to be deleted is not a preflight", manifest: replace("  annotations:\n",
				"  annotations:\n    release.openshift.io/delete: \"true\"\n"), outcome: preflight.Fail, problem: "DeleteAnnotation",
			text: "Job.batch ns/job",
		},
		"no name": {
			reason: "names are not generated", manifest: replace("  name: job\n", "  generateName: job-\n"),
			outcome: preflight.Fail, problem: "InvalidName",
		},
		"1 MiB name": {
			reason:   "a name is bounded, and so is the message",
			manifest: replace("name: job", "name: "+strings.Repeat("a", 1<<20)), outcome: preflight.Fail, problem: "InvalidName",
		},
		"name with spaces": {
			reason: "the API server would reject it", manifest: replace("name: job", "name: a b"), outcome: preflight.Fail,
			problem: "InvalidName", text: `"a b"`,
		},
		"no namespace": {
			reason: "a namespace is required", manifest: replace("  namespace: ns\n", ""), outcome: preflight.Fail,
			problem: "InvalidNamespace",
		},
		"role with slash": {
			reason: "the API server would reject it",
			manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a/b, namespace: ns, annotations: " +
				"{openshift.io/preflight-check: \"true\"}}}", outcome: preflight.Fail, problem: "InvalidName",
		},
		"unnamed role": {
			reason: "names are not generated",
			manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: ns, annotations: " +
				"{openshift.io/preflight-check: \"true\"}}}", outcome: preflight.Fail, problem: "InvalidName",
		},
		"cluster role in a namespace": {
			reason: "a ClusterRole has no namespace",
			manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, namespace: ns, annotations: " +
				"{openshift.io/preflight-check: \"true\"}}}",
			outcome: preflight.Fail, problem: "InvalidNamespace",
		},
		"twice": {
			reason: "one of the two is wrong", manifest: jobIn("ns", "job") + "---\n" + jobIn("ns", "job"), outcome: preflight.Fail,
			problem: "DuplicateManifest", text: "document 2 (line 16): Job.batch ns/job", jobs: 1,
		},
	}
}

func TestExtractManifests(t *testing.T) {
	t.Parallel()
	for name, test := range testedManifests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pullSpec, file := test.pushed(t)
			got, err := payload.Extract(t.Context(), forced(t, pullSpec), payload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Jobs) != test.jobs {
				t.Errorf("got %d Jobs, want %d: %s", len(got.Jobs), test.jobs, test.reason)
			}
			if test.problem == "" {
				if len(got.Problems) > 0 {
					t.Errorf("got problems %+v, want none: %s", got.Problems, test.reason)
				}
				return
			}
			if len(got.Problems) != 1 {
				t.Fatalf("got problems %+v, want one: %s", got.Problems, test.reason)
			}
			problem := got.Problems[0]
			if problem.Outcome != test.outcome || problem.Reason != test.problem || !strings.Contains(problem.Message, test.text) {
				t.Errorf("got %s %s %q, want %s %s with %q: %s", problem.Outcome, problem.Reason, problem.Message, test.outcome, test.problem,
					test.text, test.reason)
			}
			checkFinding(t, problem, file)
		})
	}
}

// checkFinding asserts the invariants of every problem.
func checkFinding(t *testing.T, problem finding.Finding, file string) {
	t.Helper()
	if !strings.HasPrefix(problem.Message, file) || problem.Evidence["file"] != file {
		t.Errorf("the problem does not name the file %q: %+v", file, problem)
	}
	if problem.Source != finding.SourcePayload || problem.Remediation == "" || !strings.HasPrefix(problem.Name, "Payload.") {
		t.Errorf("the problem is incomplete: %+v", problem)
	}
	if problem.Blocks != (problem.Outcome == preflight.Fail || problem.Outcome == preflight.Unknown) ||
		problem.Blocks != (len(problem.BlockedTargets) == 1) {
		t.Errorf("a problem blocks this release exactly when it fails or is inconclusive: %+v", problem)
	}
	if len(problem.Message) > 2048 || strings.ContainsAny(problem.Message, "\n\r") {
		t.Errorf("the message is not one short line: %q", problem.Message)
	}
}

// bomb is YAML that would expand to 10⁹ values.
func bomb() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n")
	for i := range 8 {
		fmt.Fprintf(&text, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	return text.String()
}

func TestExtractNamesProblems(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"0000_50_cloud-credential-operator_10_preflight-job.yaml": "Payload.CloudCredentialOperator10PreflightJob",
		"a.yaml": "Payload.A",
		"0000_50_" + strings.Repeat("long-", 40) + "x_job.yaml": ("Payload." + strings.Repeat("Long", 40) + "XJob"),
		"ümlaut.yaml": "Payload.Mlaut",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			pullSpec := pushLayer(t, serve(t, nil), releaseWith(t, entry{name: "release-manifests/" + file, content: "broken: ["}))
			got, err := payload.Extract(t.Context(), forced(t, pullSpec), payload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Problems) != 1 || got.Problems[0].Name != want {
				t.Errorf("got problems %+v, want one named %q", got.Problems, want)
			}
		})
	}
}

func TestExtractReadsReferences(t *testing.T) {
	t.Parallel()
	tags := `"tags":[` +
		`{"name":"tagged","from":{"kind":"DockerImage","name":"quay.io/openshift/cli:latest"}},` +
		`{"name":"short","from":{"kind":"DockerImage","name":"quay.io/openshift/cli@sha256:abc"}},` +
		`{"name":"stream","from":{"kind":"ImageStreamTag","name":"cli:latest"}},` +
		`{"name":"none"},`
	layer := archive(t,
		entry{name: "release-manifests/image-references", content: strings.Replace(references, `"tags":[`, tags, 1)},
		entry{name: "release-manifests/release-metadata", content: strings.Replace(metadata, `"url":"`, `"number":1,"text":"`, 1)},
	)
	got, err := payload.Extract(t.Context(), forced(t, pushLayer(t, serve(t, nil), layer)), payload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"cli": image}, got.Images); diff != "" {
		t.Errorf("only images by digest are bound to the signature (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"text": "https://example.com"}, got.Metadata); diff != "" {
		t.Errorf("want metadata with text values only (-want +got):\n%s", diff)
	}
	by := map[string]int{}
	for _, problem := range got.Problems {
		by[string(problem.Outcome)+" "+problem.Reason+" "+problem.Name]++
	}
	want := map[string]int{"Fail ImageNotByDigest Payload.ImageReferences": 4, "Warn MetadataNotString Payload.ReleaseMetadata": 1}
	if diff := cmp.Diff(want, by); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestExtractSortsByFile(t *testing.T) {
	t.Parallel()
	layer := releaseWith(t,
		entry{name: "release-manifests/b.yaml", content: jobIn("ns", "same")},
		entry{name: "release-manifests/B.yaml", content: jobIn("ns", "z") + "---\n" + jobIn("ns", "a")},
		entry{name: "release-manifests/a.yaml", content: jobIn("ns", "same")},
		entry{name: "release-manifests/below/c.yaml", content: jobIn("ns", "below")},
		entry{name: "manifests/d.yaml", content: jobIn("ns", "elsewhere")},
	)
	got, err := payload.Extract(t.Context(), forced(t, pushLayer(t, serve(t, nil), layer)), payload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := summary{
		Jobs:     []string{"B.yaml B ns/z", "B.yaml B ns/a", "a.yaml a ns/same"},
		Problems: []string{"Fail DuplicateManifest Payload.B"},
	}
	if diff := cmp.Diff(want, summarize(got)); diff != "" {
		t.Errorf("want the byte order of the names, independent of the order in the layer (-want +got):\n%s", diff)
	}
}
