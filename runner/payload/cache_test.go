package payload_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/runner/cache"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/test/release"
)

// counted starts a registry that counts its requests, and returns its host.
func counted(t *testing.T, requests *atomic.Int64) string {
	t.Helper()
	return serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			next.ServeHTTP(w, r)
		})
	})
}

func openCache(t *testing.T, path string) *cache.Directory {
	t.Helper()
	directory, err := cache.Open(path, cache.DefaultLimit)
	if err != nil {
		t.Fatal(err)
	}
	return directory
}

func extractCached(t *testing.T, proof signature.Release, path string) *payload.Release {
	t.Helper()
	got, err := payload.Extract(t.Context(), proof, payload.Options{Cache: openCache(t, path)})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestExtractReadsOnce expects that a second run sends no requests to the registry and
// returns the same release.
func TestExtractReadsOnce(t *testing.T) {
	t.Parallel()
	for name, architectures := range map[string][]string{"image": nil, "index": {"arm64", "amd64"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			pushed, path := genuine(), t.TempDir()
			pushed.Architectures = architectures
			pullSpec, err := release.Push(t.Context(), counted(t, &requests), pushed)
			if err != nil {
				t.Fatal(err)
			}
			proof := forced(t, pullSpec)
			first := extractCached(t, proof, path)
			requests.Store(0)
			second := extractCached(t, proof, path)
			if second.BytesRead != 0 || requests.Load() != 0 {
				t.Errorf("the second run read %d bytes in %d requests, want none", second.BytesRead, requests.Load())
			}
			first.BytesRead = 0
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the cached release differs (-first, +second):\n%s", diff)
			}
		})
	}
}

// TestExtractDoesNotTrustTheCache corrupts cached content.
func TestExtractDoesNotTrustTheCache(t *testing.T) {
	t.Parallel()
	for name, corrupt := range map[string]func([]byte) []byte{
		"flipped": func(content []byte) []byte { content[len(content)/2] ^= 1; return content },
		"cut":     func(content []byte) []byte { return content[:len(content)/2] },
		"other":   func([]byte) []byte { return []byte(`{"schemaVersion":2,"layers":[]}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			proof := forced(t, pushLayer(t, serve(t, nil), releaseWith(t, entry{name: "release-manifests/job.yaml", content: jobIn("ns", "job")})))
			first := extractCached(t, proof, path)
			files, err := filepath.Glob(filepath.Join(path, "sha256", "*"))
			if err != nil || len(files) != 2 {
				t.Fatalf("%v, %v; want manifest and layer in the cache", files, err)
			}
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, corrupt(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(first, extractCached(t, proof, path)); diff != "" {
				t.Errorf("the release after the cache was corrupted (-first, +second):\n%s", diff)
			}
			if third := extractCached(t, proof, path); third.BytesRead != 0 {
				t.Errorf("read %d bytes again, although the cache was repaired", third.BytesRead)
			}
		})
	}
}

// TestExtractWithoutUsefulCache expects the same release with a cache that cannot
// store it.
func TestExtractWithoutUsefulCache(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	tiny, err := cache.Open(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	proof := forced(t, pushLayer(t, serve(t, nil), releaseWith(t)))
	for range 2 {
		if got, err := payload.Extract(t.Context(), proof, payload.Options{Cache: tiny}); err != nil || got.BytesRead == 0 {
			t.Errorf("%+v, %v; want the release read from the registry each time", got, err)
		}
	}
}

// TestExtractCachesOnlyVerifiedContent expects that wrong content of a registry is not
// cached.
func TestExtractCachesOnlyVerifiedContent(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	host := serve(t, respond("/blobs/", flipped))
	if _, err := payload.Extract(t.Context(), forced(t, pushLayer(t, host, releaseWith(t))),
		payload.Options{Cache: openCache(t, path)}); err == nil {
		t.Fatal("a tampered layer was accepted")
	}
	files, err := filepath.Glob(filepath.Join(path, "sha256", "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v; want the manifest alone", strings.Join(files, " "), err)
	}
}
