package payload_test

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	server "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/types"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
	"github.com/openshift/update-preflight/runner/registry"
)

// extractLayer reads a release with that layer from a registry without a
// network. It asserts the invariants of any input.
func extractLayer(t *testing.T, layer []byte) (*payload.Release, error) {
	t.Helper()
	client := direct{server.New(server.Logger(log.New(io.Discard, "", 0)))}
	if len(layer) > 0 {
		putBlob(t, client, "127.0.0.1:1", layer)
	}
	pullSpec := putManifest(t, client, "127.0.0.1:1", types.DockerManifestSchema2, imageOf(t, nil, layer))
	return extractTwice(t, client, pullSpec)
}

// extractTwice also asserts that the extraction is deterministic.
func extractTwice(t *testing.T, client http.RoundTripper, pullSpec string) (*payload.Release, error) {
	t.Helper()
	options := payload.Options{Access: registry.Own(t.Context(), registry.Local{Transport: client}), Cluster: manifestfilter.Cluster{
		Features:     &manifestfilter.Features{Enabled: []configv1.FeatureGateName{"On"}},
		Capabilities: &configv1.ClusterVersionCapabilitiesStatus{EnabledCapabilities: []configv1.ClusterVersionCapability{"Console"}},
	}}
	got, err := payload.Extract(t.Context(), forced(t, pullSpec), options)
	again, errAgain := payload.Extract(t.Context(), forced(t, pullSpec), options)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("a second extraction has another result (-first +second):\n%s", diff)
	}
	if err == nil {
		return got, nil
	}
	var failure *imagefiles.Error
	if !errors.As(err, &failure) || errAgain == nil || err.Error() != errAgain.Error() {
		t.Errorf("got error %v, then %v, want the same *payload.Error", err, errAgain)
	}
	return nil, err
}

func FuzzLayer(f *testing.F) {
	valid := releaseWith(f, entry{name: "release-manifests/job.yaml", content: jobIn("ns", "job")})
	f.Add(valid)
	f.Add(compressed(f, valid))
	f.Add(zstandard(f, valid))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, layer []byte) {
		got, err := extractLayer(t, layer)
		if err == nil && (got.Version == "" || len(got.Images) == 0 && len(got.Problems) == 0) {
			t.Errorf("a release without version or images: %+v", got)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(jobIn("ns", "job")))
	f.Add([]byte(supporting))
	f.Add([]byte(bomb()))
	for _, filter := range []string{
		`release.openshift.io/feature-gate: "On,-Off"`, `release.openshift.io/feature-set: Default`,
		`capability.openshift.io/name: Console+Other`,
		`exclude.release.openshift.io/: "true"`, `include.release.openshift.io/other: "true"`, `release.openshift.io/major-version: ""`,
	} {
		f.Add([]byte(strings.Replace(jobIn("ns", "job"), "  annotations:\n", "  annotations:\n    "+filter+"\n", 1)))
	}
	f.Add([]byte(
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"ns","annotations":{"openshift.io\/preflight-check":"true"}}}{}`))
	f.Add([]byte("a: b\n...\n--- !!map {? &a openshift.io/preflight-check : yes, <<: *a}\n"))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		got, err := extractLayer(t, releaseWith(t, entry{name: "release-manifests/job.yaml", content: string(manifest)}))
		if err != nil {
			if !strings.Contains(err.Error(), "more than") {
				t.Errorf("a manifest made the release unreadable: %v", err)
			}
			return
		}
		for _, job := range got.Jobs {
			if job.Job.Annotations[payload.Annotation] != "true" || job.Job.Name == "" || job.Job.Namespace == "" {
				t.Errorf("kept a Job that is not a preflight: %+v", job.Job)
			}
		}
		for _, problem := range got.Problems {
			checkFinding(t, problem, "job.yaml")
		}
		if len(got.Problems)+len(got.Jobs)+len(got.Supporting) == 0 && bytes.HasPrefix(manifest, []byte(jobIn("ns", "job"))) {
			t.Error("a preflight was dropped without a problem")
		}
	})
}

func FuzzImageReferences(f *testing.F) {
	f.Add([]byte(references))
	f.Add([]byte(`{"kind":"ImageStream","spec":{"tags":[{"name":"a"},{"name":"a"}]}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := extractLayer(t, archive(t,
			entry{name: "release-manifests/image-references", content: string(content)},
			entry{name: "release-manifests/release-metadata", content: metadata}))
		if err != nil {
			return
		}
		for name, image := range got.Images {
			if name == "" || !strings.Contains(image, "@sha256:") {
				t.Errorf("image %q is %q, want one by digest", name, image)
			}
		}
	})
}

func FuzzReleaseMetadata(f *testing.F) {
	f.Add([]byte(metadata))
	f.Add([]byte(`{"kind":"cincinnati-metadata-v0","version":"4.21.3","metadata":{"a":{"b":[]}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := extractLayer(t, archive(t,
			entry{name: "release-manifests/image-references", content: references},
			entry{name: "release-manifests/release-metadata", content: string(content)}))
		if err == nil && got.Version != version {
			t.Errorf("got version %q; image-references has %s", got.Version, version)
		}
	})
}

func FuzzImageManifest(f *testing.F) {
	layer := releaseWith(f)
	f.Add(imageOf(f, nil, layer))
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"platform":{"os":"linux"},"digest":"sha256:` + strings.Repeat("a", 64) + `","size":1}]}`))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		client := direct{server.New(server.Logger(log.New(io.Discard, "", 0)))}
		putBlob(t, client, "127.0.0.1:1", layer)
		pullSpec := putManifest(t, client, "127.0.0.1:1", types.DockerManifestSchema2, manifest)
		if got, err := extractTwice(t, client, pullSpec); err == nil && got.Version != version {
			t.Errorf("want the release in the only layer, got %+v", got)
		}
	})
}
