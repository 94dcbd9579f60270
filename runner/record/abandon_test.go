package record_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/record"
)

func TestARunWhoseHolderWasKilled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		skew   time.Duration
	}{
		"RightTime": {reason: "nobody renews the lease"},
		"Ahead":     {reason: "a lease does not hold because the holder's clock was ahead", skew: time.Hour},
		"Behind":    {reason: "a lease is judged by its versions", skew: -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			first := killed(t, intent, aResult("Etcd.Disk"))
			editLease(t, intent, func(lease *coordinationv1.Lease) {
				skewed := metav1.NewMicroTime(time.Now().Add(tc.skew))
				lease.Spec.RenewTime = &skewed
			})
			stores := []*record.Store{record.New(api), record.New(api)}
			var busy *record.BusyError
			if _, err := stores[0].Begin(t.Context(), again(intent), "hasty"); !errors.As(err, &busy) || busy.ID != intent.ID {
				t.Fatalf("%s, which takes a time to find out, but got %v", tc.reason, err)
			}
			var takers sync.WaitGroup
			taken := make(chan *record.Held, len(stores))
			for _, store := range stores {
				takers.Go(func() {
					last, err := store.Follow(t.Context(), intent.ID, func(record.Record) {})
					if !errors.Is(err, record.ErrAbandoned) && !errors.Is(err, context.Canceled) {
						t.Errorf("%s, but following it ends with %v", tc.reason, err)
					}
					wantResults(t, "what is in is told with the error", last.Results, "Etcd.Disk")
				})
			}
			takers.Wait()
			for _, store := range stores {
				takers.Go(func() {
					held, err := store.Begin(t.Context(), again(intent), "taker")
					if err == nil {
						taken <- held
					} else if !errors.As(err, new(*record.BusyError)) {
						t.Errorf("want one taker, and the other to be told so, got %v", err)
					}
				})
			}
			takers.Wait()
			close(taken)
			if len(taken) != 1 {
				t.Fatalf("%d took the run over, want one", len(taken))
			}
			second := <-taken
			if !second.Resumed() {
				t.Error("there may be Jobs, and nobody is told")
			}
			if diff := cmp.Diff(get(t, intent.ID).Intent, intent); diff != "" {
				t.Errorf("the intent is another (-want +got):\n%s", diff)
			}
			if !second.Record().StartTime.Equal(first.Record().StartTime) {
				t.Errorf("the start moved from %s to %s", first.Record().StartTime, second.Record().StartTime)
			}
			wantResults(t, "what was in stays in", second.Record().Results, "Etcd.Disk")
			if off := time.Until(second.Now()).Abs(); off > time.Minute { // this machine's clock is the API server's
				t.Errorf("the cluster's clock is taken for one that is off by %s", off)
			}
			second.Put(aResult("Network.Routes"))
			finish(t, second)
			wantResults(t, "both have results", get(t, intent.ID).Results, "Etcd.Disk", "Network.Routes")
		})
	}
}

// A holder that was cut off for long comes back.
func TestTheFormerHolder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		act    func(t *testing.T, former *record.Held) error
	}{
		"Holds": {reason: "it meets the new one's lease", act: func(t *testing.T, former *record.Held) error {
			t.Helper()
			holding, leave := former.Hold(t.Context())
			defer leave()
			<-holding.Done()
			return context.Cause(holding)
		}},
		"Writes": {reason: "it meets the new one's record before it has looked at the lease", act: func(t *testing.T, former *record.Held) error {
			t.Helper()
			return former.Detach(t.Context())
		}},
		"Finishes": {reason: "the end is the new one's to tell", act: func(t *testing.T, former *record.Held) error {
			t.Helper()
			return former.Finish(t.Context(), record.Ending{Phase: record.Complete, Decision: "Ready", Report: []byte(`{}`)})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			former := killed(t, intent)
			store := record.New(api)
			seeDead(t, store, intent.ID)
			holder := begin(t, store, intent)
			before := getMap(t, headName(intent.ID))
			former.Put(aResult("Late.Check"))
			if err := tc.act(t, former); !errors.Is(err, record.ErrTakenOver) {
				t.Errorf("%s, but got %v", tc.reason, err)
			}
			former.Put(aResult("Later.Check"))
			for _, err := range []error{former.Detach(t.Context()), former.Finish(t.Context(), record.Ending{Phase: record.Complete, Decision: "Ready"})} {
				if err == nil {
					t.Errorf("%s, and may still end it", tc.reason)
				}
			}
			if diff := cmp.Diff(before, getMap(t, headName(intent.ID))); diff != "" {
				t.Errorf("%s, and changes the record:\n%s", tc.reason, diff)
			}
			if got := get(t, intent.ID); got.Holder != "tester" || got.Phase != record.Running {
				t.Errorf("%s, and changes who holds it: %+v", tc.reason, got)
			}
			finish(t, holder)
			wantResults(t, tc.reason, get(t, intent.ID).Results)
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		// before is what happens before it is canceled; it returns who is asked.
		before func(t *testing.T, intent record.Intent) func() *record.Held
	}{
		"Held": {reason: "the holder is told", before: func(t *testing.T, intent record.Intent) func() *record.Held {
			t.Helper()
			held := begin(t, record.New(api, record.LeaseDuration(3*time.Second)), intent)
			holding, leave := held.Hold(t.Context())
			t.Cleanup(leave)
			return func() *record.Held { <-holding.Done(); return held }
		}},
		"Detached": {reason: "whoever takes it over is told", before: func(t *testing.T, intent record.Intent) func() *record.Held {
			t.Helper()
			if err := begin(t, record.New(api), intent).Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			return func() *record.Held { return begin(t, record.New(api), again(intent)) }
		}},
		"Killed": {reason: "whoever takes it over is told", before: func(t *testing.T, intent record.Intent) func() *record.Held {
			t.Helper()
			killed(t, intent)
			store := record.New(api)
			return func() *record.Held { seeDead(t, store, intent.ID); return begin(t, store, intent) }
		}},
		"LeaseGone": {reason: "without a lease it is remembered all the same", before: func(t *testing.T, intent record.Intent) func() *record.Held {
			t.Helper()
			killed(t, intent)
			deleteLease(t, intent)
			return func() *record.Held { return begin(t, record.New(api), again(intent)) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			asked := tc.before(t, intent)
			if err := record.New(api).Cancel(t.Context(), intent.ID[:13]); err != nil {
				t.Fatal(err)
			}
			held := asked()
			holding, leave := held.Hold(t.Context())
			<-holding.Done()
			if cause := context.Cause(holding); held.Record().ID != intent.ID || !errors.Is(cause, record.ErrCanceled) {
				t.Errorf("%s, but run %s ends with %v", tc.reason, held.Record().ID, cause)
			}
			held.Put(aResult("Etcd.Disk")) // it is still held
			if err := held.Finish(t.Context(), record.Ending{Phase: record.Canceled}); err != nil {
				t.Fatal(err)
			}
			leave()
			got := get(t, intent.ID)
			wantResults(t, tc.reason, got.Results, "Etcd.Disk")
			if got.Phase != record.Canceled || got.CompletionTime.IsZero() || got.Report != nil {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			var ended *record.NotRunningError
			if err := record.New(api).Cancel(t.Context(), intent.ID); !errors.As(err, &ended) || ended.Phase != record.Canceled || ended.Error() == "" {
				t.Errorf("want that it has ended, got %v", err)
			}
			wantNoLease(t, intent)
			next := begin(t, record.New(api), again(intent))
			if next.Resumed() {
				t.Error("what was canceled goes on")
			}
			finish(t, next)
		})
	}
}

func deleteLease(t *testing.T, intent record.Intent) {
	t.Helper()
	if err := api.CoordinationV1().Leases(record.Namespace).Delete(t.Context(), leaseName(intent), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The lease was deleted by somebody.
func TestALeaseThatIsGone(t *testing.T) {
	t.Parallel()
	t.Run("HolderAlive", func(t *testing.T) {
		t.Parallel()
		intent := newIntent()
		held := begin(t, quick(), intent)
		deleteLease(t, intent)
		leases, err := api.CoordinationV1().Leases(record.Namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + leaseName(intent)})
		if err != nil {
			t.Fatal(err)
		}
		defer leases.Stop()
		_, leave := held.Hold(t.Context())
		defer leave()
		for event := range leases.ResultChan() {
			if event.Type == "ADDED" {
				break
			}
		}
		if got := get(t, intent.ID); got.Holder != "tester" {
			t.Errorf("who renews it does not hold it any more: %+v", got)
		}
		finish(t, held)
		wantNoLease(t, intent)
	})
	t.Run("HolderKilled", func(t *testing.T) {
		t.Parallel()
		intent := newIntent()
		killed(t, intent, aResult("Etcd.Disk"))
		deleteLease(t, intent)
		seeDead(t, record.New(api), intent.ID)
		taker := begin(t, record.New(api), again(intent))
		if taker.Record().ID != intent.ID || !taker.Resumed() {
			t.Errorf("run %s was forgotten, and %s begun", intent.ID, taker.Record().ID)
		}
		wantResults(t, "what was in stays in", taker.Record().Results, "Etcd.Disk")
		finish(t, taker)
	})
	t.Run("Unreadable", func(t *testing.T) {
		t.Parallel()
		intent := newIntent()
		killed(t, intent)
		editLease(t, intent, func(lease *coordinationv1.Lease) { lease.Annotations, lease.Labels = nil, nil })
		taker := begin(t, record.New(api), again(intent))
		if taker.Record().ID != intent.ID || !taker.Resumed() {
			t.Errorf("run %s was forgotten, and %s begun", intent.ID, taker.Record().ID)
		}
		finish(t, taker)
	})
}

// gate lets requests and what is watched through while it is open.
type gate struct {
	mutex sync.Mutex
	// open is closed while the gate is open.
	open   chan struct{}
	bodies []io.Closer
	// cut has what is closed end at once, instead of hanging.
	cut bool
}

func newGate(cut bool) *gate {
	open := make(chan struct{})
	close(open)
	return &gate{open: open, cut: cut}
}

func (g *gate) state() (open chan struct{}) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.open
}

func (g *gate) shut() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.open = make(chan struct{})
	for _, body := range g.bodies {
		if g.cut {
			_ = body.Close()
		}
	}
	g.bodies = nil
}

func (g *gate) meet(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	open := g.state()
	select {
	case <-open:
	default:
		if g.cut {
			return nil, syscall.ECONNREFUSED
		}
		select {
		case <-open:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	response, err := next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		body := response.Body
		g.bodies = append(g.bodies, body)
		response.Body = gated{body, g}
	}
	return response, err
}

// gated is an answer that comes through a gate.
type gated struct {
	io.ReadCloser
	gate *gate
}

// Read implements io.Reader.
func (g gated) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	if open := g.gate.state(); !g.gate.cut {
		<-open
	}
	return n, err
}

// Whoever cannot see the API server cannot tell whether a lease was renewed.
func TestAFollowerThatIsCutOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		cut    bool
	}{
		"Refused": {reason: "the API server restarts", cut: true},
		"Hangs":   {reason: "nothing comes, and nothing ends"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			held := begin(t, record.New(api, record.LeaseDuration(3*time.Second)), intent)
			_, leave := held.Hold(t.Context())
			defer leave()
			way := newGate(tc.cut)
			following, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				var once sync.Once
				_, err := record.New(through(t, way.meet)).Follow(t.Context(), intent.ID, func(record.Record) { once.Do(func() { close(following) }) })
				ended <- err
			}()
			<-following
			way.shut()
			// Meanwhile the lease would be over twice, were it not renewed.
			renewals, err := api.CoordinationV1().Leases(record.Namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + leaseName(intent)})
			if err != nil {
				t.Fatal(err)
			}
			defer renewals.Stop()
			for range 7 {
				select {
				case <-renewals.ResultChan():
				case err := <-ended:
					t.Fatalf("%s, and the follower takes the run for abandoned: %v", tc.reason, err)
				}
			}
			close(way.state())
			finish(t, held)
			if err := <-ended; err != nil {
				t.Errorf("%s, and then the run has ended, but following it ends with %v", tc.reason, err)
			}
		})
	}
}

// What is watched may be cut at any time, and be too old then.
func TestWatchesThatAreCut(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, record.New(api), intent)
	_, leave := held.Hold(t.Context())
	defer leave()
	var watches sync.Map
	client := through(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.URL.Query().Get("watch") != "" {
			if _, again := watches.LoadOrStore(r.URL.Path, true); !again {
				body := `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}}`
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(strings.NewReader(body)), Request: r,
				}, nil
			}
		}
		return next.RoundTrip(r)
	})
	held.Put(aResult("Etcd.Disk"))
	var once sync.Once
	got, err := record.New(client).Follow(t.Context(), intent.ID, func(r record.Record) {
		if len(r.Results) == 1 {
			once.Do(func() { finish(t, held) })
		}
	})
	if err != nil || got.Phase != record.Complete {
		t.Errorf("a watch that is cut is begun again, but following ends with %v: %+v", err, got)
	}
}

// Nobody holds a run of which not even the record was made.
func TestKilledBetweenLeaseAndRecord(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	killed(t, intent)
	if err := api.CoreV1().ConfigMaps(record.Namespace).Delete(t.Context(), headName(intent.ID), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	store := record.New(api)
	if last := seeDead(t, store, intent.ID); last.ID != intent.ID || last.Phase != "" {
		t.Errorf("nothing is known of it but its ID: %+v", last)
	}
	taker := begin(t, store, again(intent))
	if taker.Record().ID != intent.ID || taker.Record().StartTime.IsZero() || !cmp.Equal(taker.Record().Checks, intent.Checks) {
		t.Errorf("want the run to begin, got %+v", taker.Record())
	}
	finish(t, taker)
	if got := get(t, intent.ID); got.Phase != record.Complete {
		t.Errorf("%+v", got)
	}
}

func TestOtherSelection(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, record.New(api), intent)
	other := again(intent)
	other.Selection = "jobs=etcd"
	var selection *record.SelectionError
	if _, err := record.New(api).Begin(t.Context(), other, "tester"); !errors.As(err, &selection) || selection.ID != intent.ID || selection.Selection != intent.Selection {
		t.Errorf("want that the run in progress looks at something else, got %v", err)
	} else if !strings.Contains(err.Error(), "oc preflight cancel "+intent.ID) {
		t.Errorf("it does not say what to do: %v", err)
	}
	finish(t, held)
	held = begin(t, record.New(api), other)
	finish(t, held)
}

func TestOtherDigestOfTheSameBeginning(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, record.New(api), intent)
	other := again(intent)
	other.Target.Image = other.Target.Image[:len(other.Target.Image)-40] + strings.Repeat("0", 40)
	if _, err := record.New(api).Begin(t.Context(), other, "tester"); err == nil {
		t.Error("the results of one release would answer for another")
	}
	finish(t, held)
	if _, found, err := record.New(api).Latest(t.Context(), other); found || err != nil {
		t.Errorf("the latest of one release is that of another: %v", err)
	}
}
