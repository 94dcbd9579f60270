package payload_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

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
			got, err := payload.Extract(t.Context(), forced(t, pullSpec), payload.Options{Cluster: manifestfilter.Cluster{Architecture: test.architecture}})
			if err != nil {
				t.Fatalf("Extract: %v; %s", err, test.reason)
			}
			if diff := cmp.Diff(genuineSummary, summarize(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			want := payload.Release{
				Release: update.Release{Version: version, Image: pullSpec}, Previous: []string{"4.20.9"}, Metadata: map[string]string{"url": "https://example.com"},
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
