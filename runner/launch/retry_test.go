package launch_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/test/cluster"
)

// behind returns a Launcher whose requests are handled by handle, which forwards them
// with next.
func behind(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, next http.Handler)) *process {
	t.Helper()
	proxy, err := cluster.ReverseProxy(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, proxy) }))
	t.Cleanup(server.Close)
	return newLauncher(t, &rest.Config{Host: server.URL, QPS: -1})
}

// drop closes the connection without a response.
func drop(t *testing.T, w http.ResponseWriter) {
	t.Helper()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		t.Error("the connection cannot be closed")
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

func TestFailingRequestsAreRetried(t *testing.T) {
	t.Parallel()
	creates := func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs")
	}
	for name, tc := range map[string]struct {
		reason string
		// fail handles the first requests that create a Job.
		fail func(t *testing.T, w http.ResponseWriter, r *http.Request, next http.Handler)
	}{
		"Unavailable": {
			reason: "a starting API server responds with 503",
			fail: func(_ *testing.T, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.WriteHeader(http.StatusServiceUnavailable)
			},
		},
		"TooManyRequests": {
			reason: "an overloaded API server responds with 429",
			fail: func(_ *testing.T, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.WriteHeader(http.StatusTooManyRequests)
			},
		},
		"RequestLost": {
			reason: "a terminating API server closes the connection",
			fail:   func(t *testing.T, w http.ResponseWriter, _ *http.Request, _ http.Handler) { t.Helper(); drop(t, w) },
		},
		"ResponseLost": {
			reason: "a request whose response was lost must not create a second Job",
			fail: func(t *testing.T, w http.ResponseWriter, r *http.Request, next http.Handler) {
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
					tc.fail(t, w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
			release := aFullRelease(namespace)
			release.Jobs, release.Supporting = release.Jobs[1:], nil
			findings, plan := launcher.Validate(t.Context(), releasetest.Plan(newRun(), release))
			if diff := cmp.Diff([]finding.Finding(nil), findings); diff != "" {
				t.Fatalf("%s, but validation fails (-want, +got):\n%s", tc.reason, diff)
			}
			requests.Store(0)
			create(t, launcher, plan)
			jobs, err := api.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(jobs.Items) != 1 {
				t.Errorf("%s: want one Job, got %d: %v", tc.reason, len(jobs.Items), err)
			}
		})
	}
}
