package retry_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/cluster/retry"
)

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
		"OK":          {reason: "a successful request is not repeated", responses: []reply{ready}, want: ready, requests: 1},
		"Unavailable": {reason: "the API server restarts", responses: []reply{{code: 503, body: unavailable}, {code: 503, body: unavailable}, ready}, want: ready, requests: 3},
		"Gateway":     {reason: "a load balancer responds with HTML", responses: []reply{{code: 502, body: "<html>"}, ready}, want: ready, requests: 2},
		"Etcd":        {reason: "the API server waits for etcd", responses: []reply{{code: 500, body: noLeader}, ready}, want: ready, requests: 2},
		"NotFound":    {reason: "a status that is not temporary is returned", responses: []reply{{code: 404}, {err: io.EOF}, ready}, want: reply{code: 404}, requests: 1},
		"Webhook":     {reason: "an error that may be permanent is returned", responses: []reply{{code: 500, body: badWebhook}}, want: reply{code: 500, body: badWebhook}, requests: 1},
		"Busy":        {reason: "client-go waits for the time in Retry-After", responses: []reply{{code: 429}}, want: reply{code: 429}, requests: 1},
		"Write":       {reason: "a write may have been executed", method: http.MethodPost, responses: []reply{{code: 503, body: unavailable}}, want: reply{code: 503, body: unavailable}, requests: 1},
		"Watch":       {reason: "the watcher restarts the watch", query: "?watch=true", responses: []reply{{code: 503}}, want: reply{code: 503}, requests: 1},
		"Refused":     {reason: "the address may be wrong", responses: []reply{{err: io.EOF}}, want: reply{err: io.EOF}, requests: 1},
		"Gone":        {reason: "the number of repetitions is bounded", responses: []reply{{code: 503, body: unavailable}}, want: reply{code: 503, body: unavailable}, requests: 121},
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
		"First":   {reason: "the address may be wrong", replies: []reply{{err: dialed(syscall.ECONNREFUSED)}}},
		"NoName":  {reason: "the name may be wrong", replies: []reply{{err: dialed(&net.DNSError{Err: "no such host", Name: "api"})}}},
		"Restart": {reason: "the server has answered before", replies: []reply{{code: 200, body: "a"}, {err: dialed(syscall.ECONNREFUSED)}}, want: true},
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
