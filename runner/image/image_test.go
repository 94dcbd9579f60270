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

// maxMemory is what looking at images may allocate, given back or not, the
// registries of the test included: they run in the same process.
const maxMemory = 64 << 20

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*testing.T, world)
		mode    image.Mode
		// want are findings as "Name Outcome Reason"; text is what each of them
		// says, in message and remedy. SOURCE and MIRROR stand for the hosts.
		want []string
		text []string
	}{
		"All at the source": {
			reason:  "nothing is missing",
			prepare: func(t *testing.T, w world) { t.Helper(); w.pushToSource(t, components()...) },
			want:    []string{"Images Pass ImagesPresent"},
			text:    []string{"4 images are where nodes would pull them"},
		},
		"One missing": {
			reason:  "the image and the place are named",
			prepare: func(t *testing.T, w world) { t.Helper(); w.pushToSource(t, "cli", "etcd", "kubelet") },
			want:    []string{"Images Fail ImagesMissing"},
			text:    []string{"1 of 4 images are missing from SOURCE/openshift-release-dev/ocp-v4.0-art-dev: ingress (", "oc adm release info"},
		},
		"Some from the mirror": {
			reason: "the source has what the mirror does not",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.mirrored(t, configv1.AllowContactingSource)
				w.pushToMirror(t, "cli", "etcd")
				w.pushToSource(t, "ingress", "kubelet")
			},
			want: []string{"Images Pass ImagesPresent"},
		},
		"Missing from both": {
			reason: "one finding, and both places",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.mirrored(t, configv1.AllowContactingSource)
				w.pushToMirror(t, "cli")
			},
			want: []string{"Images Fail ImagesMissing"},
			text: []string{
				"3 of 4 images are missing from MIRROR/ocp/release, then SOURCE/openshift-release-dev/ocp-v4.0-art-dev: etcd, ingress, kubelet (",
				"oc adm release mirror --from=quay.io/openshift-release-dev/ocp-release@sha256:aaaa", "--to=MIRROR/ocp/release", "oc mirror --v2",
			},
		},
		"Never contact the source": {
			reason: "what only the source has is not to be had",
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
			reason: "whether the images are there is not known",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.answer("*", func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
					w.WriteHeader(http.StatusUnauthorized)
				})
			},
			want: []string{"Images Unknown RegistryUnauthorized"},
			text: []string{"4 of 4 images are not known to be at SOURCE/", "401 Unauthorized", "pull secret"},
		},
		"Unreachable": {
			reason: "nobody answers",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				for component := range w.images {
					w.images[component] = strings.ReplaceAll(w.images[component], w.source.host, "127.0.0.1:1")
				}
			},
			want: []string{"Images Unknown RegistryUnreachable"},
			text: []string{"4 of 4 images are not known to be at 127.0.0.1:1/", "connection refused"},
		},
		"Two causes": {
			reason: "one finding for each",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, "cli", "etcd")
				w.images["etcd"] = strings.ReplaceAll(w.images["etcd"], w.source.host, "127.0.0.1:1")
			},
			want: []string{"Images Fail ImagesMissing", "Images Unknown RegistryUnreachable"},
			text: []string{"2 of 4 images are missing from", "1 of 4 images are not known to be at 127.0.0.1:1/"},
		},
		"Another manifest": {
			reason: "a registry that lies is not accepted with what is missing",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, "cli", "etcd", "ingress")
				w.source.answer("GET "+w.digest("etcd"), serveManifest(t, w, "cli"))
			},
			want: []string{"ImageDigest Fail DigestMismatch", "Images Fail ImagesMissing"},
			text: []string{"1 of 4 images are not what was promised at SOURCE/", ": etcd (", "Do not pull from there"},
		},
		"Another manifest on the mirror": {
			reason: "nodes do not look elsewhere then",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.mirrored(t, configv1.AllowContactingSource)
				w.pushToSource(t, components()...)
				w.pushToMirror(t, components()...)
				w.mirror.answer("GET "+w.digest("etcd"), serveManifest(t, w, "cli"))
			},
			want: []string{"ImageDigest Fail DigestMismatch"},
			text: []string{"not what was promised at MIRROR/ocp/release: etcd (", "Mirror the release again"},
		},
		"Schema 1": {
			reason: "the header of the registry is not believed, nor is the manifest valid",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.answer("GET "+w.digest("etcd"), func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v1+prettyjws")
					rw.Header().Set("Docker-Content-Digest", w.digest("etcd"))
					fmt.Fprint(rw, `{"schemaVersion":1}`)
				})
			},
			want: []string{"ImageDigest Fail DigestMismatch"},
			text: []string{"etcd"},
		},
		"Endless manifest": {
			reason: "no more is read than a manifest may have",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.answer("GET "+w.digest("etcd"), func(rw http.ResponseWriter, r *http.Request) {
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
			reason: "nobody follows for ever, and another place may have it",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.mirrored(t, configv1.AllowContactingSource)
				w.pushToSource(t, "cli", "etcd", "ingress")
				w.mirror.answer("*", func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/v2/" {
						http.Redirect(rw, r, r.URL.Path, http.StatusTemporaryRedirect)
					}
				})
			},
			want: []string{"Images Unknown RegistryUnreachable"},
			text: []string{"1 of 4 images are not known to be at MIRROR/ocp/release, then SOURCE/", ": kubelet (", "more than 5 redirects"},
		},
		"Index": {
			reason: "the image for the nodes is looked at, too",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.pushIndex(t, "etcd", "", "amd64", "arm64")
			},
			want: []string{"Images Pass ImagesPresent"},
		},
		"Index without the image": {
			reason: "a mirror of one architecture has the index only",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.pushIndex(t, "etcd", "amd64", "amd64", "arm64")
			},
			want: []string{"Images Fail ImagesMissing"},
			text: []string{": etcd (the index is there, but not its image for linux/amd64)"},
		},
		"Index without an image that no node needs": {
			reason: "nobody would pull it",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.pushIndex(t, "etcd", "arm64", "amd64", "arm64")
			},
			want: []string{"Images Pass ImagesPresent"},
		},
		"Index for others": {
			reason: "the release is not for these nodes",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.pushIndex(t, "etcd", "", "s390x", "arm64")
			},
			want: []string{"Images Fail ArchitectureMissing"},
			text: []string{"1 of 4 images are not for all nodes at", "linux/amd64", "only for: linux/s390x, linux/arm64", "--keep-manifest-list"},
		},
		"Blob missing": {
			reason: "a manifest without its layers is half an image",
			mode:   image.Blobs,
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.answer("HEAD "+w.layer(t, "etcd"), http.NotFound)
			},
			want: []string{"Images Fail BlobsMissing"},
			text: []string{"1 of 4 images are incomplete at SOURCE/", ": etcd ("},
		},
		"Blob missing, not looked at": {
			reason: "manifests alone do not show it",
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.answer("HEAD "+w.layer(t, "etcd"), http.NotFound)
			},
			want: []string{"Images Pass ImagesPresent"},
		},
		"Blob cut": {
			reason: "a blob of another size is another blob",
			mode:   image.Blobs,
			prepare: func(t *testing.T, w world) {
				t.Helper()
				w.pushToSource(t, components()...)
				w.source.answer("HEAD "+w.layer(t, "etcd"), func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "7") })
			},
			want: []string{"ImageDigest Fail DigestMismatch"},
			text: []string{"it has 7 bytes as the blob"},
		},
		"Blobs": {
			reason:  "all are there",
			mode:    image.Blobs,
			prepare: func(t *testing.T, w world) { t.Helper(); w.pushToSource(t, components()...) },
			want:    []string{"Images Pass ImagesPresent"},
		},
		"Off": {
			reason:  "not looking is not a pass",
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
			var said strings.Builder
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			findings := collect(t, check)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > maxMemory {
				t.Errorf("%s: %d bytes allocated, want at most %d", tc.reason, n, maxMemory)
			}
			for _, f := range findings {
				got = append(got, fmt.Sprintf("%s %s %s", f.Name, f.Outcome, f.Reason))
				said.WriteString(f.Message + "\n" + f.Remediation + "\n")
				stops := f.Outcome != preflight.Pass
				if f.Blocks != stops || (f.Remediation != "") != stops {
					t.Errorf("%s: %+v; want that it blocks and has a remedy, unless it is a pass", tc.reason, f)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s\n%s", tc.reason, diff, said.String())
			}
			text := strings.NewReplacer(w.source.host, "SOURCE", w.mirror.host, "MIRROR").Replace(said.String())
			for _, want := range tc.text {
				if !strings.Contains(text, want) {
					t.Errorf("%s: it does not say %q:\n%s", tc.reason, want, text)
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

// serveManifest answers with the manifest of another component.
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

// TestEachIsAskedForOnce counts: many components may have one image, and images
// share layers.
func TestEachIsAskedForOnce(t *testing.T) {
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
		method, what, _ := strings.Cut(request, " ")
		if strings.HasPrefix(what, "sha256:") && (times != 1 || (method != http.MethodGet && method != http.MethodHead)) {
			t.Errorf("%s was asked for %d times, want once", request, times)
		}
		if what == "" && times > 1 {
			t.Errorf("the registry was pinged %d times, want once", times)
		}
	}
	if progress[5] != 5 {
		t.Errorf("progress %v, want that it ends with 5 of 5", progress)
	}
	// Four images with two layers each, of layerBytes and what a tar file adds.
	evidence := findings[0].Evidence
	if evidence["images"] != "5" || evidence["found"] != "5" || evidence["layers"] != "8" || evidence["size"] != "0.0 MiB" {
		t.Errorf("evidence %v, want 5 of 5 images, and 8 layers that count once", evidence)
	}
	if evidence["from "+w.source.host+"/openshift-release-dev"] != "5" {
		t.Errorf("evidence %v, want where they are", evidence)
	}
}

// TestMirrorsAreCounted shows that the report has what each place has.
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

func TestManyAreNotAllNamed(t *testing.T) {
	w := newWorld(t)
	check := w.check()
	for i := range 186 {
		check.Images[fmt.Sprintf("component-%03d", i)] = fmt.Sprintf("%s%s@sha256:%064x", w.source.host, sourceRepository, i)
	}
	findings := collect(t, check)
	if len(findings) != 1 {
		t.Fatalf("%d findings, want one for the one cause", len(findings))
	}
	if want := "190 of 190 images are missing from " + w.source.host + sourceRepository + ": cli, component-000, component-001, component-002, component-003 and 185 more ("; !strings.HasPrefix(findings[0].Message, want) {
		t.Errorf("message %q, want %q", findings[0].Message, want)
	}
}

// TestManyCausesAreNotAllFindings has a release whose images are at as many
// registries: none of them is lost from the decision.
func TestManyCausesAreNotAllFindings(t *testing.T) {
	w := newWorld(t)
	check := w.check()
	check.Images = map[string]string{}
	for i := range 50 {
		check.Images[fmt.Sprintf("down-%02d", i)] = fmt.Sprintf("127.0.0.1:1/down-%02d/image@sha256:%064x", i, i)
		check.Images[fmt.Sprintf("gone-%02d", i)] = fmt.Sprintf("%s/gone-%02d/image@sha256:%064x", w.source.host, i, i)
	}
	for i := range 15 {
		digest := fmt.Sprintf("sha256:%064x", 1000+i)
		check.Images[fmt.Sprintf("lie-%02d", i)] = fmt.Sprintf("%s/lie-%02d/image@%s", w.source.host, i, digest)
		w.source.answer("GET "+digest, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	}
	counts, concerned := map[string]int{}, map[string]int{}
	var last finding.Finding
	for _, f := range collect(t, check) {
		counts[f.Name]++
		of, err := strconv.Atoi(f.Evidence["concerned"])
		if err != nil || !f.Blocks {
			t.Errorf("%+v; want that it blocks, and how many images it is about", f)
		}
		concerned[f.Name] += of
		last = f
	}
	if diff := cmp.Diff(map[string]int{"Images": 10, "ImageDigest": 10}, counts); diff != "" {
		t.Errorf("findings (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"Images": 100, "ImageDigest": 15}, concerned); diff != "" {
		t.Errorf("each image is in one of them (-want, +got):\n%s", diff)
	}
	want := "91 of 115 images are not to be had from 91 more places, for 91 more causes: "
	if last.Reason != "MoreImages" || last.Outcome != preflight.Fail || !strings.HasPrefix(last.Message, want) || !strings.Contains(last.Message, "and 86 more (") {
		t.Errorf("%s (%s) %q, want a failure that says %q, since some of them are failures", last.Outcome, last.Reason, last.Message, want)
	}
}

func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.source.answer("*", func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if findings, err := w.check().Collect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v; want an error that says that it was canceled", findings, err)
	}
}
