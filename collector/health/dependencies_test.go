package health_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// serve runs a server that answers so until the test ends.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func answers(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// refusing is an address at which nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// slow is a server that does not answer before the test ends.
func slow(t *testing.T) string {
	t.Helper()
	over := make(chan struct{})
	url := serve(t, func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-over:
		case <-request.Context().Done():
		}
	})
	t.Cleanup(func() { close(over) })
	return url
}

func ask(t *testing.T, client *http.Client, urls ...string) []finding.Finding {
	t.Helper()
	return checktest.Run(t, health.ExternalDependencies(health.DependOn(client, urls)), server.Snapshot(t), patch(t))
}

func TestExternalDependencies(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(answers(http.StatusOK))
	t.Cleanup(secure.Close)
	loop := serve(t, func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, "/again", http.StatusFound)
	})
	fine := serve(t, answers(http.StatusNoContent))
	for name, tc := range map[string]struct {
		reason string
		url    string
		client *http.Client
		says   string
		want   checktest.Result
	}{
		"Fine": {reason: "2xx is an answer", url: fine, says: "1 of them", want: said(preflight.Pass, "Reachable")},
		"Redirected": {
			reason: "a redirect is followed", want: said(preflight.Pass, "Reachable"),
			url: serve(t, func(w http.ResponseWriter, request *http.Request) { http.Redirect(w, request, fine, http.StatusFound) }),
		},
		"NotModified": {
			reason: "3xx is an answer where it leads nowhere", url: serve(t, answers(http.StatusNotModified)), want: said(preflight.Pass, "Reachable"),
		},
		"Endless": {
			reason: "what the answer says is not read", want: said(preflight.Pass, "Reachable"),
			url: serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for {
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return
					}
				}
			}),
		},
		"Trusted": {reason: "the client decides whom it trusts", url: secure.URL, client: secure.Client(), want: said(preflight.Pass, "Reachable")},
		"Refused": {
			reason: "nobody listens", url: "http://" + refusing(t), says: "connection refused", want: said(preflight.Fail, "ConnectionRefused"),
		},
		"Untrusted": {
			reason: "its certificate is nobody's", url: secure.URL, says: "certificate signed by unknown authority", want: said(preflight.Fail, "TLSFailed"),
		},
		"NoTLS": {
			reason: "it does not speak TLS", url: strings.Replace(fine, "http:", "https:", 1), says: "HTTP response to HTTPS client", want: said(preflight.Fail, "TLSFailed"),
		},
		"ServerError": {
			reason: "an error is no answer", url: serve(t, answers(http.StatusInternalServerError)), says: "it answers 500 Internal Server Error",
			want: said(preflight.Fail, "BadStatus"),
		},
		"NotFound": {reason: "nor is that", url: serve(t, answers(http.StatusNotFound)), says: "404", want: said(preflight.Fail, "BadStatus")},
		"Slow": {
			reason: "it does not answer in time", url: slow(t), client: &http.Client{Timeout: 50 * time.Millisecond}, want: said(preflight.Fail, "Timeout"),
		},
		"RedirectLoop": {reason: "it leads nowhere", url: loop, says: "redirects more than 10 times", want: said(preflight.Fail, "TooManyRedirects")},
		"ClientRedirects": {
			reason: "the client decides about redirects", url: loop, want: said(preflight.Pass, "Reachable"),
			client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		},
		"NoSuchName": {
			reason: "names that end so do not exist (RFC 6761)", url: "https://registry.invalid/v2/", says: `the name "registry.invalid" cannot be resolved`,
			want: said(preflight.Fail, "NameNotResolved"),
		},
		"HangsUp": {
			reason: "whatever else happens on the way", want: said(preflight.Fail, "Unreachable"), says: "EOF",
			url: serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		},
		"Proxy": {
			reason: "a proxy is as much on the way", url: "http://registry.invalid/", says: "proxyconnect", want: said(preflight.Fail, "ConnectionRefused"),
			client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: refusing(t)})}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.client == nil {
				tc.client = &http.Client{Timeout: time.Minute}
			}
			findings := ask(t, tc.client, tc.url)
			if len(findings) != 1 || findings[0].Outcome != tc.want.Outcome || findings[0].Reason != tc.want.Reason {
				t.Fatalf("%s: got %+v, want %+v", tc.reason, findings, tc.want)
			}
			if !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("%s: %q does not say %q", tc.reason, findings[0].Message, tc.says)
			}
		})
	}
}

func TestExternalDependenciesTryAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	flaky := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	want := results{"ExternalDependency": said(preflight.Pass, "Reachable")}
	if diff := cmp.Diff(want, checktest.Results(ask(t, http.DefaultClient, flaky))); diff != "" || asked.Load() != 3 {
		t.Errorf("an answer to the third of %d tries is an answer (-want +got):\n%s", asked.Load(), diff)
	}
}

func TestExternalDependenciesAskOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	fine := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	shared := health.DependOn(http.DefaultClient, []string{fine, fine, fine + "/"})
	var sources []collector.Source
	for i := range 50 {
		u := checktest.Update(t, "4.18.3", fmt.Sprintf("4.18.%d", i+4))
		sources = append(sources, health.ExternalDependencies(shared, u))
	}
	collection := collector.Collect(t.Context(), sources, func(collector.Source, []finding.Finding) {})
	for _, f := range collection.Findings {
		if f.Outcome != preflight.Pass {
			t.Errorf("%s: %s", f.Name, f.Message)
		}
	}
	if len(collection.Findings) != 50 || asked.Load() != 2 {
		t.Errorf("%d findings and %d requests; want 50, and one request for each of 2 URLs", len(collection.Findings), asked.Load())
	}
}

func TestExternalDependenciesEachTarget(t *testing.T) {
	t.Parallel()
	shared := health.DependOn(http.DefaultClient, []string{"ftp://x"})
	for _, to := range []string{"4.18.4", "4.18.5"} {
		findings := checktest.Run(t, health.ExternalDependencies(shared), server.Snapshot(t), checktest.Update(t, "4.18.3", to))
		if diff := cmp.Diff([]string{to}, findings[0].BlockedTargets); diff != "" {
			t.Errorf("what is shared says which target it blocks (-want +got):\n%s", diff)
		}
	}
}

func TestExternalDependenciesMany(t *testing.T) {
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
	findings := ask(t, http.DefaultClient, urls...)
	if len(findings) != 51 || !strings.Contains(findings[50].Message, "10 Fail") {
		t.Errorf("got %d findings, the last %q; want 50 and the count of the rest", len(findings), findings[len(findings)-1].Message)
	}
	if most.Load() > 16 {
		t.Errorf("%d were asked at a time, more than 16", most.Load())
	}
	tooMany := make([]string, 101)
	for i := range tooMany {
		tooMany[i] = fmt.Sprintf("%s/%03d", counted, i)
	}
	if f := ask(t, http.DefaultClient, tooMany...)[0]; f.Outcome != preflight.Unknown || !strings.Contains(f.Message, "101") {
		t.Errorf("more than can be asked is not a pass: %+v", f)
	}
}

func TestExternalDependenciesWithoutTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		url    string
		ctx    func(*testing.T) context.Context
		want   error
	}{
		"Interrupted": {
			reason: "the administrator had enough", url: slow(t), want: context.Canceled,
			ctx: func(t *testing.T) context.Context {
				t.Helper()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				return ctx
			},
		},
		"BetweenTries": {
			reason: "the run ends between two tries", url: "http://" + refusing(t), want: context.DeadlineExceeded,
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
			source := health.ExternalDependencies(health.DependOn(http.DefaultClient, []string{tc.url, "ftp://x"}), patch(t))
			findings, err := source.Collect(tc.ctx(t))
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: got error %v, want %v", tc.reason, err, tc.want)
			}
			if len(findings) != 1 || findings[0].Reason != "InvalidURL" {
				t.Errorf("%s: what could be told is lost: %+v", tc.reason, findings)
			}
		})
	}
}

func TestExternalDependenciesWithoutAny(t *testing.T) {
	t.Parallel()
	want := results{"ExternalDependency": said(preflight.Skipped, "NoneGiven")}
	for _, none := range []*health.Dependencies{nil, health.DependOn(http.DefaultClient, nil)} {
		got := checktest.Results(checktest.Run(t, health.ExternalDependencies(none), server.Snapshot(t), patch(t)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("nothing to ask is not an answer (-want +got):\n%s", diff)
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
	findings := ask(t, http.DefaultClient, secret, redirecting,
		"http://kim:hunter2@"+refusing(t)+"/?token=t0ken", "http://kim:hunter2@registry.invalid/?token=t0ken",
		"ftp://kim:hunter2@host/?token=t0ken", "http://kim:hunter2@[::1?token=t0ken", "kim:hunter2@host?token=t0ken", "http://a b?token=t0ken", "")
	if len(findings) != 9 {
		t.Errorf("got %d findings, want one for each of 9 URLs", len(findings))
	}
	for _, f := range findings {
		for _, word := range []string{"kim", "hunter2", "t0ken"} {
			if text := fmt.Sprintf("%+v", f); strings.Contains(text, word) {
				t.Errorf("%s tells %q: %s", f.Name, word, text)
			}
		}
		if !regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`).MatchString(f.Name) {
			t.Errorf("%q is not a name that can be accepted", f.Name)
		}
	}
	if !authorized.Load() {
		t.Error("the server was asked without the credentials")
	}
}

// FuzzNameOf makes sure that every URL has a finding that can be accepted.
func FuzzNameOf(f *testing.F) {
	for _, seed := range []string{"quay.io/health", "[::1]:8080/", "", "/", "ä/%", strings.Repeat("x", 300)} {
		f.Add(seed)
	}
	valid := regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)
	f.Fuzz(func(t *testing.T, place string) {
		if name := "ExternalDependency-" + health.NameOf(place); !valid.MatchString(name) || len(name) > 256 {
			t.Errorf("%q makes the name %q", place, name)
		}
	})
}

// FuzzWithoutSecrets makes sure that nothing before an @ or after a ? is told.
func FuzzWithoutSecrets(f *testing.F) {
	f.Add("http://", "host/")
	f.Fuzz(func(t *testing.T, before, after string) {
		if text := health.WithoutSecrets(before + "hunter2@" + after + "?t0ken"); strings.Contains(text, "t0ken") && !strings.Contains(after, "t0ken") ||
			strings.Contains(text, "hunter2") && !strings.Contains(after, "hunter2") {
			t.Errorf("%q is told", text)
		}
	})
}
