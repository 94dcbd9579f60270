package lease_test

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
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

func TestTakeOverFromKilledHolder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		skew   time.Duration
	}{
		"RightTime": {reason: "a lease that is not renewed expires"},
		"Ahead":     {reason: "a clock of the holder that is ahead does not extend the lease", skew: time.Hour},
		"Behind":    {reason: "the expiry depends on the versions of the lease, not on its times", skew: -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			first := killed(t, intent, aResult("Etcd.Disk"))
			editLease(t, intent, func(lease *coordinationv1.Lease) {
				skewed := metav1.NewMicroTime(time.Now().Add(tc.skew))
				lease.Spec.RenewTime = &skewed
			})
			stores := []*runs{newRuns(api), newRuns(api)}
			var busy *lease.BusyError
			if _, err := stores[0].Begin(t.Context(), again(intent), "early"); !errors.As(err, &busy) || busy.ID != intent.ID {
				t.Fatalf("%s, but not at once: got %v", tc.reason, err)
			}
			var processes sync.WaitGroup
			holders := make(chan *lease.Held, len(stores))
			for _, store := range stores {
				processes.Go(func() {
					last, err := store.Follow(t.Context(), intent.ID, func(record.Record) {})
					if !errors.Is(err, lease.ErrAbandoned) && !errors.Is(err, context.Canceled) {
						t.Errorf("%s, but Follow returns %v", tc.reason, err)
					}
					wantResults(t, "results are returned with the error", last.Results, "Etcd.Disk")
				})
			}
			processes.Wait()
			for _, store := range stores {
				processes.Go(func() {
					held, err := store.Begin(t.Context(), again(intent), "next")
					if err == nil {
						holders <- held
					} else if !errors.As(err, new(*lease.BusyError)) {
						t.Errorf("want one new holder and a BusyError for the other, got %v", err)
					}
				})
			}
			processes.Wait()
			close(holders)
			if len(holders) != 1 {
				t.Fatalf("%d processes took the run over, want one", len(holders))
			}
			second := <-holders
			if !second.Resumed() {
				t.Error("want a resumed run")
			}
			if diff := cmp.Diff(get(t, intent.ID).Intent, intent); diff != "" {
				t.Errorf("intent (-want +got):\n%s", diff)
			}
			if !second.Record().StartTime.Equal(first.Record().StartTime) {
				t.Errorf("the start moved from %s to %s", first.Record().StartTime, second.Record().StartTime)
			}
			wantResults(t, "results are kept", second.Record().Results, "Etcd.Disk")
			if off := time.Until(second.Now()).Abs(); off > time.Minute { // this machine's clock is the API server's
				t.Errorf("the clock of the cluster is off by %s", off)
			}
			second.Put(aResult("Network.Routes"))
			finish(t, second)
			wantResults(t, "results of both holders", get(t, intent.ID).Results, "Etcd.Disk", "Network.Routes")
		})
	}
}

// A holder that was disconnected for a long time continues.
func TestFormerHolder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		act    func(t *testing.T, former *lease.Held) error
	}{
		"Holds": {reason: "the lease belongs to the new holder", act: func(t *testing.T, former *lease.Held) error {
			t.Helper()
			holding, release := former.Hold(t.Context())
			defer release()
			<-holding.Done()
			return context.Cause(holding)
		}},
		"Writes": {reason: "the write conflicts before the lease is read", act: func(t *testing.T, former *lease.Held) error {
			t.Helper()
			return former.Detach(t.Context())
		}},
		"Finishes": {reason: "only the new holder may end the run", act: func(t *testing.T, former *lease.Held) error {
			t.Helper()
			return former.Finish(t.Context(), record.Ending{Phase: record.Complete, Verdict: ready(), Report: []byte(`{}`)})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			former := killed(t, intent)
			store := newRuns(api)
			awaitAbandoned(t, store, intent.ID)
			holder := begin(t, store, intent)
			before := getMap(t, headName(intent.ID))
			former.Put(aResult("Late.Check"))
			if err := tc.act(t, former); !errors.Is(err, recordstore.ErrTakenOver) {
				t.Errorf("%s, but got %v", tc.reason, err)
			}
			former.Put(aResult("Later.Check"))
			for _, err := range []error{
				former.Detach(t.Context()),
				former.Finish(t.Context(), record.Ending{Phase: record.Complete, Verdict: ready()}),
			} {
				if err == nil {
					t.Errorf("%s, but the former holder can end the run", tc.reason)
				}
			}
			if diff := cmp.Diff(before, getMap(t, headName(intent.ID))); diff != "" {
				t.Errorf("%s, but the record changed:\n%s", tc.reason, diff)
			}
			if got := get(t, intent.ID); got.Holder != "tester" || got.Phase != record.Running {
				t.Errorf("%s, but the holder changed: %+v", tc.reason, got)
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
		// before prepares the run; it returns a function that returns its holder.
		before func(t *testing.T, intent record.Intent) func() *lease.Held
	}{
		"Held": {reason: "the context of the holder is canceled", before: func(t *testing.T, intent record.Intent) func() *lease.Held {
			t.Helper()
			held := begin(t, newRuns(api, lease.Duration(3*time.Second)), intent)
			holding, release := held.Hold(t.Context())
			t.Cleanup(release)
			return func() *lease.Held { <-holding.Done(); return held }
		}},
		"Detached": {reason: "the context of the next holder is canceled", before: func(t *testing.T, intent record.Intent) func() *lease.Held {
			t.Helper()
			if err := begin(t, newRuns(api), intent).Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			return func() *lease.Held { return begin(t, newRuns(api), again(intent)) }
		}},
		"Killed": {reason: "the context of the next holder is canceled", before: func(t *testing.T, intent record.Intent) func() *lease.Held {
			t.Helper()
			killed(t, intent)
			store := newRuns(api)
			return func() *lease.Held { awaitAbandoned(t, store, intent.ID); return begin(t, store, intent) }
		}},
		"LeaseGone": {reason: "the cancellation creates a missing lease", before: func(t *testing.T, intent record.Intent) func() *lease.Held {
			t.Helper()
			killed(t, intent)
			deleteLease(t, intent)
			return func() *lease.Held { return begin(t, newRuns(api), again(intent)) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			holder := tc.before(t, intent)
			if err := newRuns(api).Cancel(t.Context(), intent.ID[:13]); err != nil {
				t.Fatal(err)
			}
			held := holder()
			holding, release := held.Hold(t.Context())
			<-holding.Done()
			if cause := context.Cause(holding); held.Record().ID != intent.ID || !errors.Is(cause, lease.ErrCanceled) {
				t.Errorf("%s, but run %s ends with %v", tc.reason, held.Record().ID, cause)
			}
			held.Put(aResult("Etcd.Disk")) // a canceled run is still held
			if err := held.Finish(t.Context(), record.Ending{Phase: record.Canceled}); err != nil {
				t.Fatal(err)
			}
			release()
			got := get(t, intent.ID)
			wantResults(t, tc.reason, got.Results, "Etcd.Disk")
			if got.Phase != record.Canceled || got.CompletionTime.IsZero() || got.Report != nil {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			var ended *lease.NotRunningError
			if err := newRuns(api).Cancel(t.Context(), intent.ID); !errors.As(err, &ended) || ended.Phase != record.Canceled || ended.Error() == "" {
				t.Errorf("want NotRunningError, got %v", err)
			}
			wantNoLease(t, intent)
			next := begin(t, newRuns(api), again(intent))
			if next.Resumed() {
				t.Error("a canceled run was resumed")
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

// The lease was deleted by another client.
func TestDeletedLease(t *testing.T) {
	t.Parallel()
	t.Run("HolderAlive", func(t *testing.T) {
		t.Parallel()
		intent := newIntent()
		held := begin(t, quick(), intent)
		deleteLease(t, intent)
		leases, err := api.CoordinationV1().Leases(record.Namespace).Watch(t.Context(),
			metav1.ListOptions{FieldSelector: "metadata.name=" + leaseName(intent)})
		if err != nil {
			t.Fatal(err)
		}
		defer leases.Stop()
		_, release := held.Hold(t.Context())
		defer release()
		for event := range leases.ResultChan() {
			if event.Type == "ADDED" {
				break
			}
		}
		if got := get(t, intent.ID); got.Holder != "tester" {
			t.Errorf("the holder is lost: %+v", got)
		}
		finish(t, held)
		wantNoLease(t, intent)
	})
	t.Run("HolderKilled", func(t *testing.T) {
		t.Parallel()
		intent := newIntent()
		killed(t, intent, aResult("Etcd.Disk"))
		deleteLease(t, intent)
		awaitAbandoned(t, newRuns(api), intent.ID)
		next := begin(t, newRuns(api), again(intent))
		if next.Record().ID != intent.ID || !next.Resumed() {
			t.Errorf("want run %s resumed, got %s", intent.ID, next.Record().ID)
		}
		wantResults(t, "results are kept", next.Record().Results, "Etcd.Disk")
		finish(t, next)
	})
	t.Run("Unreadable", func(t *testing.T) {
		t.Parallel()
		intent := newIntent()
		killed(t, intent)
		editLease(t, intent, func(lease *coordinationv1.Lease) { lease.Annotations, lease.Labels = nil, nil })
		next := begin(t, newRuns(api), again(intent))
		if next.Record().ID != intent.ID || !next.Resumed() {
			t.Errorf("want run %s resumed, got %s", intent.ID, next.Record().ID)
		}
		finish(t, next)
	})
}

// gate passes requests and watches on while it is open.
type gate struct {
	mutex sync.Mutex
	// open is closed while the gate is open.
	open   chan struct{}
	bodies []io.Closer
	// cut closes connections instead of blocking them.
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

func (g *gate) handle(r *http.Request, next http.RoundTripper) (*http.Response, error) {
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

// gated is a response body that blocks while its gate is closed.
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

// Without a connection to the API server a lease must not expire.
func TestDisconnectedFollower(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		cut    bool
	}{
		"Refused": {reason: "the API server restarts", cut: true},
		"Hangs":   {reason: "the connection hangs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			held := begin(t, newRuns(api, lease.Duration(3*time.Second)), intent)
			_, release := held.Hold(t.Context())
			defer release()
			network := newGate(tc.cut)
			following, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				var once sync.Once
				_, err := newRuns(through(t, network.handle)).Follow(t.Context(), intent.ID,
					func(record.Record) { once.Do(func() { close(following) }) })
				ended <- err
			}()
			<-following
			network.shut()
			// Without renewals the lease would expire twice during this time.
			renewals, err := api.CoordinationV1().Leases(record.Namespace).Watch(t.Context(),
				metav1.ListOptions{FieldSelector: "metadata.name=" + leaseName(intent)})
			if err != nil {
				t.Fatal(err)
			}
			defer renewals.Stop()
			for range 7 {
				select {
				case <-renewals.ResultChan():
				case err := <-ended:
					t.Fatalf("%s, but Follow returned: %v", tc.reason, err)
				}
			}
			close(network.state())
			finish(t, held)
			if err := <-ended; err != nil {
				t.Errorf("%s, but Follow of the ended run returned %v", tc.reason, err)
			}
		})
	}
}

// A watch may be interrupted at any time, and its resourceVersion may expire.
func TestInterruptedWatches(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, newRuns(api), intent)
	_, release := held.Hold(t.Context())
	defer release()
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
	got, err := newRuns(client).Follow(t.Context(), intent.ID, func(r record.Record) {
		if len(r.Results) == 1 {
			once.Do(func() { finish(t, held) })
		}
	})
	if err != nil || got.Phase != record.Complete {
		t.Errorf("want the ended run, got %v: %+v", err, got)
	}
}

// A run without a record can be taken over.
func TestKilledBetweenLeaseAndRecord(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	killed(t, intent)
	if err := api.CoreV1().ConfigMaps(record.Namespace).Delete(t.Context(), headName(intent.ID), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	store := newRuns(api)
	if last := awaitAbandoned(t, store, intent.ID); last.ID != intent.ID || last.Phase != "" {
		t.Errorf("want a record with only the ID: %+v", last)
	}
	next := begin(t, store, again(intent))
	if next.Record().ID != intent.ID || next.Record().StartTime.IsZero() || !cmp.Equal(next.Record().Checks, intent.Checks) {
		t.Errorf("want the run to begin, got %+v", next.Record())
	}
	finish(t, next)
	if got := get(t, intent.ID); got.Phase != record.Complete {
		t.Errorf("%+v", got)
	}
}

func TestOtherSelection(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, newRuns(api), intent)
	other := again(intent)
	other.Selection = "jobs=etcd"
	var selection *record.SelectionError
	if _, err := newRuns(api).Begin(t.Context(), other, "tester"); !errors.As(err, &selection) || selection.ID != intent.ID ||
		selection.Selection != intent.Selection {
		t.Errorf("want a SelectionError, got %v", err)
	}
	finish(t, held)
	held = begin(t, newRuns(api), other)
	finish(t, held)
}

func TestOtherDigestWithSamePrefix(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, newRuns(api), intent)
	other := again(intent)
	other.Target.Image = other.Target.Image[:len(other.Target.Image)-40] + strings.Repeat("0", 40)
	if _, err := newRuns(api).Begin(t.Context(), other, "tester"); err == nil {
		t.Error("want an error for another release")
	}
	finish(t, held)
	if _, found, err := newRuns(api).Latest(t.Context(), other); found || err != nil {
		t.Errorf("want no latest run of another release: %v", err)
	}
}
