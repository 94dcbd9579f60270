package payload_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/update-preflight/signature"
)

const repository = "openshift/release"

// serve runs a registry, wrapped by the given handler if there is one, and
// returns its host.
func serve(tb testing.TB, wrap func(http.Handler) http.Handler) string {
	tb.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// direct reaches a registry without a network, for fuzzing.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(request *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	d.handler.ServeHTTP(recorder, request)
	response := recorder.Result()
	response.Request = request
	return response, nil
}

func digestOf(content []byte) v1.Hash {
	sum := sha256.Sum256(content)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}

// put sends an upload that the registry must accept. It does not validate the content.
func put(tb testing.TB, client http.RoundTripper, request *http.Request) {
	tb.Helper()
	response, err := client.RoundTrip(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(response.Body)
		tb.Fatalf("%s %s: %s: %s", request.Method, request.URL, response.Status, text)
	}
}

func putBlob(tb testing.TB, client http.RoundTripper, host string, content []byte) {
	tb.Helper()
	url := "http://" + host + "/v2/" + repository + "/blobs/uploads/?digest=" + digestOf(content).String()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, bytes.NewReader(content))
	if err != nil {
		tb.Fatal(err)
	}
	put(tb, client, request)
}

// putManifest returns the pull spec.
func putManifest(tb testing.TB, client http.RoundTripper, host string, mediaType types.MediaType, content []byte) string {
	tb.Helper()
	digest := digestOf(content).String()
	url := "http://" + host + "/v2/" + repository + "/manifests/" + digest
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodPut, url, bytes.NewReader(content))
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Content-Type", string(mediaType))
	put(tb, client, request)
	return host + "/" + repository + "@" + digest
}

// imageOf is the manifest of an image with the layer on top of a base layer
// that the registry does not have.
func imageOf(tb testing.TB, change func(manifest *v1.Manifest), layer []byte) []byte {
	tb.Helper()
	manifest := v1.Manifest{
		SchemaVersion: 2, MediaType: types.DockerManifestSchema2,
		Config: v1.Descriptor{MediaType: types.DockerConfigJSON, Size: 2, Digest: digestOf([]byte("{}"))},
		Layers: []v1.Descriptor{
			{MediaType: types.DockerLayer, Size: 1 << 40, Digest: digestOf([]byte("base"))},
			{MediaType: types.DockerLayer, Size: int64(len(layer)), Digest: digestOf(layer)},
		},
	}
	if change != nil {
		change(&manifest)
	}
	return toJSON(tb, manifest)
}

func toJSON(tb testing.TB, value any) []byte {
	tb.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return content
}

// pushLayer pushes an image with that last layer and returns its pull spec.
func pushLayer(tb testing.TB, host string, layer []byte) string {
	tb.Helper()
	putBlob(tb, http.DefaultTransport, host, layer)
	return putManifest(tb, http.DefaultTransport, host, types.DockerManifestSchema2, imageOf(tb, nil, layer))
}

// forced returns a release without a verified signature.
func forced(tb testing.TB, pullSpec string) signature.Release {
	tb.Helper()
	proof, err := signature.Force(pullSpec, errors.New("not signed in this test"))
	if err != nil {
		tb.Fatal(err)
	}
	return proof
}

// entry is one entry of a layer; content makes it a file unless it has a type.
type entry struct {
	name    string
	content string
	kind    byte
	link    string
}

// archive writes a tar of entries, which may be invalid.
func archive(tb testing.TB, entries ...entry) []byte {
	tb.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, e := range entries {
		kind := e.kind
		if kind == 0 {
			kind = tar.TypeReg
		}
		if err := w.WriteHeader(&tar.Header{
			Typeflag: kind, Name: e.name, Linkname: e.link, Mode: 0o644,
			Size: int64(len(e.content)),
		}); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return buffer.Bytes()
}

func compressed(tb testing.TB, content []byte) []byte {
	tb.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write(content); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return buffer.Bytes()
}

const (
	version    = "4.21.3"
	image      = "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	references = `{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"` + version + `","creationTimestamp":null},` +
		`"spec":{"lookupPolicy":{"local":false},"tags":[{"name":"cli","annotations":{"io.openshift.build.source-location":"x"},` +
		`"from":{"kind":"DockerImage","name":"` + image +
		`"},"generation":2,"importPolicy":{},"referencePolicy":{"type":"Source"}}]},"status":{"dockerImageRepository":""}}`
	metadata = `{"kind":"cincinnati-metadata-v0","version":"` + version +
		`","previous":["4.20.9","4.21.2"],"metadata":{"url":"https://example.com"}}`
)

// releaseWith is the archive of a small valid release and the given entries.
func releaseWith(tb testing.TB, entries ...entry) []byte {
	tb.Helper()
	return archive(tb, append([]entry{
		{name: "release-manifests/", kind: tar.TypeDir},
		{name: "release-manifests/image-references", content: references},
		{name: "release-manifests/release-metadata", content: metadata},
	}, entries...)...)
}

// jobIn is a valid preflight in the given namespace.
func jobIn(namespace, name string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  namespace: %s
  annotations:
    openshift.io/preflight-check: "true"
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: check
        image: %s
        command: ["/bin/preflight"]
`, name, namespace, image)
}
