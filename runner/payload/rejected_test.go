package payload_test

import (
	"archive/tar"
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
	"github.com/openshift/update-preflight/signature"
)

// rejectedLayer is a layer of no valid release.
type rejectedLayer struct {
	reason string
	layer  func(*testing.T) []byte
	want   string
	text   string
}

// read pushes the layer, and returns the extraction and the size of the layer.
func (r rejectedLayer) read(t *testing.T) (func() error, int) {
	t.Helper()
	layer := r.layer(t)
	return extraction(t, pushLayer(t, serve(t, nil), layer), manifestfilter.Cluster{}), len(layer)
}

// extraction returns a function that extracts the release.
func extraction(t *testing.T, pullSpec string, cluster manifestfilter.Cluster) func() error {
	t.Helper()
	proof := forced(t, pullSpec)
	return func() error {
		_, err := payload.Extract(t.Context(), proof, payload.Options{Cluster: cluster})
		return err
	}
}

func rejectedLayers() map[string]rejectedLayer {
	file := func(name, content string) []entry {
		return []entry{{name: "release-manifests/" + name, content: content}}
	}
	with := func(entries ...entry) func(*testing.T) []byte {
		return func(t *testing.T) []byte { t.Helper(); return releaseWith(t, entries...) }
	}
	only := func(entries ...entry) func(*testing.T) []byte {
		return func(t *testing.T) []byte { t.Helper(); return archive(t, entries...) }
	}
	referencing := func(content string) func(*testing.T) []byte {
		return only(append(file("image-references", content), file("release-metadata", metadata)...)...)
	}
	describing := func(content string) func(*testing.T) []byte {
		return only(append(file("image-references", references), file("release-metadata", content)...)...)
	}
	return map[string]rejectedLayer{
		"parent": {
			reason: "a name must not contain a parent directory",
			layer:  with(entry{name: "release-manifests/../release-manifests/job.yaml"}), want: "UnsafeEntry",
			text: `"release-manifests/../release-manifests/job.yaml"`,
		},
		"parent elsewhere": {
			reason: "no valid layer has such names", layer: with(entry{name: "../../etc/passwd"}), want: "UnsafeEntry",
			text: `"../../etc/passwd"`,
		},
		"absolute": {
			reason: "a name is relative to the image", layer: with(entry{name: "/release-manifests/job.yaml"}),
			want: "UnsafeEntry", text: `"/release-manifests/job.yaml"`,
		},
		"symbolic link": {
			reason: "a manifest is a file", layer: with(entry{name: "release-manifests/job.yaml", kind: tar.TypeSymlink, link: "/etc/passwd"}),
			want: "NotAFile", text: `"release-manifests/job.yaml"`,
		},
		"hard link": {
			reason: "a manifest is a file", layer: with(entry{
				name: "release-manifests/job.yaml", kind: tar.TypeLink,
				link: "release-manifests/image-references",
			}), want: "NotAFile",
		},
		"device": {
			reason: "a manifest is a file", layer: with(entry{name: "release-manifests/job.yaml", kind: tar.TypeChar}),
			want: "NotAFile",
		},
		"pipe": {
			reason: "a manifest is a file", layer: with(entry{name: "release-manifests/job.yaml", kind: tar.TypeFifo}),
			want: "NotAFile",
		},
		"directory link": {
			reason: "the directory is not a link",
			layer:  only(entry{name: "release-manifests", kind: tar.TypeSymlink, link: "etc"}), want: "NotAFile",
		},
		"twice": {
			reason: "readers differ in which of the two they use",
			layer:  with(append(file("job.yaml", "a: b"), file("job.yaml", "a: c")...)...), want: "DuplicateEntry",
			text: `"release-manifests/job.yaml"`,
		},
		"twice, not clean": {
			reason: "both names are of the same file", layer: with(append(file("job.yaml", "a: b"),
				entry{name: "./release-manifests//job.yaml", content: "a: c"})...), want: "DuplicateEntry",
		},
		"whiteout": {reason: "the layers below are not read", layer: with(file(".wh.job.yaml", "")...), want: "Whiteout", text: ".wh.job.yaml"},
		"large file": {
			reason: "a file is bounded before it is read", layer: with(file("large.yaml", strings.Repeat("a", 8<<20+1))...), want: "FileTooLarge",
			text: "large.yaml",
		},
		"many entries": {
			reason: "the number of entries is bounded", want: "LayerTooLarge",
			layer: func(t *testing.T) []byte {
				t.Helper()
				return packed(t, compressed, bytes.Repeat(headerOf(t, "etc/x", 0), 1000), 1000)
			},
		},
		"huge entry": {
			reason: "an entry that exceeds the bound is not read", want: "LayerTooLarge",
			layer: func(t *testing.T) []byte {
				t.Helper()
				return append(headerOf(t, "etc/x", 10<<30), make([]byte, 1024)...)
			},
		},
		"zeros, gzip": {
			reason: "10 GiB of zeros are not unpacked", want: "LayerTooLarge",
			layer: func(t *testing.T) []byte { t.Helper(); return packed(t, compressed, zeros(t), 1280) },
		},
		"zeros, zstd": {
			reason: "10 GiB of zeros are not unpacked", want: "LayerTooLarge",
			layer: func(t *testing.T) []byte { t.Helper(); return packed(t, zstandard, zeros(t), 1280) },
		},
		"extended headers": {
			reason: "extended headers are bounded too", want: "LayerTooLarge",
			layer: func(t *testing.T) []byte { t.Helper(); return packed(t, compressed, padding(t), 1000) },
		},
		"large window": {reason: "the sender chooses the window size, which is memory", layer: wide, want: "MalformedLayer", text: "window"},
		"cut": {
			reason: "a truncated archive is rejected", want: "MalformedLayer",
			layer: func(t *testing.T) []byte {
				t.Helper()
				return releaseWith(t, file("job.yaml", jobIn("ns", "job"))...)[:2600]
			},
		},
		"cut, compressed": {
			reason: "a truncated stream is rejected", want: "MalformedLayer",
			layer: func(t *testing.T) []byte {
				t.Helper()
				layer := compressed(t, releaseWith(t, file("job.yaml", jobIn("ns", "job"))...))
				return layer[:len(layer)-100]
			},
		},
		"no archive": {
			reason: "a layer is an archive", want: "MalformedLayer",
			layer: func(*testing.T) []byte { return bytes.Repeat([]byte("no tar "), 1000) },
		},
		"ordinary image": {
			reason: "most images are not releases", layer: only(entry{name: "etc/hosts", content: "x"}), want: "NotARelease",
			text: "it is not a release image",
		},
		"no metadata":   {reason: "a release has both files", layer: only(file("image-references", references)...), want: "NotARelease"},
		"no references": {reason: "a release has both files", layer: only(file("release-metadata", metadata)...), want: "NotARelease"},
		"other version": {
			reason: "both files must be of one release", layer: describing(strings.Replace(metadata, version, "4.21.4", 1)),
			want: "VersionMismatch", text: `"4.21.4"`,
		},
		"no version": {
			reason: "a version is SemVer", layer: describing(strings.Replace(metadata, version, "latest", 1)),
			want: "InvalidRelease", text: `"latest" is not a semantic version`,
		},
		"other kind": {
			reason: "the kind identifies the format", layer: describing(strings.Replace(metadata, "-v0", "-v1", 1)),
			want: "InvalidRelease", text: "cincinnati-metadata-v1",
		},
		"no JSON": {
			reason: "the metadata is JSON", layer: describing("kind: cincinnati-metadata-v0"), want: "InvalidRelease",
			text: "not valid JSON",
		},
		"trailing JSON": {reason: "trailing content would be ignored", layer: describing(metadata + metadata), want: "InvalidRelease"},
		"second version": {reason: "readers differ in which of the two they use", layer: describing(strings.Replace(metadata, "{",
			`{"version":"4.20.0",`, 1)), want: "InvalidRelease", text: `duplicate field "version"`},
		"no image stream": {
			reason: "the list of images is an ImageStream", layer: referencing(`{"kind":"List","apiVersion":"v1"}`),
			want: "InvalidRelease", text: `"List"`,
		},
		"no images": {reason: "a release has images", layer: referencing(
			`{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"4.21.3"}}`), want: "InvalidRelease", text: "no image"},
		"unknown field": {
			reason: "the meaning of an unknown field is unknown",
			layer:  referencing(strings.Replace(references, `"tags"`, `"tagz"`, 1)), want: "InvalidRelease", text: `unknown field "spec.tagz"`,
		},
		"image twice": {
			reason: "a name has one image", want: "InvalidRelease", text: `"cli" is duplicate`,
			layer: referencing(strings.Replace(references, `"tags":[`, `"tags":[{"name":"cli"},`, 1)),
		},
		"dense references": {
			reason: "the number of tokens is bounded", layer: referencing("[" + strings.Repeat("{},", 100_000) + "]"),
			want: "InvalidRelease", text: "tokens",
		},
		"many problems": {
			reason: "the number of problems is bounded", want: "TooManyProblems",
			layer: with(append(file("a.yaml", strings.Repeat("a: b\n---\n", 900)), file("b.yaml", strings.Repeat("a: b\n---\n", 900))...)...),
		},
		"large preflights": {reason: "the size of all preflights is bounded", layer: with(largePreflights(5)...), want: "TooManyPreflights"},
	}
}

func TestExtractRejectsLayers(t *testing.T) {
	t.Parallel()
	for name, test := range rejectedLayers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			extract, _ := test.read(t)
			failure := failureOf(t, extract())
			if failure.Reason.String() != test.want || failure.Outcome != preflight.Fail || !strings.Contains(failure.Error(), test.text) {
				t.Errorf("got %s %s %q, want Fail %s with %q: %s", failure.Outcome, failure.Reason, failure.Error(), test.want, test.text, test.reason)
			}
		})
	}
}

// largePreflights are n ConfigMaps of 2 MiB each.
func largePreflights(n int) []entry {
	entries := make([]entry, n)
	for i := range entries {
		name := "large-" + strings.Repeat("a", i)
		entries[i] = entry{
			name: "release-manifests/" + name + ".yaml",
			content: `{apiVersion: v1, kind: ConfigMap, data: {a: ` + strings.Repeat("a", 2<<20) +
				`}, metadata: {name: x` + strings.Repeat("a", i) + `, namespace: ns, annotations: {openshift.io/preflight-check: "true"}}}`,
		}
	}
	return entries
}

// headerOf is the header of a file of the given size, without its content.
func headerOf(tb testing.TB, name string, size int64) []byte {
	tb.Helper()
	var buffer bytes.Buffer
	if err := tar.NewWriter(&buffer).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}); err != nil {
		tb.Fatal(err)
	}
	return buffer.Bytes()
}

// packed compresses a part of an archive and repeats it: both formats allow it.
func packed(tb testing.TB, pack func(testing.TB, []byte) []byte, part []byte, times int) []byte {
	tb.Helper()
	return bytes.Repeat(pack(tb, part), times)
}

func zstandard(tb testing.TB, content []byte) []byte {
	tb.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return encoder.EncodeAll(content, nil)
}

// zeros is a file of 8 MiB of zeros outside of the manifests.
func zeros(tb testing.TB) []byte {
	tb.Helper()
	return append(headerOf(tb, "usr/lib/zeros", 8<<20), make([]byte, 8<<20)...)
}

// padding is the extended header of an archive entry that
// is missing.
func padding(tb testing.TB) []byte {
	tb.Helper()
	var buffer bytes.Buffer
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "x", PAXRecords: map[string]string{"VENDOR.comment": strings.Repeat("a", 1000<<10)}}
	if err := tar.NewWriter(&buffer).WriteHeader(header); err != nil {
		tb.Fatal(err)
	}
	return buffer.Bytes()
}

// wide is a zstd stream with a window of 32 MiB.
func wide(t *testing.T) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w, err := zstd.NewWriter(&buffer, zstd.WithWindowSize(32<<20))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := w.Write(zeros(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// rejectedImage is an image that is not a valid release.
type rejectedImage struct {
	reason string
	change func(*v1.Manifest)
	// raw replaces the manifest.
	raw       string
	mediaType types.MediaType
	want      string
	text      string
}

// read pushes the image, and returns the extraction.
func (r rejectedImage) read(t *testing.T) func() error {
	t.Helper()
	host, layer, mediaType := serve(t, nil), releaseWith(t), types.DockerManifestSchema2
	putBlob(t, http.DefaultTransport, host, layer)
	content := imageOf(t, r.change, layer)
	if r.raw != "" {
		content, mediaType = []byte(r.raw), r.mediaType
	}
	return extraction(t, putManifest(t, http.DefaultTransport, host, mediaType, content), manifestfilter.Cluster{})
}

func rejectedImages() map[string]rejectedImage {
	last := func(change func(layer *v1.Descriptor)) func(*v1.Manifest) {
		return func(manifest *v1.Manifest) { change(&manifest.Layers[len(manifest.Layers)-1]) }
	}
	return map[string]rejectedImage{
		"foreign layer": {
			reason: "content of other servers is not fetched", want: "ForeignContent",
			change: last(func(layer *v1.Descriptor) { layer.URLs = []string{"https://example.com/layer"} }),
		},
		"undistributable layer": {
			reason: "the layer is on another server", want: "ForeignContent",
			change: last(func(layer *v1.Descriptor) { layer.MediaType = types.DockerForeignLayer }),
		},
		"inline layer": {
			reason: "embedded data is not used", want: "InlineContent",
			change: last(func(layer *v1.Descriptor) { layer.Data = []byte("data") }),
		},
		"large layer": {
			reason: "the size of a layer is checked before the request", want: "TooLarge", text: "67108864",
			change: last(func(layer *v1.Descriptor) { layer.Size = 64<<20 + 1 }),
		},
		"empty layer": {
			reason: "the layer is empty", want: "InvalidSize",
			change: last(func(layer *v1.Descriptor) { layer.Size = 0 }),
		},
		"negative layer": {
			reason: "a size is not negative", want: "InvalidSize",
			change: last(func(layer *v1.Descriptor) { layer.Size = -1 }),
		},
		"other digest": {
			reason: "only sha256 is supported", want: "UnsupportedDigest",
			change: last(func(layer *v1.Descriptor) { layer.Digest = v1.Hash{Algorithm: "sha512", Hex: strings.Repeat("a", 128)} }),
		},
		"no layers": {
			reason: "an artifact is not a release", change: func(manifest *v1.Manifest) { manifest.Layers = nil },
			want: "InvalidManifest",
		},
		"schema 1": {
			reason: "its digest does not bind the layers", raw: `{"schemaVersion":1,"fsLayers":[]}`,
			mediaType: types.DockerManifestSchema1Signed, want: "SchemaVersion1",
		},
		"schema 1, mislabeled": {
			reason: "the content determines the schema", raw: `{"schemaVersion":1,"fsLayers":[]}`,
			mediaType: types.DockerManifestSchema2, want: "SchemaVersion1",
		},
		"schema 3": {
			reason: "the schema version is unknown", raw: `{"schemaVersion":3}`, mediaType: types.DockerManifestSchema2,
			want: "InvalidManifest",
		},
		"no schema": {
			reason: "keys have one case", raw: `{"SchemaVersion":2,"layers":[]}`, mediaType: types.DockerManifestSchema2,
			want: "InvalidManifest",
		},
		"no JSON": {reason: "a manifest is JSON", raw: `<html>`, mediaType: types.DockerManifestSchema2, want: "InvalidManifest"},
		"both": {
			reason: "readers differ in which of the two they take (CVE-2021-41190)", want: "AmbiguousManifest",
			raw: `{"schemaVersion":2,"layers":[{"digest":"sha256:` + strings.Repeat("a", 64) + `"}],"manifests":[{"digest":"sha256:` +
				strings.Repeat("a", 64) + `"}]}`,
			mediaType: types.OCIManifestSchema1,
		},
		"index with image type": {
			reason: "type and content must agree", want: "InvalidManifest", mediaType: types.OCIManifestSchema1,
			raw: `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","manifests":[{"digest":"sha256:` + strings.Repeat("a",
				64) + `"}]}`,
		},
	}
}

func TestExtractRejectsImages(t *testing.T) {
	t.Parallel()
	for name, test := range rejectedImages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := failureOf(t, test.read(t)())
			if failure.Reason.String() != test.want || failure.Outcome != preflight.Fail || !strings.Contains(failure.Error(), test.text) {
				t.Errorf("got %s %s %q, want Fail %s: %s", failure.Outcome, failure.Reason, failure.Error(), test.want, test.reason)
			}
		})
	}
}

// rejectedIndex is an index that is not a valid release.
type rejectedIndex struct {
	reason string
	change func(index *v1.IndexManifest)
	// architecture is the cluster's.
	architecture string
	want         string
	text         string
}

// read pushes the index, and returns the extraction.
func (r rejectedIndex) read(t *testing.T) func() error {
	t.Helper()
	host, content := serve(t, nil), imageOf(t, nil, releaseWith(t))
	putManifest(t, http.DefaultTransport, host, types.DockerManifestSchema2, content)
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.DockerManifestList, Manifests: []v1.Descriptor{{
		MediaType: types.DockerManifestSchema2, Size: int64(len(content)), Digest: digestOf(content),
		Platform: &v1.Platform{OS: "linux", Architecture: "arm64"},
	}}}
	r.change(&index)
	return extraction(t, putManifest(t, http.DefaultTransport, host, types.DockerManifestList, toJSON(t, index)),
		manifestfilter.Cluster{Architecture: r.architecture})
}

func rejectedIndexes() map[string]rejectedIndex {
	return map[string]rejectedIndex{
		"other architecture": {
			reason: "the cluster's nodes could not run the release", architecture: "ppc64le", want: "ArchitectureMissing",
			text: "no image for linux/ppc64le, only for: linux/arm64, windows/amd64",
			change: func(index *v1.IndexManifest) {
				other := index.Manifests[0]
				other.Platform = &v1.Platform{OS: "windows", Architecture: "amd64"}
				index.Manifests = append(index.Manifests, other)
			},
		},
		"no linux": {
			reason: "nodes run linux", want: "NoLinuxImage", text: "windows/amd64",
			change: func(index *v1.IndexManifest) {
				index.Manifests[0].Platform = &v1.Platform{OS: "windows", Architecture: "amd64"}
			},
		},
		"no platform": {
			reason: "an attestation is not an image", want: "NoLinuxImage",
			change: func(index *v1.IndexManifest) { index.Manifests[0].Platform = nil },
		},
		"other size": {
			reason: "the index declares the size, too", want: "SizeMismatch",
			change: func(index *v1.IndexManifest) { index.Manifests[0].Size++ },
		},
		"foreign image": {
			reason: "content of other servers is not fetched", want: "ForeignContent",
			change: func(index *v1.IndexManifest) { index.Manifests[0].URLs = []string{"https://example.com"} },
		},
		"large image": {
			reason: "the size of a manifest is checked before the request", want: "TooLarge",
			change: func(index *v1.IndexManifest) { index.Manifests[0].Size = 4<<20 + 1 },
		},
	}
}

func TestExtractRejectsIndexes(t *testing.T) {
	t.Parallel()
	for name, test := range rejectedIndexes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := failureOf(t, test.read(t)())
			if failure.Reason.String() != test.want || failure.Outcome != preflight.Fail || !strings.Contains(failure.Error(), test.text) {
				t.Errorf("got %s %s %q, want Fail %s: %s", failure.Outcome, failure.Reason, failure.Error(), test.want, test.reason)
			}
		})
	}
}

func TestExtractRejectsNestedIndexes(t *testing.T) {
	t.Parallel()
	host, content := serve(t, nil), imageOf(t, nil, releaseWith(t))
	descriptor := putManifest(t, http.DefaultTransport, host, types.DockerManifestSchema2, content)
	for range 2 {
		index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.DockerManifestList, Manifests: []v1.Descriptor{
			{
				MediaType: types.DockerManifestList, Size: int64(len(content)), Digest: digestOf(content),
				Platform: &v1.Platform{OS: "linux", Architecture: "amd64"},
			},
		}}
		content = toJSON(t, index)
		descriptor = putManifest(t, http.DefaultTransport, host, types.DockerManifestList, content)
	}
	_, err := payload.Extract(t.Context(), forced(t, descriptor), payload.Options{})
	if failure := failureOf(t, err); failure.Reason.String() != "NestedIndex" {
		t.Errorf("got %s, want NestedIndex", failure.Reason)
	}
}

// respond changes the response of the registry to a GET of a path that contains part.
func respond(part string, change func(w http.ResponseWriter, genuine *httptest.ResponseRecorder)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, part) {
				next.ServeHTTP(w, r)
				return
			}
			genuine := httptest.NewRecorder()
			next.ServeHTTP(genuine, r)
			change(w, genuine)
		})
	}
}

// flipped serves the response with one bit inverted.
func flipped(w http.ResponseWriter, genuine *httptest.ResponseRecorder) {
	body := genuine.Body.Bytes()
	body[len(body)/2] ^= 1
	w.Header().Set("Content-Type", genuine.Header().Get("Content-Type"))
	_, _ = w.Write(body)
}

// rejectedRegistry is a registry that serves other content or errors.
type rejectedRegistry struct {
	reason  string
	part    string
	change  func(http.ResponseWriter, *httptest.ResponseRecorder)
	want    string
	outcome preflight.Outcome
}

// read pushes a valid release, and returns its extraction from the registry.
func (r rejectedRegistry) read(t *testing.T) func() error {
	t.Helper()
	return extraction(t, pushLayer(t, serve(t, respond(r.part, r.change)), releaseWith(t)), manifestfilter.Cluster{})
}

func rejectedRegistries() map[string]rejectedRegistry {
	status := func(code int) func(http.ResponseWriter, *httptest.ResponseRecorder) {
		return func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
			http.Error(w, "not\nhere", code)
		}
	}
	return map[string]rejectedRegistry{
		"tampered layer": {
			reason: "a single inverted bit is detected", part: "/blobs/", change: flipped, want: "DigestMismatch",
			outcome: preflight.Fail,
		},
		"tampered layer of unknown size": {
			reason: "the server may omit the size", part: "/blobs/", want: "DigestMismatch", outcome: preflight.Fail,
			change: func(w http.ResponseWriter, genuine *httptest.ResponseRecorder) {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				flipped(w, genuine)
			},
		},
		"cut layer": {
			reason: "the connection may have broken", part: "/blobs/", want: "LayerTruncated", outcome: preflight.Unknown,
			change: func(w http.ResponseWriter, genuine *httptest.ResponseRecorder) {
				_, _ = w.Write(genuine.Body.Bytes()[:genuine.Body.Len()/2])
			},
		},
		"tampered manifest": {
			reason: "a single inverted bit is detected", part: "/manifests/", change: flipped, want: "DigestMismatch",
			outcome: preflight.Fail,
		},
		"forged digest header": {
			reason: "the digest header is not trusted", part: "/manifests/", want: "DigestMismatch", outcome: preflight.Fail,
			change: func(w http.ResponseWriter, genuine *httptest.ResponseRecorder) {
				w.Header().Set("Content-Type", string(types.DockerManifestSchema2))
				w.Header().Set("Docker-Content-Digest", genuine.Header().Get("Docker-Content-Digest"))
				_, _ = w.Write([]byte(`{"schemaVersion":2,"layers":[]}`))
			},
		},
		"web page": {
			reason: "a captive portal responds instead of the registry", part: "/manifests/", want: "DigestMismatch", outcome: preflight.Fail,
			change: func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte("<html>log in first</html>"))
			},
		},
		"endless layer": {
			reason: "at most the declared size is read", part: "/blobs/", want: "DigestMismatch", outcome: preflight.Fail,
			change: func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
				for block := make([]byte, 1<<20); ; {
					if _, err := w.Write(block); err != nil {
						return
					}
				}
			},
		},
		"other manifest, labeled schema 1": {
			reason: "go-containerregistry trusts this header", part: "/manifests/", want: "DigestMismatch", outcome: preflight.Fail,
			change: func(w http.ResponseWriter, genuine *httptest.ResponseRecorder) {
				w.Header().Set("Content-Type", string(types.DockerManifestSchema1Signed))
				w.Header().Set("Docker-Content-Digest", genuine.Header().Get("Docker-Content-Digest"))
				_, _ = w.Write(append(genuine.Body.Bytes(), ' '))
			},
		},
		"endless manifest": {
			reason: "a response is bounded", part: "/manifests/", want: "ManifestTooLarge", outcome: preflight.Fail,
			change: func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
				for block := make([]byte, 1<<20); ; {
					if _, err := w.Write(block); err != nil {
						return
					}
				}
			},
		},
		"redirects without end": {
			reason: "redirects are limited", part: "/manifests/", want: "RegistryUnreachable", outcome: preflight.Unknown,
			change: func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
				w.Header().Set("Location", "?again")
				w.WriteHeader(http.StatusTemporaryRedirect)
			},
		},
		"redirects without end, layer": {
			reason: "redirects are limited", part: "/blobs/", want: "RegistryUnreachable", outcome: preflight.Unknown,
			change: func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
				w.Header().Set("Location", "?again")
				w.WriteHeader(http.StatusTemporaryRedirect)
			},
		},
		"endless error": {
			reason: "an error response is bounded", part: "/manifests/", want: "RegistryError", outcome: preflight.Unknown,
			change: func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
				w.WriteHeader(http.StatusTeapot)
				for block := make([]byte, 1<<20); ; {
					if _, err := w.Write(block); err != nil {
						return
					}
				}
			},
		},
		"no manifest": {
			reason: "the image does not exist", part: "/manifests/", change: status(http.StatusNotFound), want: "ImageNotFound",
			outcome: preflight.Unknown,
		},
		"no layer": {
			reason: "a mirror may be incomplete", part: "/blobs/", change: status(http.StatusNotFound), want: "ImageNotFound",
			outcome: preflight.Unknown,
		},
		"forbidden": {
			reason: "the account has no permission to pull", part: "/manifests/", change: status(http.StatusForbidden),
			want: "RegistryUnauthorized", outcome: preflight.Unknown,
		},
		"teapot": {
			reason: "any other HTTP error", part: "/manifests/", change: status(http.StatusTeapot), want: "RegistryError",
			outcome: preflight.Unknown,
		},
	}
}

func TestExtractRejectsRegistries(t *testing.T) {
	t.Parallel()
	for name, test := range rejectedRegistries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.read(t)()
			if failure := failureOf(t, err); failure.Reason.String() != test.want || failure.Outcome != test.outcome {
				t.Errorf("got %s %s, want %s %s: %s (%v)", failure.Outcome, failure.Reason, test.outcome, test.want, test.reason, err)
			}
		})
	}
}

func TestExtractRejectsUnverified(t *testing.T) {
	t.Parallel()
	_, err := payload.Extract(t.Context(), signature.Release{}, payload.Options{})
	if failure := failureOf(t, err); failure.Reason.String() != "NotVerified" {
		t.Errorf("got %s for an empty proof, want NotVerified", failure.Reason)
	}
}

func TestExtractUnreachable(t *testing.T) {
	t.Parallel()
	_, err := payload.Extract(t.Context(), forced(t, "127.0.0.1:1/release@sha256:"+strings.Repeat("a", 64)), payload.Options{})
	if failure := failureOf(t, err); failure.Reason.String() != "RegistryUnreachable" || failure.Outcome != preflight.Unknown {
		t.Errorf("got %s %s for an unreachable registry, want Unknown RegistryUnreachable: %v", failure.Outcome, failure.Reason, err)
	}
}
