package retry_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster/retry"
)

// A write fails in many ways when its connection ends, and each has its own error. The
// API server is reached by HTTP/2, some load balancers before it by HTTP/1.1.
func TestErrorsOfEndedConnectionsAreTemporary(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			for _, err := range writeMany(t, startServer(t, http2, echo)) {
				if failed++; !retry.Temporary(err) {
					t.Errorf("%T is not temporary: %v", err, err)
				}
			}
			if failed == 0 {
				t.Error("no write failed")
			}
		})
	}
}

// A list is read again when its response ends early: the collector has one request for
// thousands of objects.
func TestResponsesThatEndEarlyAreReadAgain(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			want := strings.Repeat("a long list ", 10_000)
			server := startServer(t, http2, func(w http.ResponseWriter, _ *http.Request) {
				if requests.Add(1) == 1 {
					_, _ = io.WriteString(w, want[:len(want)/2])
					panic(http.ErrAbortHandler)
				}
				_, _ = io.WriteString(w, want)
			})
			client := server.Client()
			client.Transport = retry.Reads(client.Transport)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, response); got != want || requests.Load() != 2 {
				t.Errorf("read %d of %d bytes with %d requests, want all with two", len(got), len(want), requests.Load())
			}
		})
	}
}

// startServer starts a server with TLS. It does not log connections that end.
func startServer(t *testing.T, http2 bool, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// writeMany sends writes to a server whose connections end again and again, and
// returns their errors.
func writeMany(t *testing.T, server *httptest.Server) []error {
	t.Helper()
	const writers, writes = 8, 100
	var (
		all   sync.WaitGroup
		mutex sync.Mutex
		errs  []error
		cut   = make(chan struct{}, writers)
	)
	config := &rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for range writers {
		all.Go(func() {
			for range writes {
				_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{})
				if err != nil {
					mutex.Lock()
					errs = append(errs, err)
					mutex.Unlock()
				}
				cut <- struct{}{}
			}
		})
	}
	go func() { all.Wait(); close(cut) }()
	for range cut {
		server.CloseClientConnections()
	}
	return errs
}

func echo(w http.ResponseWriter, r *http.Request) {
	object, err := io.ReadAll(r.Body)
	if err != nil {
		return // the connection has ended
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusCreated)
	_, _ = io.Copy(w, bytes.NewReader(object)) // the connection may have ended
}
