package record_test

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
)

// executioner kills a process, which is its context, at one of its writes:
// before it is served, or before its answer comes.
type executioner struct {
	at    int
	after bool
	kill  context.CancelFunc

	mutex  sync.Mutex
	writes []string
}

func (e *executioner) meet(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/configmaps/") { // which are of others
		return next.RoundTrip(r)
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if len(e.writes) > e.at {
		return nil, errors.New("a process that was killed asks for something")
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

// life is all that a run writes, with parts: results, and a report, that do not
// fit into its head.
func life(ctx context.Context, store *record.Store, intent record.Intent) error {
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
	return held.Finish(ctx, record.Ending{Phase: record.Complete, Decision: "Ready", Report: report})
}

// A run that is killed at any of its writes is ended by the next one.
func TestKilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	// A lease, a head, a part of results, two of the report, the end, the lease.
	const writes = 7
	for at := range writes + 1 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d,served=%v", at, after), func(t *testing.T) {
				t.Parallel()
				intent := newIntent()
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				death := &executioner{at: at, after: after, kill: kill}
				err := life(ctx, record.New(through(t, death.meet), record.LeaseDuration(time.Second)), intent)
				if at == writes {
					if err != nil || len(death.writes) != writes {
						t.Fatalf("want an end after %d writes, got %v after %q", writes, err, death.writes)
					}
					return
				}
				last := death.writes[len(death.writes)-1]
				if err == nil {
					t.Fatalf("it lives on after %s", last)
				}
				ended := at > 5 || at == 5 && after
				if got, err := record.New(api).Get(t.Context(), intent.ID); err == nil && (got.Phase != record.Running) != ended {
					t.Errorf("killed at %s, the run is %s", last, got.Phase)
				}
				goOn(t, intent, ended)
			})
		}
	}
}

// goOn does what the next start does.
func goOn(t *testing.T, killed record.Intent, ended bool) {
	t.Helper()
	store, next := record.New(api), again(killed)
	err := life(t.Context(), store, next)
	if busy := new(record.BusyError); errors.As(err, &busy) {
		seeDead(t, store, busy.ID)
		err = life(t.Context(), store, next)
	}
	if err != nil {
		t.Fatalf("the next one cannot go on: %v", err)
	}
	wantNoLease(t, killed)
	heads, err := api.CoreV1().ConfigMaps(record.Namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: "preflight.openshift.io/release=" + strings.TrimPrefix(leaseName(killed), "preflight-"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[bool]int{false: 1, true: 2}[ended]; len(heads.Items) != want {
		t.Errorf("%d runs are recorded, want %d", len(heads.Items), want)
	}
	for _, head := range heads.Items {
		got := get(t, head.Labels["preflight.openshift.io/record"])
		if got.Phase != record.Complete || len(got.Results) != 100 || len(got.Report) != 400<<10 {
			t.Errorf("run %s is %s, with %d results and a report of %d bytes", got.ID, got.Phase, len(got.Results), len(got.Report))
		}
	}
}

// Whatever comes between a run and the API server, the record is the same.
func TestTroubleAtEveryWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		trouble tripper
		served  bool
	}{
		"Etcd": {reason: "etcd has no leader for a moment", trouble: status(http.StatusInternalServerError)},
		"AnswerLost": {
			reason: "what was served looks lost, and is not somebody else's doing", served: true,
			trouble: func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mutex sync.Mutex
			met := map[string]bool{}
			store := record.New(through(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				mutex.Lock()
				request := fmt.Sprintf("%s %s %d", r.Method, r.URL.Path, r.ContentLength)
				first := !met[request]
				met[request] = true
				mutex.Unlock()
				if !first || r.Method == http.MethodGet && tc.served {
					return next.RoundTrip(r)
				}
				if tc.served {
					if response, err := next.RoundTrip(r); err == nil {
						_ = response.Body.Close()
					}
				}
				return tc.trouble(r)
			}))
			intent := newIntent()
			if err := life(t.Context(), store, intent); err != nil {
				t.Fatalf("%s, and the run ends with %v", tc.reason, err)
			}
			wantNoLease(t, intent)
			if got := get(t, intent.ID); got.Phase != record.Complete || len(got.Results) != 100 || len(got.Report) != 400<<10 {
				t.Errorf("%s, and run %s is %s, with %d results and a report of %d bytes", tc.reason, got.ID, got.Phase, len(got.Results), len(got.Report))
			}
			resumed := newIntent()
			killed(t, resumed, aResult("Etcd.Disk"))
			seeDead(t, store, resumed.ID)
			taker := begin(t, store, again(resumed))
			if !taker.Resumed() {
				t.Errorf("%s, and a run is begun anew", tc.reason)
			}
			wantResults(t, tc.reason, taker.Record().Results, "Etcd.Disk")
			if err := taker.Detach(t.Context()); err != nil {
				t.Errorf("%s, and the run cannot be given up: %v", tc.reason, err)
			}
			finish(t, begin(t, store, again(resumed)))
		})
	}
}

// status answers as an API server does.
func status(code int) tripper {
	return func(r *http.Request) (*http.Response, error) {
		answer := httptest.NewRecorder()
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(code)
		_, _ = fmt.Fprintf(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":"not now"}`, code)
		response := answer.Result()
		response.Request = r
		return response, nil
	}
}

// What the API server refuses for good is told, and nothing is left held.
func TestRefusals(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	store := record.New(through(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps") {
			return status(http.StatusForbidden)(r) // as a quota that is used up
		}
		return next.RoundTrip(r)
	}))
	if _, err := store.Begin(t.Context(), intent, "tester"); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("want what the API server says, got %v", err)
	}
	wantNoLease(t, intent)
	held := begin(t, record.New(api), again(intent))
	if diff := cmp.Diff(false, held.Resumed()); diff != "" {
		t.Error("nothing was begun")
	}
	finish(t, held)
}
