package payload_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

// maxMemory bounds the memory of Extract in addition to the layer.
const maxMemory = 64 << 20

// gcPercent has the collector run often. Where it needs more than half of the processor time,
// as on a busy machine with a lower percentage, the runtime lets the heap grow instead.
const gcPercent = 50

// TestExtractBoundsMemory measures the heap while layers that need the most memory are
// read. It is not parallel, so that it measures nothing else.
func TestExtractBoundsMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	manifests := func(n int, content string) []byte {
		var entries []entry
		for i := range n {
			entries = append(entries, entry{name: "release-manifests/" + strings.Repeat("a", i+1) + ".yaml", content: content})
		}
		return compressed(t, releaseWith(t, entries...))
	}
	job := strings.Replace(jobIn("ns", "job"), "containers:", "initContainers: ["+strings.Repeat("{},", 4_900)+"]\n      containers:", 1)
	annotated := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ns, annotations: {openshift.io/preflight-check: \"true\"}}\n"
	for name, layer := range map[string][]byte{
		"zeros":            packed(t, compressed, zeros(t), 1280),
		"zeros, zstd":      packed(t, zstandard, zeros(t), 1280),
		"wide window":      wide(t),
		"entries":          packed(t, compressed, bytes.Repeat(headerOf(t, "etc/x", 0), 1000), 1000),
		"extended headers": packed(t, compressed, padding(t), 1000),
		"large files":      manifests(30, "a: "+strings.Repeat("a", 3<<20-100)),
		"dense files":      manifests(8, "a: ["+strings.Repeat("a,", 99_000)+"]"),
		"dense maps":       manifests(8, strings.Repeat("- {a: b}\n", 19_000)),
		"deep files":       manifests(8, strings.Repeat("[", 9_000)),
		"long name":        manifests(1, strings.Replace(jobIn("ns", "job"), "name: job", "name: "+strings.Repeat("a", 1<<20), 1)),
		"many documents":   manifests(8, strings.Repeat("{kind: A, metadata: {name: a}}\n---\n", 1_001)),
		"many lines":       manifests(120, annotated+"data: {"+strings.Repeat("a: b, ", 2_400)+"}"),
		"aliases":          manifests(8, annotated+"x: &x [a]\ny: ["+strings.Repeat("*x,", 30_000)+"]"),
		"large preflights": manifests(4, annotated+"data: {a: "+strings.Repeat("a", 2<<20-1000)+"}"),
		"large jobs":       manifests(30, job),
		"dense preflights": manifests(4, annotated+"x: ["+strings.Repeat("a,", 98_000)+"]"),
		"bombs":            manifests(8, annotated+bomb()),
	} {
		t.Run(name, func(t *testing.T) {
			proof := forced(t, pushLayer(t, serve(t, nil), layer))
			limit := int64(2*len(layer)) + maxMemory
			peak := peakOf(limit, func() { _, _ = payload.Extract(t.Context(), proof, payload.Options{}) })
			t.Logf("layer %d KiB, peak %d KiB", len(layer)>>10, peak>>10)
			if peak > limit {
				t.Errorf("%d MiB for a layer of %d MiB, and the registry in this test holds the layer too", peak>>20, len(layer)>>20)
			}
		})
	}
}

// TestExtractThousandsOfJobs checks that the bounds admit a large valid release.
// Its Jobs are like those of the examples.
func TestExtractThousandsOfJobs(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	const wanted = 5_000
	manifest, err := os.ReadFile("../../examples/etcd/manifests/0000_12_cluster-etcd-operator_11_preflight-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	for i := range wanted {
		content := strings.Replace(string(manifest), "  name: ", fmt.Sprintf("  name: n%d-", i), 1)
		entries = append(entries, entry{name: fmt.Sprintf("release-manifests/0000_50_many_11_%05d.yaml", i), content: content})
	}
	proof := forced(t, pushLayer(t, serve(t, nil), compressed(t, releaseWith(t, entries...))))
	var got *payload.Release
	peak := peakOf(maxMemory, func() { got, err = payload.Extract(t.Context(), proof, payload.Options{}) })
	if err != nil || len(got.Jobs) != wanted {
		t.Fatalf("want %d Jobs, got error %v", wanted, err)
	}
	t.Logf("%d Jobs, peak %d KiB", wanted, peak>>10)
	if peak > maxMemory {
		t.Errorf("%d MiB for %d Jobs", peak>>20, wanted)
	}
}

// TestExtractBoundsMemoryOfImages measures the heap for manifests and registries.
func TestExtractBoundsMemoryOfImages(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	endless := func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
		for block := bytes.Repeat([]byte("{},"), 1<<18); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	dense := func(field string, size int) []byte {
		return []byte(`{"schemaVersion":2,"` + field + `":[` + strings.Repeat("{},", size/3) + `{}]}`)
	}
	for name, test := range map[string]struct {
		manifest []byte
		wrap     func(http.Handler) http.Handler
	}{
		"dense layers":     {manifest: dense("layers", 255<<10)},
		"dense index":      {manifest: dense("manifests", 255<<10)},
		"dense, too large": {manifest: dense("layers", 2<<20)},
		"annotations":      {manifest: []byte(`{"schemaVersion":2,"annotations":{"":""` + strings.Repeat(`,"":""`, 1<<15) + `}}`)},
		"endless manifest": {manifest: imageOf(t, nil, []byte("layer")), wrap: respond("/manifests/", endless)},
		"endless ping":     {manifest: imageOf(t, nil, []byte("layer")), wrap: respond("/v2/", endless)},
		"endless layer":    {manifest: imageOf(t, nil, []byte("layer")), wrap: respond("/blobs/", endless)},
	} {
		t.Run(name, func(t *testing.T) {
			proof := forced(t, putManifest(t, http.DefaultTransport, serve(t, test.wrap), types.DockerManifestSchema2, test.manifest))
			peak := peakOf(maxMemory, func() {
				if _, err := payload.Extract(t.Context(), proof, payload.Options{}); err == nil {
					t.Error("an invalid release is accepted")
				}
			})
			t.Logf("manifest %d KiB, peak %d KiB", len(test.manifest)>>10, peak>>10)
			if peak > maxMemory {
				t.Errorf("%d MiB for a manifest of %d KiB", peak>>20, len(test.manifest)>>10)
			}
		})
	}
}

// TestExtractBoundsMemoryOfAll measures the memory for all inputs that other tests
// reject or check.
func TestExtractBoundsMemoryOfAll(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	bounded := func(kind, name string, read func(*testing.T) (extract func() error, layer int)) {
		t.Run(kind+", "+name, func(t *testing.T) {
			extract, layer := read(t)
			limit := int64(2*layer) + maxMemory
			if peak := peakOf(limit, func() { _ = extract() }); peak > limit {
				t.Errorf("%d MiB for a layer of %d KiB, and the registry in this test holds the layer too", peak>>20, layer>>10)
			}
		})
	}
	for name, test := range rejectedLayers() {
		bounded("layer", name, test.read)
	}
	for name, test := range rejectedImages() {
		bounded("image", name, func(t *testing.T) (func() error, int) { t.Helper(); return test.read(t), 0 })
	}
	for name, test := range rejectedIndexes() {
		bounded("index", name, func(t *testing.T) (func() error, int) { t.Helper(); return test.read(t), 0 })
	}
	for name, test := range rejectedRegistries() {
		bounded("registry", name, func(t *testing.T) (func() error, int) { t.Helper(); return test.read(t), 0 })
	}
	for name, test := range testedManifests() {
		bounded("manifest", name, func(t *testing.T) (func() error, int) {
			t.Helper()
			pullSpec, _ := test.pushed(t)
			return extraction(t, pullSpec, manifestfilter.Cluster{}), len(test.manifest)
		})
	}
}

// peakOf returns the maximum growth of what the garbage collector finds in use while f runs:
// what is not in use any more does not count. Where that exceeds the limit, f runs again, up
// to three times, and the least counts: what is allocated while the collector marks is in use
// for it, and on busy processors it marks for long.
func peakOf(limit int64, f func()) int64 {
	const attempts = 3
	least := growth(f)
	for range attempts - 1 {
		if least <= limit {
			break
		}
		least = min(least, growth(f))
	}
	return least
}

// growth is the maximum growth of the heap in use while f runs.
func growth(f func()) int64 {
	debug.FreeOSMemory()
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(heap)
	before := heap[0].Value.Uint64()
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		most := before
		for {
			metrics.Read(heap)
			most = max(most, heap[0].Value.Uint64())
			select {
			case <-done:
				peak <- int64(most - before)
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(done)
	return <-peak
}
