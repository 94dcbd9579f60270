package retry_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/cluster/retry"
)

// The memory of a body is used for the next one, but never for two at a time, however often one is closed.
func TestBodiesDoNotShareMemory(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(r.URL.Path, 1000))
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: retry.Reads(http.DefaultTransport)}
	get := func(path string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	first := get("/a")
	for range 2 {
		if err := first.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	second, third := get("/b"), get("/c") //nolint:bodyclose // in the loop
	for path, response := range map[string]*http.Response{"/b": second, "/c": third} {
		if got, err := io.ReadAll(response.Body); err != nil || string(got) != strings.Repeat(path, 1000) {
			t.Errorf("%d bytes of %s, %v; want only its own, 2000", len(got), path, err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("read of a closed body: %v, want %v", err, http.ErrBodyReadAfterClose)
	}
}
