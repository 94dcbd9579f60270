package image_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image"
)

// maxMemory bounds the bytes that a check may allocate in total, including the
// registries of the test, which run in the same process.
const maxMemory = 64 << 20

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*testing.T, world)
		mode    image.Mode
		// want are findings as "Name Outcome Reason".
		want []string
		// text are parts of their messages, remedies and commands. SOURCE and MIRROR
		// stand for the hosts.
		text []string
	}{
		"All at the source": {
			reason:  "all images are available",
			prepare: func(t *testing.T, w world) { t.Helper(); w.pushToSource(t, components()...) },
			want:    []string{"Images Pass ImagesPresent"},
			text:    []string{"4 images available from where nodes would pull them"},
		},
		"One missing": {
			reason:  "the message names the image and the place",
			prepare: func(t *testing.T, w world) { t.Helper(); w.pushToSource(t, "cli", "etcd", "kubelet") },
			want:    []string{"Images Fail ImagesMissing"},
			text:    []string{"1 of 4 images are missing from SOURCE/openshift-release-dev/ocp-v4.0-art-dev: ingress (", "oc adm release info"},
		},
		"Some from the mirror": {
			reason: "the source has the images that the mirror lacks",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.mirrored(t, configv1.AllowContactingSource)
				w.pushToMirror(t, "cli", "etcd")
				w.pushToSource(t, "ingress", "kubelet")
			},
			want: []string{"Images Pass ImagesPresent"},
		},
		"Missing from both": {
			reason: "one finding names both places",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.mirrored(t, configv1.AllowContactingSource)
				w.pushToMirror(t, "cli")
			},
			want: []string{"Images Fail ImagesMissing"},
			text: []string{
				"3 of 4 images are missing from MIRROR/ocp/release, then SOURCE/openshift-release-dev/ocp-v4.0-art-dev: etcd, ingress, kubelet (",
				"oc adm release mirror --from=quay.io/openshift-release-dev/ocp-release@sha256:aaaa", "--to=MIRROR/ocp/release", "such as oc-mirror",
			},
		},
		"Never contact the source": {
			reason: "an image that only the source has is unavailable",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.mirrored(t, configv1.NeverContactSource)
				w.pushToMirror(t, "cli", "etcd", "ingress")
				w.pushToSource(t, components()...)
			},
			want: []string{"Images Fail ImagesMissing"},
			text: []string{"1 of 4 images are missing from MIRROR/ocp/release: kubelet (", "never contacted by policy"},
		},
		"Unauthorized": {
			reason: "the existence of the images is unknown",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.handle("*", func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
					w.WriteHeader(http.StatusUnauthorized)
				})
			},
			want: []string{"Images Unknown RegistryUnauthorized"},
			text: []string{"4 of 4 images are not known to be at SOURCE/", "401 Unauthorized", "pull secret"},
		},
		"Unreachable": {
			reason: "no registry listens",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				for component := range w.images {
					w.images[component] = strings.ReplaceAll(w.images[component], w.source.host, "127.0.0.1:1")
				}
			},
			want: []string{"Images Unknown RegistryUnreachable"},
			text: []string{"4 of 4 images are not known to be at 127.0.0.1:1/", "connection refused"},
		},
		"Unreachable source of a mirror": {
			reason: "nodes may reach the source, but the mirror is what lacks the images",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				for component := range w.images {
					w.images[component] = strings.ReplaceAll(w.images[component], w.source.host, "127.0.0.1:1")
				}
				w.source.host = "127.0.0.1:1"
				w.mirrored(t, configv1.AllowContactingSource)
			},
			want: []string{"Images Unknown MirrorIncomplete"},
			text: []string{"4 of 4 images are not known to be at MIRROR/ocp/release, then SOURCE/", "--to=MIRROR/ocp/release", "such as oc-mirror"},
		},
		"Two causes": {
			reason: "each cause has its finding",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, "cli", "etcd")
				w.images["etcd"] = strings.ReplaceAll(w.images["etcd"], w.source.host, "127.0.0.1:1")
			},
			want: []string{"Images Fail ImagesMissing", "Images Unknown RegistryUnreachable"},
			text: []string{"2 of 4 images are missing from", "1 of 4 images are not known to be at 127.0.0.1:1/"},
		},
		"Another manifest": {
			reason: "accepting missing images does not accept a wrong digest",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, "cli", "etcd", "ingress")
				w.source.handle("GET "+w.digest("etcd"), serveManifest(t, w, "cli"))
			},
			want: []string{"ImageDigest Fail DigestMismatch", "Images Fail ImagesMissing"},
			text: []string{"1 of 4 images are served with different content at SOURCE/", ": etcd (", "Do not pull from this registry"},
		},
		"Another manifest on the mirror": {
			reason: "nodes then request no other place",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.mirrored(t, configv1.AllowContactingSource)
				w.pushToSource(t, components()...)
				w.pushToMirror(t, components()...)
				w.mirror.handle("GET "+w.digest("etcd"), serveManifest(t, w, "cli"))
			},
			want: []string{"ImageDigest Fail DigestMismatch"},
			text: []string{"served with different content at MIRROR/ocp/release: etcd (", "Mirror the release again"},
		},
		"Schema 1": {
			reason: "the digest is computed from the content, not read from the header",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.handle("GET "+w.digest("etcd"), func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v1+prettyjws")
					rw.Header().Set("Docker-Content-Digest", w.digest("etcd"))
					fmt.Fprint(rw, `{"schemaVersion":1}`)
				})
			},
			want: []string{"ImageDigest Fail DigestMismatch"},
			text: []string{"etcd"},
		},
		"Endless manifest": {
			reason: "a manifest is read up to its maximum size",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.handle("GET "+w.digest("etcd"), func(rw http.ResponseWriter, r *http.Request) {
					for r.Context().Err() == nil {
						if _, err := fmt.Fprint(rw, strings.Repeat(" ", 1<<16)); err != nil {
							return
						}
					}
				})
			},
			want: []string{"Images Fail ManifestTooLarge"},
			text: []string{"1 of 4 images", "4 MiB"},
		},
		"Redirects without end": {
			reason: "redirects are bounded, and the next place is tried",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.mirrored(t, configv1.AllowContactingSource)
				w.pushToSource(t, "cli", "etcd", "ingress")
				w.mirror.handle("*", func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/v2/" {
						http.Redirect(rw, r, r.URL.Path, http.StatusTemporaryRedirect)
					}
				})
			},
			want: []string{"Images Unknown RegistryUnreachable"},
			text: []string{"1 of 4 images are not known to be at MIRROR/ocp/release, then SOURCE/", ": kubelet (", "more than 5 redirects"},
		},
		"Index": {
			reason: "the image for the architecture of the nodes is checked, too",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.pushIndex(t, "etcd", "", "amd64", "arm64")
			},
			want: []string{"Images Pass ImagesPresent"},
		},
		"Index without the image": {
			reason: "a mirror may have the index without its images",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.pushIndex(t, "etcd", "amd64", "amd64", "arm64")
			},
			want: []string{"Images Fail ImagesMissing"},
			text: []string{": etcd (it has the index but not its image for linux/amd64)"},
		},
		"Index without an image that no node needs": {
			reason: "no node would pull it",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.pushIndex(t, "etcd", "arm64", "amd64", "arm64")
			},
			want: []string{"Images Pass ImagesPresent"},
		},
		"Index for others": {
			reason: "the index has no image for the architecture of the nodes",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.pushIndex(t, "etcd", "", "s390x", "arm64")
			},
			want: []string{"Images Fail ArchitectureMissing"},
			text: []string{"1 of 4 images are not for all nodes at", "linux/amd64", "only for: linux/s390x, linux/arm64", "--keep-manifest-list"},
		},
		"Blob missing": {
			reason: "an image without its layers is incomplete",
			mode:   image.Blobs,
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.handle("HEAD "+w.layer(t, "etcd"), http.NotFound)
			},
			want: []string{"Images Fail BlobsMissing"},
			text: []string{"1 of 4 images are incomplete at SOURCE/", ": etcd ("},
		},
		"Blob missing, not checked": {
			reason: "this mode reads only manifests",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.handle("HEAD "+w.layer(t, "etcd"), http.NotFound)
			},
			want: []string{"Images Pass ImagesPresent"},
		},
		"Blob cut": {
			reason: "a blob of another size has other content",
			mode:   image.Blobs,
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.handle("HEAD "+w.layer(t, "etcd"), func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "7") })
			},
			want: []string{"ImageDigest Fail DigestMismatch"},
			text: []string{"it serves 7 bytes as the blob"},
		},
		"Blobs": {
			reason:  "all blobs exist",
			mode:    image.Blobs,
			prepare: func(t *testing.T, w world) { t.Helper(); w.pushToSource(t, components()...) },
			want:    []string{"Images Pass ImagesPresent"},
		},
		"Off": {
			reason:  "a check that did not run never passes",
			mode:    image.Off,
			prepare: func(*testing.T, world) {},
			want:    []string{"Images Unknown NotSelected"},
			text:    []string{"accept the finding"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.prepare(t, w)
			check := w.check()
			if tc.mode != "" {
				check.Mode = tc.mode
			}
			var got []string
			var texts strings.Builder
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			findings := collect(t, check)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > maxMemory {
				t.Errorf("%s: %d bytes allocated, want at most %d", tc.reason, n, maxMemory)
			}
			for _, f := range findings {
				got = append(got, fmt.Sprintf("%s %s %s", f.Name, f.Outcome, f.Reason))
				texts.WriteString(f.Message + "\n" + f.Remediation + "\n")
				for _, action := range f.Actions {
					texts.WriteString(action.Command + "\n")
				}
				if strings.Contains(f.Remediation, "oc ") {
					t.Errorf("%s: remedy %q has a command, want it as an action", tc.reason, f.Remediation)
				}
				blocks := f.Outcome != preflight.Pass
				if f.Blocks != blocks || (f.Remediation != "") != blocks {
					t.Errorf("%s: %+v; want that it blocks and has a remedy if it is not a pass", tc.reason, f)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s\n%s", tc.reason, diff, texts.String())
			}
			text := strings.NewReplacer(w.source.host, "SOURCE", w.mirror.host, "MIRROR").Replace(texts.String())
			for _, want := range tc.text {
				if !strings.Contains(text, want) {
					t.Errorf("%s: the findings lack %q:\n%s", tc.reason, want, text)
				}
			}
		})
	}
}

func (w world) layer(t *testing.T, component string) string {
	t.Helper()
	layers, err := w.built[component].Layers()
	if err != nil {
		t.Fatal(err)
	}
	return digestOf(t, layers[0])
}

// serveManifest serves the manifest of another component.
func serveManifest(t *testing.T, w world, of string) http.HandlerFunc {
	t.Helper()
	content, err := w.built[of].RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	mediaType, err := w.built[of].MediaType()
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", string(mediaType))
		_, _ = w.Write(content)
	}
}

// TestRequestsAreNotRepeated checks components with the same image, and images that
// share layers.
func TestRequestsAreNotRepeated(t *testing.T) {
	w := newWorld(t)
	w.pushToSource(t, components()...)
	w.images["alias"] = w.images["etcd"]
	check := w.check()
	check.Mode = image.Blobs
	w.source.counted()
	progress := map[int]int{}
	check.Progress = func(done, total int) { progress[done] = total }
	findings := collect(t, check)

	for request, times := range w.source.counted() {
		method, element, _ := strings.Cut(request, " ")
		if strings.HasPrefix(element, "sha256:") && (times != 1 || (method != http.MethodGet && method != http.MethodHead)) {
			t.Errorf("%s was requested %d times, want once", request, times)
		}
		if element == "" && times > 1 {
			t.Errorf("the registry was pinged %d times, want once", times)
		}
	}
	if progress[5] != 5 {
		t.Errorf("progress %v, want 5 of 5 at the end", progress)
	}
	// Four images with two layers each, of layerBytes and what a tar file adds.
	evidence := findings[0].Evidence
	if evidence["images"] != "5" || evidence["found"] != "5" || evidence["layers"] != "8" || evidence["size"] != "0.0 MiB" {
		t.Errorf("evidence %v, want 5 of 5 images, with each of the 8 layers counted once", evidence)
	}
	if evidence["from "+w.source.host+"/openshift-release-dev"] != "5" {
		t.Errorf("evidence %v, want the number of images at their place", evidence)
	}
}

// TestMirrorsAreCounted expects the number of images at each place in the evidence.
func TestMirrorsAreCounted(t *testing.T) {
	w := newWorld(t)
	w.mirrored(t, configv1.AllowContactingSource)
	w.pushToMirror(t, "cli")
	w.pushToSource(t, "etcd", "ingress", "kubelet")
	got := collect(t, w.check())[0].Evidence
	want := map[string]string{
		"images": "4", "found": "4", "layers": "8",
		"from " + w.mirror.host + "/ocp": "1", "from " + w.source.host + "/openshift-release-dev": "3",
	}
	ignore := cmpopts.IgnoreMapEntries(func(key, _ string) bool { return key == "bytes" || key == "size" })
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("evidence (-want, +got):\n%s", diff)
	}
}

func TestNamesAreLimited(t *testing.T) {
	w := newWorld(t)
	check := w.check()
	for i := range 186 {
		check.Images[fmt.Sprintf("component-%03d", i)] = fmt.Sprintf("%s%s@sha256:%064x", w.source.host, sourceRepository, i)
	}
	findings := collect(t, check)
	if len(findings) != 1 {
		t.Fatalf("%d findings, want one for one cause", len(findings))
	}
	if want := "190 of 190 images are missing from " + w.source.host + sourceRepository +
		": cli, component-000, component-001, component-002, component-003 and 185 more ("; !strings.HasPrefix(findings[0].Message, want) {
		t.Errorf("message %q, want %q", findings[0].Message, want)
	}
}

// TestManyCausesAreLimited checks images at many registries: each unavailable image is
// in a finding that blocks.
func TestManyCausesAreLimited(t *testing.T) {
	w := newWorld(t)
	check := w.check()
	check.Images = map[string]string{}
	for i := range 50 {
		check.Images[fmt.Sprintf("down-%02d", i)] = fmt.Sprintf("127.0.0.1:1/down-%02d/image@sha256:%064x", i, i)
		check.Images[fmt.Sprintf("gone-%02d", i)] = fmt.Sprintf("%s/gone-%02d/image@sha256:%064x", w.source.host, i, i)
	}
	for i := range 15 {
		digest := fmt.Sprintf("sha256:%064x", 1000+i)
		check.Images[fmt.Sprintf("wrong-%02d", i)] = fmt.Sprintf("%s/wrong-%02d/image@%s", w.source.host, i, digest)
		w.source.handle("GET "+digest, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	}
	counts, affected := map[string]int{}, map[string]int{}
	var last finding.Finding
	for _, f := range collect(t, check) {
		counts[f.Name]++
		of, err := strconv.Atoi(f.Evidence["concerned"])
		if err != nil || !f.Blocks {
			t.Errorf("%+v; want that it blocks and has the number of its images", f)
		}
		affected[f.Name] += of
		last = f
	}
	if diff := cmp.Diff(map[string]int{"Images": 10, "ImageDigest": 10}, counts); diff != "" {
		t.Errorf("findings (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"Images": 100, "ImageDigest": 15}, affected); diff != "" {
		t.Errorf("images in findings (-want, +got):\n%s", diff)
	}
	want := "91 of 115 images are not available from 91 more places, for 91 more causes: "
	if last.Reason != "MoreImages" || last.Outcome != preflight.Fail || !strings.HasPrefix(last.Message, want) ||
		!strings.Contains(last.Message, "and 86 more (") {
		t.Errorf("%s (%s) %q, want a failure with message %q, since it combines failures", last.Outcome, last.Reason, last.Message, want)
	}
}

func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.source.handle("*", func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if findings, err := w.check().Collect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v; want context.Canceled", findings, err)
	}
}
