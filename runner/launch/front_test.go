package launch_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch"
)

// behind is a Launcher whose requests pass through front on their way to the
// API server. That serves a request with next, or does worse.
func behind(t *testing.T, front func(w http.ResponseWriter, r *http.Request, next http.Handler)) *launch.Launcher {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { front(w, r, proxy) }))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return launch.New(client)
}

// drop cuts the connection without an answer.
func drop(t *testing.T, w http.ResponseWriter) {
	t.Helper()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		t.Error("the connection cannot be cut")
		return
	}
	connection, _, err := hijacker.Hijack()
	if err == nil {
		err = connection.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

func TestTroubleOnTheWayToTheAPIServer(t *testing.T) {
	t.Parallel()
	creates := func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs")
	}
	for name, tc := range map[string]struct {
		reason string
		// trouble comes in the way of the first requests that create a Job.
		trouble func(t *testing.T, w http.ResponseWriter, r *http.Request, next http.Handler)
	}{
		"Unavailable": {
			reason: "an API server that starts says so",
			trouble: func(_ *testing.T, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.WriteHeader(http.StatusServiceUnavailable)
			},
		},
		"TooManyRequests": {
			reason: "an API server that has no time says so",
			trouble: func(_ *testing.T, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.WriteHeader(http.StatusTooManyRequests)
			},
		},
		"RequestLost": {
			reason:  "an API server that ends says nothing",
			trouble: func(t *testing.T, w http.ResponseWriter, _ *http.Request, _ http.Handler) { t.Helper(); drop(t, w) },
		},
		"AnswerLost": {
			reason: "a request that was served may look lost, and must not be served twice",
			trouble: func(t *testing.T, w http.ResponseWriter, r *http.Request, next http.Handler) {
				t.Helper()
				next.ServeHTTP(httptest.NewRecorder(), r)
				drop(t, w)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			var requests atomic.Int32
			launcher := behind(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if creates(r) && requests.Add(1) <= 2 {
					tc.trouble(t, w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
			release := aFullRelease(namespace)
			release.Jobs, release.Supporting = release.Jobs[1:], nil
			findings, plan := launcher.Validate(t.Context(), planned(newRun(), release))
			if diff := cmp.Diff([]finding.Finding(nil), findings); diff != "" {
				t.Fatalf("%s, but validation gives up (-want, +got):\n%s", tc.reason, diff)
			}
			requests.Store(0)
			create(t, launcher, plan)
			jobs, err := api.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(jobs.Items) != 1 {
				t.Errorf("%s: want one Job, there are %d: %v", tc.reason, len(jobs.Items), err)
			}
		})
	}
}
