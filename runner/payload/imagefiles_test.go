package payload_test

import (
	"archive/tar"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/update-preflight/runner/payload/imagefiles"
)

// Tests of: runner/payload/imagefiles

// pushLayers pushes an image with these layers and returns its pull spec.
func pushLayers(tb testing.TB, host string, layers ...[]byte) string {
	tb.Helper()
	manifest := imageOf(tb, func(manifest *v1.Manifest) {
		manifest.Layers = nil
		for _, layer := range layers {
			manifest.Layers = append(manifest.Layers, v1.Descriptor{MediaType: types.DockerLayer, Size: int64(len(layer)), Digest: digestOf(layer)})
		}
	}, nil)
	for _, layer := range layers {
		putBlob(tb, http.DefaultTransport, host, layer)
	}
	return putManifest(tb, http.DefaultTransport, host, types.DockerManifestSchema2, manifest)
}

func TestImageFiles(t *testing.T) {
	host := serve(t, nil)
	file := func(name, content string) []byte { return archive(t, entry{name: name, content: content}) }
	for name, tc := range map[string]struct {
		reason string
		layers [][]byte
		want   []string
		err    string
	}{
		"One": {
			reason: "an image FROM scratch with one COPY", layers: [][]byte{compressed(t, file("manifests/a.yaml", "a"))},
			want: []string{"a.yaml a"},
		},
		"Layers": {
			reason: "several COPY instructions", layers: [][]byte{file("manifests/a.yaml", "a"), file("./manifests/b.yaml", "b")},
			want: []string{"a.yaml a", "b.yaml b"},
		},
		"Others": {
			reason: "only files directly in the directory are read",
			layers: [][]byte{archive(t, entry{name: "release-manifests/a.yaml", content: "a"}, entry{name: "manifests/x/b.yaml", content: "b"},
				entry{name: "c.yaml", content: "c"})},
		},
		"Hidden": {
			reason: "a file of one layer would hide that of another",
			layers: [][]byte{file("manifests/a.yaml", "a"), file("manifests/a.yaml", "b")}, err: "NotAnImageOfManifests",
		},
		"Deleted": {
			reason: "a layer may not delete a check", layers: [][]byte{file("manifests/a.yaml", "a"), file("manifests/.wh.a.yaml", "")},
			err: "Whiteout",
		},
		"Link": {
			reason: "a link is not followed",
			layers: [][]byte{archive(t, entry{name: "manifests/a.yaml", kind: tar.TypeSymlink, link: "/etc/hostname"})}, err: "NotAFile",
		},
		"Outside":   {reason: "a path out of the image", layers: [][]byte{file("../manifests/a.yaml", "a")}, err: "UnsafeEntry"},
		"TooMany":   {reason: "the layers are counted", layers: slices.Repeat([][]byte{file("a", "a")}, 17), err: "NotAnImageOfManifests"},
		"NotATar":   {reason: "the layer is not an archive", layers: [][]byte{[]byte("x")}, err: "MalformedLayer"},
		"FileIsDir": {reason: "a file in place of the directory", layers: [][]byte{file("manifests", "a")}, err: "NotAFile"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]bool{}
			err := imagefiles.Read(t.Context(), pushLayers(t, host, tc.layers...), imagefiles.Source{}, func(file string, content []byte) error {
				files[file+" "+string(content)] = true
				return nil
			})
			if failed, ok := errors.AsType[*imagefiles.Error](err); (err != nil) != (tc.err != "") || ok && failed.Reason.String() != tc.err || ok &&
				failed.Remediation == "" {
				t.Fatalf("%s: %+v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(files))); diff != "" && tc.err == "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
	stop := errors.New("stop")
	err := imagefiles.Read(t.Context(), pushLayers(t, host, file("manifests/a.yaml", "a")), imagefiles.Source{},
		func(string, []byte) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("want the error of the caller, got %v", err)
	}
	for name, pullSpec := range map[string]string{
		"Tag":     host + "/openshift/release:v1",
		"Missing": host + "/openshift/release@sha256:" + strings.Repeat("0", 64),
	} {
		err := imagefiles.Read(t.Context(), pullSpec, imagefiles.Source{}, func(string, []byte) error { return nil })
		if _, ok := errors.AsType[*imagefiles.Error](err); !ok || !strings.Contains(err.Error(), "openshift/release") {
			t.Errorf("%s: want an error that names the image, got %v", name, err)
		}
	}
}

// The layers of an image are bounded together.
func TestImageFilesTooLarge(t *testing.T) {
	host := serve(t, nil)
	manifest := imageOf(t, func(manifest *v1.Manifest) {
		manifest.Layers = slices.Repeat([]v1.Descriptor{{MediaType: types.DockerLayer, Size: 40 << 20, Digest: digestOf([]byte("base"))}}, 2)
	}, nil)
	err := imagefiles.Read(t.Context(), putManifest(t, http.DefaultTransport, host, types.DockerManifestSchema2, manifest),
		imagefiles.Source{}, func(string, []byte) error { return nil })
	if failed, ok := errors.AsType[*imagefiles.Error](err); !ok || !strings.Contains(failed.Message, "the limit is") {
		t.Errorf("want an error with the limit, got %v", err)
	}
}
