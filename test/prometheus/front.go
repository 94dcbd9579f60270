package prometheus

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"testing"
	"time"
)

// Run is Start for the duration of one test.
func Run(tb testing.TB, rules ...Rule) *Prometheus {
	tb.Helper()
	started, err := Start(tb.Context(), tb.TempDir(), rules...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(started.Stop)
	return started
}

// Front is a server in front of a Prometheus for the duration of one test.
type Front struct {
	URL string
	// CA is the PEM-encoded certificate of a front with TLS.
	CA []byte

	mutex    sync.Mutex
	requests []Request
}

// Request is a request that a front has received.
type Request struct {
	Method, Path  string
	Query         url.Values
	Authorization string
}

// Requests returns all requests so far.
func (f *Front) Requests() []Request {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return append([]Request(nil), f.requests...)
}

// Open returns a front that forwards every request.
func (p *Prometheus) Open(tb testing.TB) *Front {
	tb.Helper()
	return serve(tb, p.proxy(tb), (*httptest.Server).Start)
}

// Guarded returns a front with TLS that forwards only requests with the token. It
// responds with 401 to requests without a token, and with 403 to those with
// another.
func (p *Prometheus) Guarded(tb testing.TB, token string) *Front {
	tb.Helper()
	proxy := p.proxy(tb)
	return serve(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "Bearer " + token:
			proxy.ServeHTTP(w, r)
		case "":
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
		default:
			http.Error(w, "Forbidden", http.StatusForbidden)
		}
	}), (*httptest.Server).StartTLS)
}

// Silent returns a front that accepts requests and never responds.
func Silent(tb testing.TB) *Front {
	tb.Helper()
	ended, end := context.WithCancel(context.WithoutCancel(tb.Context()))
	front := serve(tb, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended.Done():
		}
	}), (*httptest.Server).Start)
	tb.Cleanup(end) // the server waits for its requests when it closes
	return front
}

// constant is a query that needs no series.
var constant = regexp.MustCompile(`^vector\((\d+)\)$`)

// WithoutAlerts returns a handler that responds as a Prometheus without rules and series does: no alert
// fires, and no query has a result but vector(N).
func WithoutAlerts() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result := ""
		if of := constant.FindStringSubmatch(r.FormValue("query")); of != nil {
			result = fmt.Sprintf(`{"metric":{},"value":[%.3f,%q]}`, float64(time.Now().UnixMilli())/1000, of[1])
		}
		data := `{"resultType":"vector","result":[` + result + `]}`
		if r.URL.Path == "/api/v1/alerts" {
			data = `{"alerts":[]}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"success","data":` + data + `}`)) //nolint:gosec // the result is digits; the client may have gone
	})
}

// Constant returns a front that responds to every request with a constant status and body,
// for responses of proxies that Prometheus does not send.
func Constant(tb testing.TB, status int, body string) *Front {
	tb.Helper()
	return serve(tb, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may have gone
	}), (*httptest.Server).Start)
}

func (p *Prometheus) proxy(tb testing.TB) http.Handler {
	tb.Helper()
	upstream, err := url.Parse(p.URL)
	if err != nil {
		tb.Fatal(err)
	}
	return httputil.NewSingleHostReverseProxy(upstream)
}

// serve runs the handler until the test ends, and records the requests.
func serve(tb testing.TB, handler http.Handler, start func(*httptest.Server)) *Front {
	tb.Helper()
	front := &Front{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		front.note(r)
		handler.ServeHTTP(w, r)
	}))
	start(server)
	tb.Cleanup(server.Close)
	if certificate := server.Certificate(); certificate != nil {
		front.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	}
	front.URL = server.URL
	return front
}

func (f *Front) note(r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.requests = append(f.requests, Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Authorization: r.Header.Get("Authorization"),
	})
}
