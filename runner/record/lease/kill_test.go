package lease_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/test/transport"
)

// killer cancels the context of a process at one of its writes, before the
// request is served or before its response is received.
type killer struct {
	at    int
	after bool
	kill  context.CancelFunc

	mutex  sync.Mutex
	writes []string
}

func (e *killer) handle(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/configmaps/") { // of other runs
		return next.RoundTrip(r)
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if len(e.writes) > e.at {
		return nil, errors.New("a killed process sends a request")
	}
	e.writes = append(e.writes, r.Method+" "+r.URL.Path[strings.Index(r.URL.Path, record.Namespace)+len(record.Namespace)+1:])
	if len(e.writes) <= e.at {
		return next.RoundTrip(r)
	}
	if e.after {
		if response, err := next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context()))); err == nil {
			_ = response.Body.Close()
		}
	}
	e.kill()
	return nil, errors.New("killed")
}

// performRun performs all writes of a run whose results and report need parts.
func performRun(ctx context.Context, store *runs, intent record.Intent) error {
	held, err := store.Begin(ctx, intent, "tester")
	if err != nil {
		return err
	}
	in := map[string]bool{}
	for _, result := range held.Record().Results {
		in[result.Check] = true
	}
	for i := range 100 {
		if result := incompressible(i, 4096); !in[result.Check] {
			held.Put(result)
		}
	}
	report := []byte(incompressible(0, 400<<10).Findings[0].Message)
	return held.Finish(ctx, record.Ending{Phase: record.Complete, Verdict: ready(), Report: report})
}

// A run that is killed at any of its writes is completed by the next process.
func TestKilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	// The lease, the header and its MAC, a part of results, two of the report, the end,
	// the lease.
	const writes = 8
	finish(t, begin(t, newRuns(api), newIntent())) // the key exists
	for at := range writes + 1 {
		for _, after := range []bool{false, true} {
			if at > 0 && !after {
				continue // the objects are those after the previous write
			}
			t.Run(fmt.Sprintf("%d,served=%v", at, after), func(t *testing.T) {
				t.Parallel()
				intent := newIntent()
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				killing := &killer{at: at, after: after, kill: kill}
				err := performRun(ctx, newRuns(through(t, killing.handle), lease.Duration(time.Second)), intent)
				if at == writes {
					if err != nil || len(killing.writes) != writes {
						t.Fatalf("want an end within %d writes, got %v after %q", writes, err, killing.writes)
					}
					return
				}
				last := killing.writes[len(killing.writes)-1]
				if err == nil {
					t.Fatalf("want an error after %s", last)
				}
				ended := at > 6 || at == 6 && after
				if got, err := newRuns(api).Get(t.Context(), intent.ID); err == nil && (got.Phase != record.Running) != ended {
					t.Errorf("killed at %s, the run has phase %s", last, got.Phase)
				}
				continueRun(t, intent, ended)
			})
		}
	}
}

// continueRun continues the run as the next process does.
func continueRun(t *testing.T, killed record.Intent, ended bool) {
	t.Helper()
	store, next := newRuns(api), again(killed)
	err := performRun(t.Context(), store, next)
	if busy := new(lease.BusyError); errors.As(err, &busy) {
		awaitAbandoned(t, store, busy.ID)
		err = performRun(t.Context(), store, next)
	}
	if err != nil {
		t.Fatalf("the run cannot be continued: %v", err)
	}
	wantNoLease(t, killed)
	heads, err := api.CoreV1().ConfigMaps(record.Namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: "preflight.openshift.io/release=" + strings.TrimPrefix(leaseName(killed), "preflight-"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[bool]int{false: 1, true: 2}[ended]; len(heads.Items) != want {
		t.Errorf("%d recorded runs, want %d", len(heads.Items), want)
	}
	for _, head := range heads.Items {
		got := get(t, head.Labels["preflight.openshift.io/record"])
		if got.Phase != record.Complete || len(got.Results) != 100 || len(got.Report) != 400<<10 {
			t.Errorf("run %s has phase %s, %d results and a report of %d bytes", got.ID, got.Phase, len(got.Results), len(got.Report))
		}
	}
}

// Failing requests must not change the record.
func TestFailureOfEveryWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		failure transport.Func
		served  bool
	}{
		"Etcd": {reason: "etcd has no leader temporarily", failure: status(http.StatusInternalServerError)},
		"ResponseLost": {
			reason: "a lost response must not be mistaken for a change by another client", served: true,
			failure: func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mutex sync.Mutex
			seen := map[string]bool{}
			store := newRuns(through(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				mutex.Lock()
				request := fmt.Sprintf("%s %s %d", r.Method, r.URL.Path, r.ContentLength)
				first := !seen[request]
				seen[request] = true
				mutex.Unlock()
				if !first || r.Method == http.MethodGet && tc.served {
					return next.RoundTrip(r)
				}
				if tc.served {
					if response, err := next.RoundTrip(r); err == nil {
						_ = response.Body.Close()
					}
				}
				return tc.failure(r)
			}))
			intent := newIntent()
			if err := performRun(t.Context(), store, intent); err != nil {
				t.Fatalf("%s, but the run ended with %v", tc.reason, err)
			}
			wantNoLease(t, intent)
			if got := get(t, intent.ID); got.Phase != record.Complete || len(got.Results) != 100 || len(got.Report) != 400<<10 {
				t.Errorf("%s, but run %s has phase %s, %d results and a report of %d bytes", tc.reason, got.ID, got.Phase, len(got.Results),
					len(got.Report))
			}
			resumed := newIntent()
			killed(t, resumed, aResult("Etcd.Disk"))
			awaitAbandoned(t, store, resumed.ID)
			next := begin(t, store, again(resumed))
			if !next.Resumed() {
				t.Errorf("%s, but a new run was begun", tc.reason)
			}
			wantResults(t, tc.reason, next.Record().Results, "Etcd.Disk")
			if err := next.Detach(t.Context()); err != nil {
				t.Errorf("%s, but the run cannot be released: %v", tc.reason, err)
			}
			finish(t, begin(t, store, again(resumed)))
		})
	}
}

// status responds like an API server.
func status(code int) transport.Func {
	return func(r *http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		recorder.Header().Set("Content-Type", "application/json")
		recorder.WriteHeader(code)
		_, _ = fmt.Fprintf(recorder, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":"not now"}`, code)
		response := recorder.Result()
		response.Request = r
		return response, nil
	}
}

// A rejection by the API server is returned, and no lease is left.
func TestRejections(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	store := newRuns(through(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps") {
			return status(http.StatusForbidden)(r) // like an exceeded quota
		}
		return next.RoundTrip(r)
	}))
	if _, err := store.Begin(t.Context(), intent, "tester"); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("want the error of the API server, got %v", err)
	}
	wantNoLease(t, intent)
	held := begin(t, newRuns(api), again(intent))
	if diff := cmp.Diff(false, held.Resumed()); diff != "" {
		t.Error("want no run")
	}
	finish(t, held)
}
