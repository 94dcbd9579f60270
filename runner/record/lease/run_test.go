package lease_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
)

// counter counts requests by verb and resource.
type counter struct {
	mutex  sync.Mutex
	counts map[string]int
}

func (c *counter) handle(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	path := strings.Split(r.URL.Path, "/"+record.Namespace+"/")
	c.mutex.Lock()
	c.counts[r.Method+" "+strings.SplitN(path[len(path)-1], "/", 2)[0]]++
	c.mutex.Unlock()
	return next.RoundTrip(r)
}

func (c *counter) all() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return maps.Clone(c.counts)
}

func TestRun(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	requests := &counter{counts: map[string]int{}}
	store := newRuns(through(t, requests.handle))
	held := begin(t, store, intent)
	if held.Resumed() {
		t.Error("a new run is resumed")
	}
	made := getMap(t, headName(intent.ID)).CreationTimestamp.UTC()
	want := record.Record{Intent: intent, Phase: record.Running, StartTime: made, Authentication: authentic()}
	if diff := cmp.Diff(want, held.Record()); diff != "" {
		t.Errorf("new run (-want +got):\n%s", diff)
	}

	holding, release := held.Hold(t.Context())
	held.Put(aResult("Network.Routes"))
	want.Holder, want.Results = "tester", []record.Result{aResult("Network.Routes")}
	await(t, intent.ID, func(r record.Record) bool { return cmp.Equal(want, r) })
	inProgress := get(t, intent.ID)
	if !inProgress.HolderExpiry.After(held.Now()) || inProgress.Abandoned(held.Now()) {
		t.Errorf("the Lease of a run that is held expires at %s, which is past", inProgress.HolderExpiry)
	}
	want.HolderExpiry = inProgress.HolderExpiry
	if diff := cmp.Diff(want, inProgress); diff != "" {
		t.Errorf("run in progress (-want +got):\n%s", diff)
	}

	held.Put(aResult("Etcd.Disk"))
	finish(t, held)
	release()
	if holding.Err() == nil {
		t.Error("the ended run is held")
	}
	got := get(t, intent.ID)
	if late := got.CompletionTime.Sub(held.Now()).Abs(); late > time.Minute || got.CompletionTime.Before(made) {
		t.Errorf("ended at %s, begun at %s", got.CompletionTime, made)
	}
	want = record.Record{
		Intent: intent, Phase: record.Complete, StartTime: made, CompletionTime: got.CompletionTime, Decision: "Ready",
		Authentication: authentic(),
		Results:        []record.Result{aResult("Etcd.Disk"), aResult("Network.Routes")},
		Report:         []byte(`{"kind":"PreflightReport"}`), Fingerprint: map[string]string{"nodes": "3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ended run (-want +got):\n%s", diff)
	}
	latest, found, err := store.Latest(t.Context(), intent)
	if diff := cmp.Diff(want, latest); diff != "" || !found || err != nil {
		t.Errorf("the latest of its release: %v %v (-want +got):\n%s", found, err, diff)
	}
	wantNoLease(t, intent)
	counts := requests.all()
	for request, most := range map[string]int{
		"POST leases": 1, "DELETE leases": 1, "PUT leases": 0, "GET leases": 0,
		// one PUT seals the new header; one GET before the beginning, three to prune, of the records and of the baselines
		// that stay, and for the latest
		"POST configmaps": 1, "PUT configmaps": 3, "GET configmaps": 4,
	} {
		if counts[request] > most {
			t.Errorf("%d × %s, want at most %d; all: %v", counts[request], request, most, counts)
		}
	}
	t.Logf("requests of a run: %v", counts)
}

// The summary is plain text for oc.
func TestRecordIsReadable(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, newRuns(api), intent)
	held.Put(aResult("Etcd.Disk"))
	finish(t, held)
	listed, err := api.CoreV1().ConfigMaps(record.Namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: "preflight.openshift.io/record=" + intent.ID,
	})
	if err != nil || len(listed.Items) != 1 {
		t.Fatalf("want one object with the label of the run, got %d: %v", len(listed.Items), err)
	}
	want := map[string]string{
		"preflight.openshift.io/record": intent.ID, "preflight.openshift.io/release": strings.TrimPrefix(leaseName(intent), "preflight-"),
		"preflight.openshift.io/phase": "Complete", "preflight.openshift.io/decision": "Ready",
		"preflight.openshift.io/requester": "selected",
	}
	if diff := cmp.Diff(want, listed.Items[0].Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	for _, line := range []string{
		"id: " + intent.ID, "phase: Complete", "decision: Ready", "from: 4.20.1", "to: 4.21.3", "expected: 2",
		"reported: 1", "requester: selected", "generation: 7",
	} {
		if !strings.Contains(listed.Items[0].Data["run.yaml"], line+"\n") {
			t.Errorf("missing %q in:\n%s", line, listed.Items[0].Data["run.yaml"])
		}
	}
}

func TestConcurrentBegin(t *testing.T) {
	t.Parallel()
	const starters = 16
	intent := newIntent()
	stores := []*runs{newRuns(api), newRuns(api)}
	var begun, busyIDs []string
	var mutex sync.Mutex
	var all sync.WaitGroup
	for i := range starters {
		all.Go(func() {
			held, err := stores[i%len(stores)].Begin(t.Context(), again(intent), "tester")
			var busy *lease.BusyError
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case err == nil:
				begun = append(begun, held.Record().ID)
			case errors.As(err, &busy) && busy.Holder == "tester":
				busyIDs = append(busyIDs, busy.ID)
			default:
				t.Errorf("want a run or a BusyError, got %v", err)
			}
		})
	}
	all.Wait()
	if len(begun) != 1 || len(busyIDs) != starters-1 {
		t.Fatalf("%d runs and %d BusyErrors, want 1 and %d", len(begun), len(busyIDs), starters-1)
	}
	for _, id := range busyIDs {
		if id != begun[0] {
			t.Errorf("BusyError for run %s, want %s", id, begun[0])
		}
	}
	heads, err := api.CoreV1().ConfigMaps(record.Namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: "preflight.openshift.io/release=" + strings.TrimPrefix(leaseName(intent), "preflight-"),
	})
	if err != nil || len(heads.Items) != 1 {
		t.Errorf("want one record, got %d: %v", len(heads.Items), err)
	}
}

func TestDetach(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	first := begin(t, newRuns(api), intent)
	_, release := first.Hold(t.Context())
	first.Put(aResult("Etcd.Disk"))
	if err := first.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	release()
	if detached := get(t, intent.ID); detached.Phase != record.Running || detached.Holder != "" {
		t.Errorf("want a run in progress without a holder, got phase %s, holder %q", detached.Phase, detached.Holder)
	}
	if err := first.Finish(t.Context(), record.Ending{Phase: record.Complete, Verdict: ready()}); err == nil {
		t.Error("a released run was ended")
	}
	second := begin(t, newRuns(api), again(intent))
	if !second.Resumed() || second.Record().ID != intent.ID || !second.Record().StartTime.Equal(first.Record().StartTime) {
		t.Errorf("want run %s resumed, got %+v", intent.ID, second.Record())
	}
	wantResults(t, "results are kept", second.Record().Results, "Etcd.Disk")
	finish(t, second)
	third := begin(t, newRuns(api), again(intent))
	if third.Resumed() {
		t.Error("an ended run was resumed")
	}
	finish(t, third)
}

// Flushed results survive their holder, and are written once.
func TestFlush(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, newRuns(api), intent)
	version := func() string { return getMap(t, headName(intent.ID)).ResourceVersion }
	begun := version()
	if err := held.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if version() != begun {
		t.Error("the record was written without new results")
	}
	held.Put(aResult("Etcd.Disk"))
	if err := held.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantResults(t, "the flushed results are recorded", get(t, intent.ID).Results, "Etcd.Disk")
	flushed := version()
	if err := held.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if version() != flushed {
		t.Error("the record was written a second time")
	}
	finish(t, held)
	if err := held.Flush(t.Context()); err == nil {
		t.Error("an ended run was written")
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, newRuns(api), intent)
	_, release := held.Hold(t.Context())
	defer release()
	received := make(chan record.Record, 100)
	type ending struct {
		record record.Record
		err    error
	}
	ended := make(chan ending, 1)
	go func() {
		got, err := newRuns(api).Follow(t.Context(), intent.ID[:8], func(r record.Record) { received <- r })
		ended <- ending{got, err}
	}()
	if first := <-received; first.Phase != record.Running || first.Holder != "tester" || len(first.Results) != 0 {
		t.Errorf("first record: %+v", first)
	}
	for i, check := range []string{"Etcd.Disk", "Network.Routes"} {
		held.Put(aResult(check))
		for next := range received {
			if len(next.Results) == i+1 {
				break
			}
		}
	}
	finish(t, held)
	end := <-ended
	if end.err != nil || end.record.Phase != record.Complete || len(end.record.Results) != 2 || len(end.record.Report) == 0 {
		t.Errorf("last record: %+v, %v", end.record, end.err)
	}
	close(received)
	for late := range received {
		if late.Phase != record.Running {
			t.Errorf("the last record must be returned only: %+v", late)
		}
	}
	after, err := newRuns(api).Follow(t.Context(), intent.ID, func(record.Record) { t.Error("unexpected call for an ended run") })
	if diff := cmp.Diff(end.record, after); diff != "" || err != nil {
		t.Errorf("Follow of an ended run: %v (-want +got):\n%s", err, diff)
	}
}

func TestFollowStopsWithContext(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, newRuns(api), intent)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := newRuns(api).Follow(ctx, intent.ID, func(record.Record) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("want context.Canceled, got %v", err)
	}
	finish(t, held)
}

// isRecorded is false if the run was pruned.
func isRecorded(t *testing.T, id string) bool {
	t.Helper()
	_, err := newRuns(api).Get(t.Context(), id)
	if err != nil && !errors.As(err, new(*record.NotFoundError)) {
		t.Fatal(err)
	}
	return err == nil
}

// Not parallel: it prunes the records of other tests.
func TestHistoryIsPruned(t *testing.T) {
	const kept = 20
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	many := make([]record.Result, 200)
	for i := range many {
		many[i] = incompressible(i, 4096)
	}
	first := newIntent()
	held := begin(t, newRuns(api), first)
	for _, result := range many {
		held.Put(result)
	}
	finish(t, held)
	parts, err := api.CoreV1().ConfigMaps(record.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + partName(first.ID, 1), ResourceVersion: getMap(t, partName(first.ID, 1)).ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Stop()
	inProgress := begin(t, newRuns(api), newIntent())
	ended := 0
	for ; ended < 2*kept || isRecorded(t, first.ID); ended++ { // several runs end within the same second
		finish(t, begin(t, newRuns(api), newIntent()))
	}
	gone := false
	for event := range parts.ResultChan() {
		if event.Type == watch.Deleted {
			gone = true
			break
		}
	}
	if !gone {
		t.Error("the header was pruned without its parts")
	}
	listed, err := newRuns(api).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, r := range listed {
		if r.Phase == record.Complete {
			count++
		}
	}
	if count != kept {
		t.Errorf("after %d ended runs %d are kept, want %d", ended+1, count, kept)
	}
	if got := get(t, inProgress.Record().ID); got.Phase != record.Running {
		t.Errorf("a run in progress was pruned: %+v", got)
	}
	finish(t, inProgress)

	// Interrupted runs do not displace runs with a verdict, nor verdicts them.
	const unfinished = 10
	var interrupted []string
	for range unfinished + 1 {
		run := begin(t, newRuns(api), newIntent())
		if err := run.Finish(t.Context(), record.Ending{Phase: record.Interrupted}); err != nil {
			t.Fatal(err)
		}
		interrupted = append(interrupted, run.Record().ID)
	}
	if !isRecorded(t, inProgress.Record().ID) {
		t.Errorf("%d interrupted runs displaced a run with a verdict", len(interrupted))
	}
	for range kept {
		finish(t, begin(t, newRuns(api), newIntent()))
	}
	if !isRecorded(t, interrupted[unfinished]) {
		t.Errorf("%d runs with a verdict displaced the run that was interrupted last", kept)
	}
	listed, err = newRuns(api).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count = 0
	for _, r := range listed {
		if r.Phase != record.Complete && r.Phase != record.Running {
			count++
		}
	}
	if count != unfinished {
		t.Errorf("%d runs without a verdict are kept, want %d", count, unfinished)
	}
}
