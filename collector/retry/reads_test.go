package retry_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/retry"
)

// script answers one request after the other, and the last for ever.
type script struct {
	answers []reply
	asked   atomic.Int64
	closed  atomic.Int64
}

type reply struct {
	code int
	body string
	err  error
}

const (
	unavailable = `{"kind":"Status","code":503,"reason":"ServiceUnavailable"}`
	etcdIsGone  = `{"kind":"Status","code":500,"message":"etcdserver: leader changed"}`
	badWebhook  = `{"kind":"Status","code":500,"reason":"InternalError"}`
)

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	number := int(s.asked.Add(1))
	response := s.answers[min(number, len(s.answers))-1]
	if response.err != nil {
		return nil, response.err
	}
	return &http.Response{StatusCode: response.code, Body: body{strings.NewReader(response.body), s}}, nil
}

type body struct {
	io.Reader
	script *script
}

func (b body) Close() error {
	b.script.closed.Add(1)
	return nil
}

func TestOnReads(t *testing.T) {
	ready := reply{code: http.StatusOK, body: "ready"}
	for name, tc := range map[string]struct {
		reason  string
		method  string
		query   string
		answers []reply
		want    reply
		asked   int
	}{
		"Answered":    {reason: "what is answered is not asked again", answers: []reply{ready}, want: ready, asked: 1},
		"Unavailable": {reason: "it restarts", answers: []reply{{code: 503, body: unavailable}, {code: 503, body: unavailable}, ready}, want: ready, asked: 3},
		"Gateway":     {reason: "a load balancer responds with HTML", answers: []reply{{code: 502, body: "<html>"}, ready}, want: ready, asked: 2},
		"Etcd":        {reason: "it waits for etcd", answers: []reply{{code: 500, body: etcdIsGone}, ready}, want: ready, asked: 2},
		"Ends":        {reason: "it ends without an answer", answers: []reply{{code: 404}, {err: io.EOF}, ready}, want: reply{code: 404}, asked: 1},
		"Webhook":     {reason: "an error that may be permanent is returned", answers: []reply{{code: 500, body: badWebhook}}, want: reply{code: 500, body: badWebhook}, asked: 1},
		"Busy":        {reason: "client-go waits for the time in Retry-After", answers: []reply{{code: 429}}, want: reply{code: 429}, asked: 1},
		"Write":       {reason: "a write may have been done", method: http.MethodPost, answers: []reply{{code: 503, body: unavailable}}, want: reply{code: 503, body: unavailable}, asked: 1},
		"Watch":       {reason: "the watcher restarts the watch", query: "?watch=true", answers: []reply{{code: 503}}, want: reply{code: 503}, asked: 1},
		"Refused":     {reason: "the address may be wrong", answers: []reply{{err: io.EOF}}, want: reply{err: io.EOF}, asked: 1},
		"Gone":        {reason: "nothing is waited for without end", answers: []reply{{code: 503, body: unavailable}}, want: reply{code: 503, body: unavailable}, asked: 121},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &script{answers: tc.answers}
				answer, err := retry.Reads(server).RoundTrip(newRequest(t.Context(), t, tc.method, tc.query))
				got := reply{err: err}
				if err == nil {
					got.code, got.body = answer.StatusCode, read(t, answer)
				}
				if got != tc.want || int(server.asked.Load()) != tc.asked {
					t.Errorf("%s: got %+v after %d requests, want %+v after %d", tc.reason, got, server.asked.Load(), tc.want, tc.asked)
				}
				if answers := server.asked.Load(); err == nil && server.closed.Load() != answers {
					t.Errorf("%s: %d of %d answers were closed", tc.reason, server.closed.Load(), answers)
				}
			})
		})
	}
}

// An API server that has answered is known to be there: when it can not be
// reached, it restarts.
func TestOnReadsWaitsForAServerThatItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &script{answers: []reply{{code: 200, body: "a"}, {err: io.EOF}, {err: io.EOF}, {code: 200, body: "b"}}}
		transport := retry.Reads(server)
		var got []string
		for range 2 {
			answer, err := transport.RoundTrip(newRequest(t.Context(), t, "", ""))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, read(t, answer))
		}
		if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

// A canceled request is not repeated.
func TestOnReadsEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		server := &script{answers: []reply{{code: 503, body: unavailable}}}
		answer, err := retry.Reads(server).RoundTrip(newRequest(ctx, t, "", ""))
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable || server.asked.Load() != 11 {
			t.Errorf("%v, %v after %d requests; want the last answer, after 11", answer, err, server.asked.Load())
		}
		read(t, answer)
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

func read(t *testing.T, answer *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(text)
}
