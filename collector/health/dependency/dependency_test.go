package dependency_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// serve runs a server until the test ends.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// refusing is an address at which no server listens. A port that is free now could be
// another program's when a test connects to it.
const refusing = "127.0.0.1:1"

// slow is a server that does not respond before the test ends.
func slow(t *testing.T) string {
	t.Helper()
	ended := make(chan struct{})
	url := serve(t, func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-ended:
		case <-request.Context().Done():
		}
	})
	t.Cleanup(func() { close(ended) })
	return url
}

// probe runs the check on dependencies.
func probe(t *testing.T, client *http.Client, urls ...string) []finding.Finding {
	t.Helper()
	return checktest.Run(t, dependency.Check(dependency.New(client, urls)), server.Snapshot(t), patch(t))
}

func TestExternalDependencies(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(status(http.StatusOK))
	t.Cleanup(secure.Close)
	loop := serve(t, func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, "/again", http.StatusFound)
	})
	fine := serve(t, status(http.StatusNoContent))
	for name, tc := range map[string]struct {
		reason  string
		url     string
		client  *http.Client
		message string // a part of it
		want    checktest.Result
	}{
		"Fine": {reason: "2xx is reachable", url: fine, message: "all 1 external", want: result(preflight.Pass, "Reachable")},
		"Redirected": {
			reason: "a redirect is followed", want: result(preflight.Pass, "Reachable"),
			url: serve(t, func(w http.ResponseWriter, request *http.Request) { http.Redirect(w, request, fine, http.StatusFound) }),
		},
		"NotModified": {
			reason: "3xx without a location is reachable", url: serve(t, status(http.StatusNotModified)), want: result(preflight.Pass, "Reachable"),
		},
		"Endless": {
			reason: "the body is not read", want: result(preflight.Pass, "Reachable"),
			url: serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for {
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return
					}
				}
			}),
		},
		"Trusted": {
			reason: "the client decides about certificates", url: secure.URL, client: secure.Client(),
			want: result(preflight.Pass, "Reachable"),
		},
		"Refused": {
			reason: "no server listens", url: "http://" + refusing, message: "connection refused", want: result(preflight.Fail, "ConnectionRefused"),
		},
		"Untrusted": {
			reason: "the certificate is not trusted", url: secure.URL, message: "certificate signed by unknown authority",
			want: result(preflight.Fail, "TLSFailed"),
		},
		"NoTLS": {
			reason: "the server does not support TLS", url: strings.Replace(fine, "http:", "https:", 1), message: "HTTP response to HTTPS client",
			want: result(preflight.Fail, "TLSFailed"),
		},
		"ServerError": {
			reason: "an error of the server", url: serve(t, status(http.StatusInternalServerError)),
			message: "the server responded with 500 Internal Server Error",
			want:    result(preflight.Fail, "BadStatus"),
		},
		"NotFound": {
			reason: "the URL does not exist", url: serve(t, status(http.StatusNotFound)), message: "404",
			want: result(preflight.Fail, "BadStatus"),
		},
		"Slow": {
			reason: "the server does not respond in time", url: slow(t), client: &http.Client{Timeout: 50 * time.Millisecond},
			want: result(preflight.Fail, "Timeout"),
		},
		"RedirectLoop": {
			reason: "the redirects form a loop", url: loop, message: "redirects more than 10 times",
			want: result(preflight.Fail, "TooManyRedirects"),
		},
		"ClientRedirects": {
			reason: "the client decides about redirects", url: loop, want: result(preflight.Pass, "Reachable"),
			client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		},
		"NoSuchName": {
			reason: "names in .invalid do not exist (RFC 6761)", url: "https://registry.invalid/v2/",
			message: `the name "registry.invalid" cannot be resolved`,
			want:    result(preflight.Fail, "NameNotResolved"),
		},
		"HangsUp": {
			reason: "another error of the connection", want: result(preflight.Fail, "Unreachable"), message: "EOF",
			url: serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		},
		"Proxy": {
			reason: "the proxy refuses the connection", url: "http://registry.invalid/", message: "proxyconnect",
			want:   result(preflight.Fail, "ConnectionRefused"),
			client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: refusing})}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.client == nil {
				tc.client = &http.Client{Timeout: time.Minute}
			}
			findings := probe(t, tc.client, tc.url)
			if len(findings) != 1 || findings[0].Outcome != tc.want.Outcome || findings[0].Reason != tc.want.Reason {
				t.Fatalf("%s: got %+v, want %+v", tc.reason, findings, tc.want)
			}
			if !strings.Contains(findings[0].Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.message)
			}
		})
	}
}

func TestExternalDependenciesAreRetried(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	flaky := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	want := results{"ExternalDependency": result(preflight.Pass, "Reachable")}
	if diff := cmp.Diff(want, checktest.Results(probe(t, http.DefaultClient, flaky))); diff != "" || requests.Load() != 3 {
		t.Errorf("a dependency that responds to the third of %d requests is reachable (-want +got):\n%s", requests.Load(), diff)
	}
}

func TestExternalDependenciesAreProbedOnce(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	fine := serve(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	shared := dependency.New(http.DefaultClient, []string{fine, fine, fine + "/"})
	view := server.Snapshot(t)
	var updates sync.WaitGroup
	for i := range 50 {
		subject := check.Subject{Update: checktest.Update(t, "4.18.3", fmt.Sprintf("4.18.%d", i+4))}
		updates.Go(func() {
			findings := checktest.Collect(t, []check.Check{dependency.Check(shared)}, view, subject)
			if len(findings) != 1 || findings[0].Outcome != preflight.Pass {
				t.Errorf("want one pass, got %+v", findings)
			}
		})
	}
	updates.Wait()
	if requests.Load() != 2 {
		t.Errorf("%d requests, want one for each of 2 URLs", requests.Load())
	}
}

func TestExternalDependenciesEachTarget(t *testing.T) {
	t.Parallel()
	shared := dependency.New(http.DefaultClient, []string{"ftp://x"})
	for _, to := range []string{"4.18.4", "4.18.5"} {
		findings := checktest.Run(t, dependency.Check(shared), server.Snapshot(t), checktest.Update(t, "4.18.3", to))
		if diff := cmp.Diff([]string{to}, findings[0].BlockedTargets); diff != "" {
			t.Errorf("a shared finding has the target that it blocks (-want +got):\n%s", diff)
		}
	}
}

func TestManyExternalDependencies(t *testing.T) {
	t.Parallel()
	var open, most atomic.Int32
	counted := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if now := open.Add(1); now > most.Load() {
			most.Store(now)
		}
		defer open.Add(-1)
		w.WriteHeader(http.StatusTeapot)
	})
	urls := make([]string, 60)
	for i := range urls {
		urls[i] = fmt.Sprintf("%s/%02d", counted, i)
	}
	findings := probe(t, http.DefaultClient, urls...)
	if len(findings) != 51 || !strings.Contains(findings[50].Message, "10 Fail") {
		t.Errorf("got %d findings, the last %q; want 50 and the count of the rest", len(findings), findings[len(findings)-1].Message)
	}
	if most.Load() > 16 {
		t.Errorf("%d concurrent requests, more than 16", most.Load())
	}
	tooMany := make([]string, 101)
	for i := range tooMany {
		tooMany[i] = fmt.Sprintf("%s/%03d", counted, i)
	}
	if f := probe(t, http.DefaultClient, tooMany...)[0]; f.Outcome != preflight.Unknown || !strings.Contains(f.Message, "101") {
		t.Errorf("more dependencies than the limit are inconclusive, got %+v", f)
	}
}

func TestExternalDependenciesOfAnEndedRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		url    string
		ctx    func(*testing.T) context.Context
		want   error
	}{
		"Interrupted": {
			reason: "the run was canceled", url: slow(t), want: context.Canceled,
			ctx: func(t *testing.T) context.Context {
				t.Helper()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				return ctx
			},
		},
		"BetweenTries": {
			reason: "the run ends between two requests", url: "http://" + refusing, want: context.DeadlineExceeded,
			ctx: func(t *testing.T) context.Context {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				t.Cleanup(cancel)
				return ctx
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dependency.Check(dependency.New(http.DefaultClient, []string{tc.url, "ftp://x"}))
			findings, err := c.Examine(tc.ctx(t), check.Subject{Update: patch(t)})
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: got error %v, want %v", tc.reason, err, tc.want)
			}
			if len(findings) != 1 || findings[0].Reason != "InvalidURL" {
				t.Errorf("%s: the finding of the other dependency is lost: %+v", tc.reason, findings)
			}
		})
	}
}

func TestExternalDependenciesWithoutAny(t *testing.T) {
	t.Parallel()
	want := results{"ExternalDependency": result(preflight.Skipped, "NoneGiven")}
	for _, none := range []*dependency.Set{nil, dependency.New(http.DefaultClient, nil)} {
		got := checktest.Results(checktest.Run(t, dependency.Check(none), server.Snapshot(t), patch(t)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("no dependency is skipped (-want +got):\n%s", diff)
		}
	}
}

func TestExternalDependenciesKeepSecrets(t *testing.T) {
	t.Parallel()
	var authorized atomic.Bool
	broken := serve(t, func(w http.ResponseWriter, request *http.Request) {
		user, password, _ := request.BasicAuth()
		authorized.Store(user == "kim" && password == "hunter2" && request.URL.Query().Get("token") == "t0ken")
		w.WriteHeader(http.StatusInternalServerError)
	})
	redirecting := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://kim:hunter2@[broken/?token=t0ken")
		w.WriteHeader(http.StatusFound)
	})
	secret := strings.Replace(broken, "http://", "http://kim:hunter2@", 1) + "/a%20b?token=t0ken#t0ken"
	findings := probe(t, http.DefaultClient, secret, redirecting,
		"http://kim:hunter2@"+refusing+"/?token=t0ken", "http://kim:hunter2@registry.invalid/?token=t0ken",
		"ftp://kim:hunter2@host/?token=t0ken", "http://kim:hunter2@[::1?token=t0ken", "kim:hunter2@host?token=t0ken", "http://a b?token=t0ken",
		"")
	if len(findings) != 9 {
		t.Errorf("got %d findings, want one for each of 9 URLs", len(findings))
	}
	for _, f := range findings {
		for _, word := range []string{"kim", "hunter2", "t0ken"} {
			if text := fmt.Sprintf("%+v", f); strings.Contains(text, word) {
				t.Errorf("%s contains %q: %s", f.Name, word, text)
			}
		}
		if !regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`).MatchString(f.Name) {
			t.Errorf("%q cannot be accepted by name", f.Name)
		}
	}
	if !authorized.Load() {
		t.Error("the request had no credentials")
	}
}

// FuzzWithoutSecrets checks that no text before an @ or after a ? is kept.
func FuzzWithoutSecrets(f *testing.F) {
	f.Add("http://", "host/")
	f.Fuzz(func(t *testing.T, before, after string) {
		if text := dependency.WithoutSecrets(before + "hunter2@" + after + "?t0ken"); strings.Contains(text, "t0ken") &&
			!strings.Contains(after, "t0ken") ||
			strings.Contains(text, "hunter2") && !strings.Contains(after, "hunter2") {
			t.Errorf("%q contains a secret", text)
		}
	})
}
