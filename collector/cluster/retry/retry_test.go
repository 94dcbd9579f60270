package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/cluster/retry"
)

func statusError(code int32, reason metav1.StatusReason) error {
	return fmt.Errorf("could not: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason}})
}

func dialed(err error) error {
	return &url.Error{Op: "Get", URL: "https://api:6443", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
}

func TestTemporary(t *testing.T) {
	jobs := schema.GroupResource{Resource: "jobs"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Nothing":         {reason: "no error", err: nil},
		"TooManyRequests": {reason: "the API server is overloaded", err: apierrors.NewTooManyRequests("wait", 1), want: true},
		"Unavailable":     {reason: "an API server that starts", err: apierrors.NewServiceUnavailable("starting"), want: true},
		"Timeout":         {reason: "an API server that waits for etcd", err: apierrors.NewTimeoutError("slow", 1), want: true},
		"ServerTimeout":   {reason: "an API server that waits for etcd", err: apierrors.NewServerTimeout(jobs, "get", 1), want: true},
		"BadGateway": {
			reason: "a load balancer without a backend",
			err:    statusError(http.StatusBadGateway, metav1.StatusReasonInternalError), want: true,
		},
		"Etcd": {
			reason: "errors of etcd have no reason",
			err:    statusError(http.StatusInternalServerError, metav1.StatusReasonUnknown), want: true,
		},
		"Webhook":   {reason: "a webhook may fail permanently", err: apierrors.NewInternalError(errors.New("failed calling webhook"))},
		"Forbidden": {reason: "the request was rejected", err: apierrors.NewForbidden(jobs, "a", errors.New("no"))},
		"Conflict":  {reason: "the same request would be rejected again", err: apierrors.NewConflict(jobs, "a", errors.New("no"))},
		"Refused":   {reason: "the server does not listen yet", err: dialed(syscall.ECONNREFUSED), want: true},
		"Reset":     {reason: "the server has just ended", err: dialed(syscall.ECONNRESET), want: true},
		"NoRoute":   {reason: "the network is unavailable", err: dialed(syscall.EHOSTUNREACH), want: true},
		"NoName":    {reason: "DNS is unavailable", err: dialed(&net.DNSError{Err: "no such host", Name: "api"}), want: true},
		"NotTrusted": {
			reason: "the server rejects the connection",
			err:    &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")},
		},
		"EOF": {reason: "the server ends without a response", err: &url.Error{Op: "Get", URL: "x", Err: io.EOF}, want: true},
		"CutResponse": {
			reason: "the server ends within the response (client-go rest/request.go)",
			err:    fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", io.ErrUnexpectedEOF), want: true,
		},
		"Marked":           {reason: "the caller has marked it", err: fmt.Errorf("could not: %w", retry.Mark(errors.New("gone"))), want: true},
		"SomethingElse":    {reason: "the error is unknown", err: errors.New("x509: certificate signed by unknown authority")},
		"DeadlineExceeded": {reason: "a single attempt may have its own timeout", err: context.DeadlineExceeded, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := retry.Temporary(tc.err); got != tc.want {
				t.Errorf("%s: %v for %v", tc.reason, got, tc.err)
			}
		})
	}
}

func TestGetRetriesUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		got, err := retry.Get(t.Context(), func(context.Context) (int, error) {
			if attempts++; attempts < 4 {
				return 0, apierrors.NewServiceUnavailable("starting")
			}
			return attempts, nil
		})
		if got != 4 || err != nil {
			t.Errorf("got %d, %v, want the result of the fourth attempt", got, err)
		}
	})
}

func TestPermanentErrorIsNotRetried(t *testing.T) {
	no, attempts := errors.New("no"), 0
	err := retry.Do(t.Context(), func(context.Context) error { attempts++; return no })
	if !errors.Is(err, no) || attempts != 1 {
		t.Errorf("got %v after %d attempts, want the first error", err, attempts)
	}
}

func TestDoRetriesUntilContextIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the server has just ended")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		attempts := 0
		err := retry.Do(ctx, func(context.Context) error { attempts++; return retry.Mark(gone) })
		if !errors.Is(err, gone) || attempts < 2 {
			t.Errorf("got %v after %d attempts, want the last error", err, attempts)
		}
	})
}

// The end of the context during an attempt does not hide why the attempts before failed.
func TestDoReturnsTheCauseOfItsRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		attempts := 0
		err := retry.Do(ctx, func(ctx context.Context) error {
			if attempts++; attempts == 1 {
				return retry.Mark(errors.New("connection refused"))
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if err == nil || err.Error() != "connection refused" || attempts != 2 {
			t.Errorf("got %v after %d attempts", err, attempts)
		}
	})
}

func TestDoWithDoneContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := retry.Do(ctx, func(ctx context.Context) error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

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

// script sends its responses in order, and repeats the last one.
type script struct {
	responses []reply
	requests  atomic.Int64
	closed    atomic.Int64
}

type reply struct {
	code int
	body string
	err  error
}

const (
	unavailable = `{"kind":"Status","code":503,"reason":"ServiceUnavailable"}`
	noLeader    = `{"kind":"Status","code":500,"message":"etcdserver: leader changed"}`
	badWebhook  = `{"kind":"Status","code":500,"reason":"InternalError"}`
)

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	number := int(s.requests.Add(1))
	next := s.responses[min(number, len(s.responses))-1]
	if next.err != nil {
		return nil, next.err
	}
	return &http.Response{StatusCode: next.code, Body: body{strings.NewReader(next.body), s}}, nil
}

type body struct {
	io.Reader
	script *script
}

func (b body) Close() error {
	b.script.closed.Add(1)
	return nil
}

func TestReads(t *testing.T) {
	ready := reply{code: http.StatusOK, body: "ready"}
	for name, tc := range map[string]struct {
		reason    string
		method    string
		query     string
		responses []reply
		want      reply
		requests  int
	}{
		"OK": {reason: "a successful request is not repeated", responses: []reply{ready}, want: ready, requests: 1},
		"Unavailable": {
			reason:    "the API server restarts",
			responses: []reply{{code: 503, body: unavailable}, {code: 503, body: unavailable}, ready}, want: ready, requests: 3,
		},
		"Gateway": {
			reason: "a load balancer responds with HTML", responses: []reply{{code: 502, body: "<html>"}, ready}, want: ready,
			requests: 2,
		},
		"Etcd": {
			reason: "the API server waits for etcd", responses: []reply{{code: 500, body: noLeader}, ready}, want: ready,
			requests: 2,
		},
		"NotFound": {
			reason: "a status that is not temporary is returned", responses: []reply{{code: 404}, {err: io.EOF}, ready},
			want: reply{code: 404}, requests: 1,
		},
		"Webhook": {
			reason: "an error that may be permanent is returned", responses: []reply{{code: 500, body: badWebhook}},
			want: reply{code: 500, body: badWebhook}, requests: 1,
		},
		"Busy": {
			reason: "client-go waits for the time in Retry-After", responses: []reply{{code: 429}}, want: reply{code: 429},
			requests: 1,
		},
		"Write": {
			reason: "a write may have been executed", method: http.MethodPost, responses: []reply{{code: 503, body: unavailable}},
			want: reply{code: 503, body: unavailable}, requests: 1,
		},
		"Watch": {
			reason: "the watcher restarts the watch", query: "?watch=true", responses: []reply{{code: 503}}, want: reply{code: 503},
			requests: 1,
		},
		"Refused": {reason: "the address may be wrong", responses: []reply{{err: io.EOF}}, want: reply{err: io.EOF}, requests: 1},
		"Gone": {
			reason: "the number of repetitions is bounded", responses: []reply{{code: 503, body: unavailable}},
			want: reply{code: 503, body: unavailable}, requests: 121,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &script{responses: tc.responses}
				response, err := retry.Reads(server).RoundTrip(newRequest(t.Context(), t, tc.method, tc.query))
				got := reply{err: err}
				if err == nil {
					got.code, got.body = response.StatusCode, read(t, response)
				}
				if got != tc.want || int(server.requests.Load()) != tc.requests {
					t.Errorf("%s: got %+v after %d requests, want %+v after %d", tc.reason, got, server.requests.Load(), tc.want, tc.requests)
				}
				if responses := server.requests.Load(); err == nil && server.closed.Load() != responses {
					t.Errorf("%s: %d of %d responses were closed", tc.reason, server.closed.Load(), responses)
				}
			})
		})
	}
}

// An API server that cannot be reached after a response is restarting.
func TestReadsWaitForRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &script{responses: []reply{{code: 200, body: "a"}, {err: io.EOF}, {err: io.EOF}, {code: 200, body: "b"}}}
		transport := retry.Reads(server)
		var got []string
		for range 2 {
			response, err := transport.RoundTrip(newRequest(t.Context(), t, "", ""))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, read(t, response))
		}
		if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

// A server at whose address nothing listens is final before it has answered, and restarts after that.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		replies []reply
		want    bool
	}{
		"First":  {reason: "the address may be wrong", replies: []reply{{err: dialed(syscall.ECONNREFUSED)}}},
		"NoName": {reason: "the name may be wrong", replies: []reply{{err: dialed(&net.DNSError{Err: "no such host", Name: "api"})}}},
		"Restart": {
			reason: "the server has answered before", replies: []reply{{code: 200, body: "a"}, {err: dialed(syscall.ECONNREFUSED)}},
			want: true,
		},
		"NoRoute": {reason: "a laptop has changed its network", replies: []reply{{err: dialed(syscall.EHOSTUNREACH)}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			by := retry.Reads(&script{responses: tc.replies})
			var err error
			for range tc.replies {
				var response *http.Response
				if response, err = by.RoundTrip(newRequest(t.Context(), t, http.MethodPost, "")); err == nil {
					read(t, response)
				}
			}
			if got := retry.Temporary(fmt.Errorf("could not: %w", err)); got != tc.want {
				t.Errorf("%s: %v for %v", tc.reason, got, err)
			}
		})
	}
}

// A canceled request is not repeated.
func TestReadsEndWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		server := &script{responses: []reply{{code: 503, body: unavailable}}}
		response, err := retry.Reads(server).RoundTrip(newRequest(ctx, t, "", ""))
		if err != nil || response.StatusCode != http.StatusServiceUnavailable || server.requests.Load() != 11 {
			t.Errorf("%v, %v after %d requests; want the last response after 11", response, err, server.requests.Load())
		}
		read(t, response)
	})
}

func newRequest(ctx context.Context, t *testing.T, method, query string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, "https://api:6443/version"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func read(t *testing.T, response *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(text)
}
