package ocimanifest_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
)

var digest = "sha256:" + strings.Repeat("a", 64)

// blob is the descriptor of a layer, configuration or image, with extra fields.
func blob(fields string) string {
	return fmt.Sprintf(`{"mediaType":"application/octet-stream","digest":%q,"size":7%s}`, digest, fields)
}

// image is a manifest with these layers.
func image(layers ...string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"config":%s,"layers":[%s]}`, blob(""), strings.Join(layers, ","))
}

// index is a manifest with an image for each platform, as in linux/amd64. An empty
// platform is an attestation.
func index(platforms ...string) string {
	var images []string
	for _, platform := range platforms {
		fields := ""
		if system, architecture, ok := strings.Cut(platform, "/"); ok {
			fields = fmt.Sprintf(`,"platform":{"os":%q,"architecture":%q}`, system, architecture)
		}
		images = append(images, blob(fields))
	}
	return fmt.Sprintf(`{"schemaVersion":2,"manifests":[%s]}`, strings.Join(images, ","))
}

// reasonOf is the reason of an error, and "" without an error.
func reasonOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	failure, ok := errors.AsType[*ocimanifest.Violation](err)
	if !ok {
		t.Fatalf("%v is a %T, want an Error", err, err)
	}
	return failure.Reason.String()
}

func TestParse(t *testing.T) {
	const oci = "application/vnd.oci.image.manifest.v1+json"
	for name, tc := range map[string]struct {
		reason, content string
		want            string
	}{
		"Image": {reason: "layers and a configuration", content: image(blob(""))},
		"Index": {reason: "one image", content: index("linux/amd64")},
		"MediaType": {
			reason:  "type and content agree",
			content: strings.Replace(image(blob("")), `"config"`, `"mediaType":"`+oci+`","config"`, 1),
		},
		"MoreFields": {
			reason:  "annotations and unknown fields",
			content: strings.Replace(image(blob("")), `"config"`, `"annotations":{"a":"b"},"newer":[],"config"`, 1),
		},
		"ForeignLayer":   {reason: "layers are not fetched, so they may be foreign", content: image(blob(`,"urls":["https://example.com"]`))},
		"EmptyLayer":     {reason: "a layer may be empty", content: image(strings.Replace(blob(""), `"size":7`, `"size":0`, 1))},
		"SchemaVersion1": {reason: "its digest does not cover the layers", content: `{"schemaVersion":1,"fsLayers":[]}`, want: "SchemaVersion1"},
		"SchemaVersion3": {reason: "an unsupported schema version", content: `{"schemaVersion":3}`, want: "InvalidManifest"},
		"Case": {
			reason: "keys are case-sensitive", content: strings.Replace(image(blob("")), "layers", "Layers", 1),
			want: "InvalidManifest",
		},
		"Both": {
			reason:  "clients differ in which of the two they use (CVE-2021-41190)",
			content: fmt.Sprintf(`{"schemaVersion":2,"config":%s,"layers":[%[1]s],"manifests":[%[1]s]}`, blob("")), want: "AmbiguousManifest",
		},
		"Neither": {reason: "nothing to pull", content: `{"schemaVersion":2,"layers":null}`, want: "InvalidManifest"},
		"OtherMediaType": {
			reason:  "an index with the media type of an image",
			content: strings.Replace(index("linux/amd64"), `"manifests"`, `"mediaType":"`+oci+`","manifests"`, 1), want: "InvalidManifest",
		},
		"NoConfiguration": {
			reason: "an image needs a configuration", content: fmt.Sprintf(`{"schemaVersion":2,"layers":[%s]}`, blob("")),
			want: "UnsupportedDigest",
		},
		"SHA512": {
			reason: "another algorithm", content: image(strings.Replace(blob(""), digest, "sha512:"+strings.Repeat("a", 128), 1)),
			want: "UnsupportedDigest",
		},
		"ShortDigest": {
			reason: "a digest with too few digits", content: image(strings.Replace(blob(""), digest, "sha256:aa", 1)),
			want: "UnsupportedDigest",
		},
		"NegativeSize": {
			reason: "sizes are summed", content: image(strings.Replace(blob(""), `"size":7`, `"size":-1`, 1)),
			want: "InvalidSize",
		},
		"HugeSize": {
			reason:  "a sum of sizes must not overflow",
			content: image(strings.Replace(blob(""), `"size":7`, fmt.Sprintf(`"size":%d`, 1<<41), 1)), want: "InvalidSize",
		},
		"Number": {reason: "layers that are not a list", content: `{"schemaVersion":2,"layers":1}`, want: "InvalidManifest"},
		"Layer":  {reason: "a layer that is not an object", content: `{"schemaVersion":2,"layers":[1]}`, want: "InvalidManifest"},
		"Page":   {reason: "an error page of a proxy", content: "<html>", want: "InvalidManifest"},
		"Empty":  {reason: "an empty response", content: "", want: "InvalidManifest"},
		"Large": {
			reason: "nodes reject it too", content: image(blob("")) + strings.Repeat(" ", ocimanifest.MaxSize),
			want: "ManifestTooLarge",
		},
		"ManyLayers": {
			reason: "the number of layers is bounded", content: image(strings.Split(strings.Repeat("{} ", 1001), " ")[:1001]...),
			want: "InvalidManifest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ocimanifest.Parse([]byte(tc.content))
			if got := reasonOf(t, err); got != tc.want {
				t.Errorf("%s: %q (%v), want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestImages(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		index         string
		architectures []string
		images        int
		want          string
	}{
		"All": {reason: "no architecture is requested", index: index("linux/amd64", "linux/arm64", "windows/amd64", ""), images: 2},
		"One": {
			reason: "the architecture of the cluster", index: index("linux/amd64", "linux/arm64"), architectures: []string{"arm64"},
			images: 1,
		},
		"Variants": {
			reason: "two images for one architecture: a node may pull either", index: index("linux/arm", "linux/arm"),
			architectures: []string{"arm"}, images: 2,
		},
		"Missing": {
			reason: "some nodes could not run it", index: index("linux/amd64"), architectures: []string{"amd64", "s390x"},
			want: "ArchitectureMissing",
		},
		"NoLinux": {reason: "nodes run linux", index: index("windows/amd64", ""), want: "NoLinuxImage"},
		"Foreign": {
			reason: "content outside of the registry is not fetched",
			index:  strings.Replace(index("linux/amd64"), `"size":7`, `"size":7,"urls":["https://example.com"]`, 1), want: "ForeignContent",
		},
		"Inline": {
			reason: "embedded data is rejected", index: strings.Replace(index("linux/amd64"), `"size":7`, `"size":7,"data":"AAAA"`, 1),
			want: "InlineContent",
		},
		"Large": {
			reason: "a manifest is bounded before it is fetched",
			index:  strings.Replace(index("linux/amd64"), `"size":7`, fmt.Sprintf(`"size":%d`, ocimanifest.MaxSize+1), 1), want: "TooLarge",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := ocimanifest.Parse([]byte(tc.index))
			if err != nil {
				t.Fatal(err)
			}
			images, err := parsed.Images(tc.architectures...)
			if got := reasonOf(t, err); got != tc.want || len(images) != tc.images {
				t.Errorf("%s: %d images, %q (%v), want %d, %q", tc.reason, len(images), got, err, tc.images, tc.want)
			}
		})
	}
}

func TestImageOfAnIndex(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, content string
		more            int
		want            string
	}{
		"Image":  {reason: "an image that matches its descriptor", content: image(blob(""))},
		"Size":   {reason: "the size differs from the descriptor", content: image(blob("")), more: 1, want: "SizeMismatch"},
		"Nested": {reason: "nested indexes are rejected", content: index("linux/amd64"), want: "NestedIndex"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ocimanifest.Image(ocispec.Descriptor{Size: int64(len(tc.content) + tc.more)}, []byte(tc.content))
			if got := reasonOf(t, err); got != tc.want {
				t.Errorf("%s: %q (%v), want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

// FuzzParse checks that no accepted manifest is ambiguous, and that parsing uses
// memory in proportion to the manifest.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		image(blob("")), index("linux/amd64", ""),
		`{"schemaVersion":2,"layers":[` + strings.Repeat("{},", 2000) + `{}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		manifest, err := ocimanifest.Parse(content)
		runtime.ReadMemStats(&after)
		if used, limit := after.TotalAlloc-before.TotalAlloc, uint64(2<<20+100*len(content)); used > limit {
			t.Errorf("parsing %d bytes allocates %d bytes, want at most %d", len(content), used, limit)
		}
		if err != nil {
			reasonOf(t, err)
			return
		}
		if manifest.IsIndex() == (len(manifest.Layers) > 0) {
			t.Errorf("%q is neither an image nor an index, or both", content)
		}
		for _, each := range manifest.Layers {
			if each.Digest.Validate() != nil || each.Size < 0 {
				t.Errorf("%q has the layer %+v", content, each)
			}
		}
	})
}
