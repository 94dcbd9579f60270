package release_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	imagev1 "github.com/openshift/api/image/v1"

	"github.com/openshift/update-preflight/test/release"
)

const (
	version = "4.20.1"
	source  = "quay.io/openshift/origin-ingress"
)

// newRegistry starts an empty registry and returns its host:port.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// pull reads the image of a pull spec; of an index, the one for amd64.
func pull(t *testing.T, pullSpec string) v1.Image {
	t.Helper()
	ref, err := name.ParseReference(pullSpec)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

type entry struct {
	Mode int64
	Data string
}

// unpack reads layer i of image, counted from the end when negative.
func unpack(t *testing.T, image v1.Image, i int) map[string]entry {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if i < 0 {
		i += len(layers)
	}
	stream, err := layers[i].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]entry{}
	for r := tar.NewReader(stream); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		entries[header.Name] = entry{Mode: header.Mode, Data: string(data)}
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestBuildImage(t *testing.T) {
	pullSpec, err := release.BuildImage(t.Context(), newRegistry(t), "ingress", release.Image{
		Files: map[string]release.File{
			"/bin/preflight": {Mode: 0o755, Data: []byte("static")},
			"etc/passwd":     {Data: []byte("root")},
		},
		Config: v1.Config{Entrypoint: []string{"/bin/preflight"}, User: "65534", Labels: map[string]string{"a": "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	image := pull(t, pullSpec)
	want := map[string]entry{
		"bin/": {Mode: 0o755}, "bin/preflight": {Mode: 0o755, Data: "static"},
		"etc/": {Mode: 0o755}, "etc/passwd": {Mode: 0o644, Data: "root"},
	}
	if diff := cmp.Diff(want, unpack(t, image, 0)); diff != "" {
		t.Errorf("files of the image (-want +got):\n%s", diff)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{config.OS, config.Architecture, config.Config.User, config.Config.Entrypoint[0], config.Config.Labels["a"]}
	if diff := cmp.Diff([]string{"linux", "amd64", "65534", "/bin/preflight", "b"}, got); diff != "" {
		t.Errorf("configuration of the image (-want +got):\n%s", diff)
	}
}

func TestPush(t *testing.T) {
	host := newRegistry(t)
	component := host + "/openshift/ingress@sha256:" + strings.Repeat("a", 64)
	pullSpec, err := release.Push(t.Context(), host, release.Release{
		Version: version, Previous: []string{"4.19.9"}, Metadata: map[string]string{"url": "https://example.com"},
		Components: []release.Component{
			{Name: "ingress", Image: component, Source: source, Manifests: map[string]string{
				"0000_50_ingress_preflight.yaml": "image: " + source + ":latest\n",
				"role.yaml":                      "kind: Role\n",
			}},
			{Name: "notes", Manifests: map[string]string{"notes.yaml": "kind: ConfigMap\n"}},
		},
		BaseLayers: []int{10, 20}, Padding: 2, PaddingBytes: 500,
		Raw: map[string]string{"0000_99_broken.yaml": "{"},
	})
	if err != nil {
		t.Fatal(err)
	}
	image := pull(t, pullSpec)
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 3 {
		t.Errorf("%d layers, want two base layers and the manifests", len(layers))
	}
	files := unpack(t, image, -1)
	texts := map[string]string{}
	for _, name := range []string{
		"0000_50_ingress_preflight.yaml", "0000_50_ingress_role.yaml", "0000_50_notes_notes.yaml",
		"0000_99_broken.yaml",
	} {
		texts[name] = files["release-manifests/"+name].Data
	}
	want := map[string]string{
		"0000_50_ingress_preflight.yaml": "image: " + component + "\n",
		"0000_50_ingress_role.yaml":      "kind: Role\n",
		"0000_50_notes_notes.yaml":       "kind: ConfigMap\n",
		"0000_99_broken.yaml":            "{",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
	if got := len(files["release-manifests/0000_90_padding_00001.yaml"].Data); got != 500 {
		t.Errorf("filler manifest of %d bytes, want 500", got)
	}
	checkDescription(t, files, component)
}

// checkDescription checks the two files that describe the release.
func checkDescription(t *testing.T, files map[string]entry, component string) {
	t.Helper()
	var references imagev1.ImageStream
	if err := json.Unmarshal([]byte(files["release-manifests/image-references"].Data), &references); err != nil {
		t.Fatal(err)
	}
	if len(references.Spec.Tags) != 1 {
		t.Fatalf("%d tags, want only the component that has an image", len(references.Spec.Tags))
	}
	tag := references.Spec.Tags[0]
	got := []string{references.APIVersion, references.Kind, references.Name, tag.Name, tag.From.Kind, tag.From.Name}
	want := []string{"image.openshift.io/v1", "ImageStream", version, "ingress", "DockerImage", component}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("image-references (-want +got):\n%s", diff)
	}
	var metadata map[string]any
	if err := json.Unmarshal([]byte(files["release-manifests/release-metadata"].Data), &metadata); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"kind": "cincinnati-metadata-v0", "version": version, "previous": []any{"4.19.9"},
		"metadata": map[string]any{"url": "https://example.com"},
	}, metadata); diff != "" {
		t.Errorf("release-metadata (-want +got):\n%s", diff)
	}
}

func TestPushSubstitutesImages(t *testing.T) {
	const image = "127.0.0.1:5000/openshift/ingress@sha256:0123"
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Bare":   {reason: "a source without a tag is replaced", text: "image: " + source, want: "image: " + image},
		"Tag":    {reason: "a source with any tag is replaced", text: "image: " + source + ":v1.2\n", want: "image: " + image + "\n"},
		"Digest": {reason: "a source with a digest is replaced", text: source + "@sha256:" + strings.Repeat("0", 64), want: image},
		"Quoted": {reason: "a quote ends the source", text: `- "` + source + `:a"`, want: `- "` + image + `"`},
		"Argument": {
			reason: "sources outside of image fields are replaced, as in oc", text: "--image=" + source + "\n",
			want: "--image=" + image + "\n",
		},
		"Longer": {reason: "another repository with the same beginning is kept", text: source + "-operator:a", want: source + "-operator:a"},
		"Path":   {reason: "another registry with the same end is kept", text: "x.io/" + source, want: "x.io/" + source},
	} {
		t.Run(name, func(t *testing.T) {
			pullSpec, err := release.Push(t.Context(), newRegistry(t), release.Release{
				Version: version,
				Components: []release.Component{{
					Name: "ingress", Image: image, Source: source, Manifests: map[string]string{"0000_50_a.yaml": tc.text},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := unpack(t, pull(t, pullSpec), -1)["release-manifests/0000_50_a.yaml"].Data
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPushIndex(t *testing.T) {
	host := newRegistry(t)
	pullSpec, err := release.Push(t.Context(), host, release.Release{
		Version: version, Architectures: []string{"arm64", "amd64"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewDigest(pullSpec)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var architectures []string
	last := map[v1.Hash]bool{}
	for _, child := range manifest.Manifests {
		architectures = append(architectures, child.Platform.Architecture)
		image, err := index.Image(child.Digest)
		if err != nil {
			t.Fatal(err)
		}
		content, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		last[content.Layers[len(content.Layers)-1].Digest] = true
	}
	if diff := cmp.Diff([]string{"arm64", "amd64"}, architectures); diff != "" {
		t.Errorf("architectures of the index (-want +got):\n%s", diff)
	}
	if len(last) != 1 {
		t.Errorf("%d different last layers, want the same for all architectures", len(last))
	}
}

func TestPushIsDeterministic(t *testing.T) {
	host := newRegistry(t)
	r := release.Release{Version: version, Padding: 3, PaddingBytes: 1000}
	first, err := release.Push(t.Context(), host, r)
	if err != nil {
		t.Fatal(err)
	}
	second, err := release.Push(t.Context(), host, r)
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("the same release has two digests: %s and %s", first, second)
	}
	tagged := pull(t, host+"/openshift/release:"+version)
	digest, err := tagged.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(first, "@"+digest.String()) {
		t.Errorf("tag %s is %s, want the pushed %s", version, digest, first)
	}
}

func TestPushRejects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		release release.Release
		want    string
	}{
		"Collision": {
			reason: "a file name has one manifest", want: `two components have a manifest "0000_50_a.yaml"`,
			release: release.Release{Version: version, Components: []release.Component{
				{Name: "a", Manifests: map[string]string{"0000_50_a.yaml": "a"}},
				{Name: "b", Manifests: map[string]string{"0000_50_a.yaml": "b"}},
			}},
		},
		"Repository": {
			reason: "the error names the invalid repository", want: "Upper",
			release: release.Release{Version: version, Repository: "Upper"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := release.Push(t.Context(), newRegistry(t), tc.release)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want one with %q", tc.reason, err, tc.want)
			}
		})
	}
}
