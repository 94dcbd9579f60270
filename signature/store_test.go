package signature_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/store"
	"github.com/openshift/update-preflight/test/release"
)

// newStore is the store at a location.
func newStore(t *testing.T, location string) store.Store {
	t.Helper()
	opened, err := store.New(location)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func TestStoreServesSignatures(t *testing.T) {
	a := newSigner(t, "a", nil)
	signed := release.Store{}
	signed.Add(pullSpec, sign(t, newSigner(t, "untrusted", nil), pullSpec))
	signed.Add(pullSpec, sign(t, a, pullSpec))
	server := httptest.NewServer(signed)
	t.Cleanup(server.Close)
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, server.URL+"/mirror"+r.URL.Path, http.StatusFound)
	}))
	t.Cleanup(moved.Close)
	directory := filepath.Join(t.TempDir(), "a store")
	if err := signed.WriteDirectory(directory); err != nil {
		t.Fatal(err)
	}
	file := url.URL{Scheme: "file", Path: directory}
	for name, tc := range map[string]struct{ reason, location string }{
		"HTTP":      {reason: "a web server", location: server.URL},
		"Path":      {reason: "below a path, with a slash at its end and a query", location: server.URL + "/a/b/?token=c"},
		"Redirect":  {reason: "moved elsewhere", location: moved.URL},
		"Directory": {reason: "a directory", location: directory},
		"File":      {reason: "a file URL", location: file.String()},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := signature.Verify(t.Context(), pullSpec, signature.Trust{
				Keyrings: []signature.Keyring{keyring(t, "a", a)}, Stores: []store.Store{newStore(t, tc.location)},
			})
			check(t, tc.reason, "", r, err)
		})
	}
}

func TestStoreMisbehaves(t *testing.T) {
	k := keyring(t, "a", newSigner(t, "a", nil))
	serving := func(status int, size int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			for rest, chunk := size, make([]byte, 64<<10); rest > 0; rest -= len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		reason   string
		handler  http.HandlerFunc
		want     string
		requests int64
	}{
		"NotFound": {reason: "404 means no signature", handler: http.NotFound, want: "NoSignature", requests: 1},
		"Error": {
			reason: "after 500 the store is not read again", handler: serving(http.StatusInternalServerError, 0),
			want: "StoreUnavailable", requests: 1,
		},
		"Forbidden": {
			reason: "403 leaves the signature unknown", handler: serving(http.StatusForbidden, 0), want: "StoreUnavailable",
			requests: 1,
		},
		"Empty": {
			reason: "200 with an empty body for every path", handler: serving(http.StatusOK, 0), want: "MalformedSignature",
			requests: 10,
		},
		"Huge": {reason: "20 MiB are not read in full", handler: serving(http.StatusOK, 20<<20), want: "TooLarge", requests: 10},
		"Loop": {reason: "endless redirects", handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"a", http.StatusFound)
		}, want: "StoreUnavailable", requests: 6},
		"Headers": {reason: "1 MiB of headers", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("A", strings.Repeat("a", 1<<20))
		}, want: "StoreUnavailable", requests: 1},
		"Cut": {reason: "a body shorter than Content-Length", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
		}, want: "StoreUnavailable", requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				tc.handler(w, r)
			}))
			t.Cleanup(server.Close)
			r, err := frugal(t, signature.Trust{Keyrings: []signature.Keyring{k}, Stores: []store.Store{newStore(t, server.URL)}})
			check(t, tc.reason, tc.want, r, err)
			if got := requests.Load(); got != tc.requests {
				t.Errorf("%s: %d requests, want %d", tc.reason, got, tc.requests)
			}
		})
	}
}

func TestStoreHangs(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		start  func(w http.ResponseWriter)
	}{
		"Before": {reason: "no response", start: func(http.ResponseWriter) {}},
		"Within": {reason: "no body after the header", start: func(w http.ResponseWriter) {
			_ = http.NewResponseController(w).Flush()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				tc.start(w)
				<-r.Context().Done()
			}))
			t.Cleanup(server.Close)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			t.Cleanup(cancel)
			r, err := signature.Verify(ctx, pullSpec, signature.Trust{
				Keyrings: []signature.Keyring{keyring(t, "a", newSigner(t, "a", nil))},
				Stores:   []store.Store{newStore(t, server.URL)},
			})
			check(t, tc.reason, "Timeout", r, err)
		})
	}
}

func TestStoreUnavailable(t *testing.T) {
	k := keyring(t, "a", newSigner(t, "a", nil))
	missing := filepath.Join(t.TempDir(), "missing")
	for name, tc := range map[string]struct{ reason, location, message, hides string }{
		"Refused": {
			reason: "connection refused; the password is redacted", location: "http://me:secret@127.0.0.1:1",
			message: "http://me:xxxxx@127.0.0.1:1", hides: "secret",
		},
		"Directory": {reason: "a missing directory is an error, not an empty store", location: missing, message: missing},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := signature.Verify(t.Context(), pullSpec, signature.Trust{
				Keyrings: []signature.Keyring{k}, Stores: []store.Store{newStore(t, tc.location)},
			})
			check(t, tc.reason, "StoreUnavailable", r, err)
			if !strings.Contains(err.Error(), tc.message) || tc.hides != "" && strings.Contains(err.Error(), tc.hides) {
				t.Errorf("%s: message %q, want %q and no %q", tc.reason, err, tc.message, tc.hides)
			}
		})
	}
}

func TestNewStoreRejects(t *testing.T) {
	for name, tc := range map[string]struct{ reason, location string }{
		"Empty":  {reason: "no location", location: ""},
		"Scheme": {reason: "a scheme that is not supported", location: "ftp://example.com"},
		"Host":   {reason: "no host", location: "https:///path"},
		"Remote": {reason: "a file on another machine", location: "file://example.com/path"},
		"URL":    {reason: "an invalid URL is not repeated, since it may contain a password", location: "https://me:secret@exa mple.com"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.New(tc.location)
			check(t, tc.reason, "InvalidStore", signature.Release{}, err)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: message %q", tc.reason, err)
			}
		})
	}
}
