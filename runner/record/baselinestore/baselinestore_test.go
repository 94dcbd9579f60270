package baselinestore_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/transport"
)

// world is a cluster with records.
type world struct {
	server  *apiserver.Server
	client  kubernetes.Interface
	records *recordstore.Store
	store   *baselinestore.Store
}

func newWorld(t *testing.T) world {
	t.Helper()
	server := apiserver.Start(t)
	client := clientOf(t, server.Config())
	return world{server: server, client: client, records: recordstore.New(client), store: baselinestore.New(client)}
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// through returns a client of the world whose requests are handled by handle.
func (w world) through(t *testing.T, handle func(r *http.Request, next http.RoundTripper) (*http.Response, error)) kubernetes.Interface {
	t.Helper()
	config := w.server.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.Func(func(r *http.Request) (*http.Response, error) { return handle(r, next) })
	})
	return clientOf(t, config)
}

// run records a run that has ended, and returns its ID.
func (w world) run(t *testing.T) string {
	t.Helper()
	return w.runFrom(t, "4.20.1")
}

func (w world) runFrom(t *testing.T, version string) string {
	t.Helper()
	id := uuid.NewString()
	intent := record.Intent{
		ID: id, From: version, Requester: record.ByUser,
		Target: update.Release{Version: "4.21.3", Image: fmt.Sprintf("registry.example/release@sha256:%x", sha256.Sum256([]byte(id)))},
	}
	ending := func(context.Context) (record.Ending, error) {
		return record.Ending{Phase: record.Complete, Verdict: verdict.Verdict{Decision: verdict.Ready}, Report: []byte("{}")}, nil
	}
	if err := w.records.Add(t.Context(), intent, ending); err != nil {
		t.Fatal(err)
	}
	return id
}

func (w world) put(t *testing.T, id string, state baseline.State) {
	t.Helper()
	if err := w.store.Put(t.Context(), id, state, baselinestore.Plain); err != nil {
		t.Fatal(err)
	}
}

// edit changes a ConfigMap as another client.
func (w world) edit(t *testing.T, name string, change func(*corev1.ConfigMap)) {
	t.Helper()
	object := w.get(t, name)
	change(object)
	if _, err := w.client.CoreV1().ConfigMaps(record.Namespace).Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w world) get(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	object, err := w.client.CoreV1().ConfigMaps(record.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// names are those of the ConfigMaps in the namespace of the records.
func (w world) names(t *testing.T) []string {
	t.Helper()
	listed, err := w.client.CoreV1().ConfigMaps(record.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range listed.Items {
		names = append(names, listed.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

func headerOf(id string) string { return "preflight-" + strings.ReplaceAll(id, "-", "")[:10] }

const cluster = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

func at(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }

func deployment(namespace, name string) baseline.Key {
	return baseline.Key{Kind: baseline.Deployment, Namespace: namespace, Name: name}
}

// small is a state that was taken in that minute.
func small(minute int) baseline.State {
	return baseline.State{
		Taken: at(minute), ClusterID: cluster, Version: "4.20.1", Image: "registry.example/release@sha256:20",
		Objects: map[baseline.Key]baseline.Object{
			deployment("shop", "web"):                         {Desired: 2, Ready: 2, Revision: "a"},
			deployment("shop", "db"):                          {Desired: 1, Problems: []baseline.Problem{{Reason: "NotReady"}}},
			{Kind: baseline.ClusterOperator, Name: "ingress"}: {Detail: "4.20.1"},
		},
	}
}

// large is a state with so many objects that do not compress, of about 25 bytes each.
func large(objects int) baseline.State {
	state := small(0)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range objects {
		state.Objects[deployment("shop", fmt.Sprint("web-", i))] = baseline.Object{Revision: fmt.Sprintf("%016x%016x%016x", source.Uint64(),
			source.Uint64(), source.Uint64())}
	}
	return state
}

// history is that of an update from 4.20.1, which was complete in minute 0 and has begun in minute 30.
func history() []configv1.UpdateHistory {
	return []configv1.UpdateHistory{entry(configv1.CompletedUpdate, "4.21.3", 30, 50), entry(configv1.CompletedUpdate, "4.20.1", -60, 0)}
}

func entry(state configv1.UpdateState, version string, started, completed int) configv1.UpdateHistory {
	made := configv1.UpdateHistory{
		State: state, Version: version, Image: "registry.example/release@sha256:" + version[2:4],
		StartedTime: metav1.NewTime(at(started)),
	}
	if completed != started {
		made.CompletionTime = new(metav1.NewTime(at(completed)))
	}
	return made
}

// wantAbsent checks that there is no baseline, for that reason.
func wantAbsent(t *testing.T, err error, reason baselinestore.Reason, words string) {
	t.Helper()
	absent, ok := errors.AsType[*baselinestore.AbsentError](err)
	if !ok || absent.Reason != reason || !strings.Contains(err.Error(), words) {
		t.Errorf("the error is %v; want the reason %s with %q", err, reason, words)
	}
}

func TestBaselineIsStoredBesideTheRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		state  baseline.State
		parts  int
	}{
		"Small": {reason: "one part has it", state: small(0), parts: 1},
		"Large": {reason: "it does not fit into one ConfigMap", state: large(45_000), parts: 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.run(t)
			w.put(t, id, tc.state)
			found, err := w.store.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(baselinestore.Baseline{Run: id, State: tc.state}, found); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			wanted := []string{headerOf(id), headerOf(id) + "-baseline"}
			for i := range tc.parts {
				wanted = append(wanted, fmt.Sprintf("%s-baseline-%d", headerOf(id), i+1))
			}
			if diff := cmp.Diff(wanted, w.names(t)); diff != "" {
				t.Errorf("%s; ConfigMaps (-want +got):\n%s", tc.reason, diff)
			}
			for _, object := range wanted[1:] {
				size := 0
				for _, data := range w.get(t, object).BinaryData {
					size += len(data)
				}
				if size > 900<<10 {
					t.Errorf("configmap %s has %d bytes", object, size)
				}
			}
			if records, err := w.records.List(t.Context()); err != nil || len(records) != 1 {
				t.Errorf("%d records are listed, error %v; a baseline is none", len(records), err)
			}
			w.server.Remove(t, record.Namespace, headerOf(id))
			if left := w.names(t); len(left) > 0 {
				t.Errorf("%v are left when the record is deleted", left)
			}
		})
	}
}

// What is pruned of the records has no baseline that is left behind.
func TestBaselinesArePrunedWithTheirRecords(t *testing.T) {
	w := newWorld(t)
	const kept = 20
	for i := range kept + 2 {
		w.put(t, w.run(t), small(i))
	}
	if got := len(w.names(t)); got != 3*kept {
		t.Errorf("%d ConfigMaps are left, want those of %d runs: %v", got, kept, w.names(t))
	}
}

// The records of the last update stay, however many runs follow it: without its judgement a gate would open.
func TestLastUpdateIsNotPruned(t *testing.T) {
	w := newWorld(t)
	before := w.runFrom(t, "4.20.0")
	w.put(t, before, small(1))
	const kept = 20
	for range kept + 2 {
		w.runFrom(t, "4.20.1")
	}
	if _, err := w.store.Get(t.Context(), before); err != nil {
		t.Errorf("the baseline of the last update: %v", err)
	}
	if listed, err := w.records.List(t.Context()); err != nil || len(listed) != kept+1 {
		t.Errorf("%d records are kept, error %v; want %d and that of the last update", len(listed), err, kept)
	}
}

// The record by whose baseline the last update was judged stays: whatever phase its run has, whatever runs follow it, and
// also where the update was rolled back, so that the cluster runs the version of before again.
func TestRecordsOfTheLastUpdateAreKept(t *testing.T) {
	const kept = 20
	for name, tc := range map[string]struct {
		reason string
		begin  func(t *testing.T, w world) string
		// then is the version from which the runs after it start.
		then string
	}{
		"Unjudged": {reason: "its baseline is the newest of another version", then: "4.20.1", begin: func(t *testing.T, w world) string {
			t.Helper()
			id := w.runFrom(t, "4.20.0")
			w.put(t, id, ofVersion("4.20.0"))
			return id
		}},
		"WithoutBaselineSince": {
			reason: "a later run from that version has stored none", then: "4.20.1",
			begin: func(t *testing.T, w world) string {
				t.Helper()
				id := w.runFrom(t, "4.20.0")
				w.put(t, id, ofVersion("4.20.0"))
				w.runFrom(t, "4.20.0")
				return id
			},
		},
		"RolledBack": {reason: "the cluster runs the version of before again", then: "4.20.0", begin: func(t *testing.T, w world) string {
			t.Helper()
			id := w.runFrom(t, "4.20.0")
			w.put(t, id, ofVersion("4.20.0"))
			if err := w.store.PutJudgement(t.Context(), id, judgementAt(afterupdate.RolledBack, 5)); err != nil {
				t.Fatal(err)
			}
			return id
		}},
		"Interrupted": {reason: "the run was killed after it had stored the baseline", then: "4.20.1", begin: func(t *testing.T, w world) string {
			t.Helper()
			id := w.interrupted(t, "4.20.0")
			w.put(t, id, ofVersion("4.20.0"))
			for range kept {
				w.interrupted(t, "4.20.1")
			}
			return id
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := tc.begin(t, w)
			for i := range kept + 2 {
				next := w.runFrom(t, tc.then)
				state := ofVersion(tc.then)
				state.Taken = at(i + 10)
				w.put(t, next, state)
			}
			if _, err := w.records.Get(t.Context(), id); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			all, err := w.records.List(t.Context())
			complete := slices.DeleteFunc(all, func(each record.Record) bool { return each.Phase != record.Complete })
			if err != nil || len(complete) > kept+2 {
				t.Errorf("%s: %d records are left, error %v", tc.reason, len(complete), err)
			}
		})
	}
}

func ofVersion(version string) baseline.State {
	state := small(1)
	state.Version = version
	return state
}

// interrupted records a run that was killed, and returns its ID.
func (w world) interrupted(t *testing.T, version string) string {
	t.Helper()
	intent := record.Intent{
		ID: uuid.NewString(), From: version, Requester: record.ByUser,
		Target: update.Release{Version: "4.21.3", Image: fmt.Sprintf("registry.example/release@sha256:%064x", 7)},
	}
	ending := func(context.Context) (record.Ending, error) { return record.Ending{Phase: record.Interrupted}, nil }
	if err := w.records.Add(t.Context(), intent, ending); err != nil {
		t.Fatal(err)
	}
	return intent.ID
}

func TestNamesOfUsersAreDigests(t *testing.T) {
	w := newWorld(t)
	id := w.run(t)
	if err := w.store.Put(t.Context(), id, small(0), baselinestore.Digests); err != nil {
		t.Fatal(err)
	}
	found, err := w.store.Get(t.Context(), id)
	if err != nil || found.Digest == nil {
		t.Fatalf("digest is nil: %t, error %v", found.Digest == nil, err)
	}
	for key := range found.State.Objects {
		if strings.Contains(key.String(), "shop") || strings.Contains(key.String(), "web") {
			t.Errorf("the key %s has a name of a user", key)
		}
	}
	if diff := cmp.Diff(small(0).Redacted(found.Digest).Objects, found.State.Objects); diff != "" {
		t.Errorf("a later state cannot be compared (-want +got):\n%s", diff)
	}
}

// A process that is killed while it writes leaves no half of a baseline, and a later one completes it.
func TestKilledWhileItIsWritten(t *testing.T) {
	for name, earlier := range map[string]bool{"First": false, "Again": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.run(t)
			if earlier {
				w.put(t, id, small(0))
			}
			killed := errors.New("killed")
			ctx, kill := context.WithCancelCause(t.Context())
			client := w.through(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if r.Method != http.MethodGet && err == nil && response.StatusCode < http.StatusMultipleChoices {
					kill(killed) // after the first part
				}
				return response, err
			})
			if err := baselinestore.New(client).Put(ctx, id, large(24_000), baselinestore.Plain); err == nil {
				t.Fatal("the process was not killed")
			}
			_, err := w.store.Get(t.Context(), id)
			if earlier {
				wantAbsent(t, err, baselinestore.Unreadable, "not written together")
			} else {
				wantAbsent(t, err, baselinestore.NotTaken, id)
			}
			w.put(t, id, large(24_000))
			if found, err := w.store.Get(t.Context(), id); err != nil || len(found.State.Objects) != len(large(24_000).Objects) {
				t.Errorf("%d objects, error %v", len(found.State.Objects), err)
			}
		})
	}
}

func TestAttacksOnBaselines(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		attack func(t *testing.T, w world, id, other string)
		want   baselinestore.Reason
		words  string
	}{
		"Index": {
			reason: "another release makes a baseline count that is of none",
			attack: func(t *testing.T, w world, id, _ string) {
				t.Helper()
				w.edit(t, headerOf(id)+"-baseline", func(o *corev1.ConfigMap) {
					o.Data["baseline.json"] = strings.ReplaceAll(o.Data["baseline.json"], "4.20.1", "4.20.9")
				})
			},
			want: baselinestore.Unauthentic, words: "does not match its content",
		},
		"WithoutMAC": {
			reason: "a writer without the key has none",
			attack: func(t *testing.T, w world, id, _ string) {
				t.Helper()
				w.edit(t, headerOf(id)+"-baseline", func(o *corev1.ConfigMap) { delete(o.Data, "record.mac") })
			},
			want: baselinestore.Unauthentic, words: "has no MAC",
		},
		"Owner": {
			reason: "it is beside another record",
			attack: func(t *testing.T, w world, id, other string) {
				t.Helper()
				w.edit(t, headerOf(id)+"-baseline", func(o *corev1.ConfigMap) {
					o.OwnerReferences = w.get(t,
						headerOf(other)+"-baseline").OwnerReferences
				})
			},
			want: baselinestore.Unauthentic, words: "does not match its content",
		},
		"NoOwner": {
			reason: "it would stay without its record",
			attack: func(t *testing.T, w world, id, _ string) {
				t.Helper()
				w.edit(t, headerOf(id)+"-baseline", func(o *corev1.ConfigMap) { o.OwnerReferences = nil })
			},
			want: baselinestore.Unauthentic, words: "has 0 owners",
		},
		"Part": {
			reason: "an object is bad that was good",
			attack: func(t *testing.T, w world, id, _ string) {
				t.Helper()
				w.edit(t, headerOf(id)+"-baseline-2", func(o *corev1.ConfigMap) { o.BinaryData["part.gz"][7] ^= 1 })
			},
			want: baselinestore.Unauthentic, words: "-baseline-2",
		},
		"PartOfAnotherRun": {
			reason: "its MAC is valid for its run",
			attack: func(t *testing.T, w world, id, other string) {
				t.Helper()
				foreign := w.get(t, headerOf(other)+"-baseline-1")
				w.edit(t, headerOf(id)+"-baseline-1", func(o *corev1.ConfigMap) { o.Data, o.BinaryData = foreign.Data, foreign.BinaryData })
			},
			want: baselinestore.Unauthentic, words: "-baseline-1",
		},
		"SwappedParts": {
			reason: "both are of the run",
			attack: func(t *testing.T, w world, id, _ string) {
				t.Helper()
				second := w.get(t, headerOf(id)+"-baseline-2")
				w.edit(t, headerOf(id)+"-baseline-1", func(o *corev1.ConfigMap) { o.Data, o.BinaryData = second.Data, second.BinaryData })
			},
			want: baselinestore.Unauthentic, words: "-baseline-1",
		},
		"MissingPart": {
			reason: "half of a state would have objects that are missing",
			attack: func(t *testing.T, w world, id, _ string) {
				t.Helper()
				w.server.Remove(t, record.Namespace, headerOf(id)+"-baseline-2")
			},
			want: baselinestore.Unreadable, words: "part 2 of 2 is missing",
		},
		"KeyReplaced": {
			reason: "nothing that was written before is authentic",
			attack: func(t *testing.T, w world, _, _ string) {
				t.Helper()
				if err := w.client.CoreV1().Secrets(record.Namespace).Delete(t.Context(), recordstore.KeySecret, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				w.run(t)
			},
			want: baselinestore.Unauthentic, words: "does not match its content",
		},
		"KeyMissing": {
			reason: "nothing shows that it is authentic",
			attack: func(t *testing.T, w world, _, _ string) {
				t.Helper()
				if err := w.client.CoreV1().Secrets(record.Namespace).Delete(t.Context(), recordstore.KeySecret, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			want: baselinestore.Unauthentic, words: "does not exist",
		},
		"KeyForbidden": {
			reason: "the user cannot verify it",
			attack: func(_ *testing.T, w world, _, _ string) {
				w.server.Deny(func(_ string, request apiserver.Request) bool { return request.Resource == "secrets" })
			},
			want: baselinestore.Unverifiable, words: "may not be read by this user",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id, other := w.run(t), w.run(t)
			w.put(t, id, large(24_000))
			elsewhere := small(0)
			elsewhere.ClusterID, elsewhere.Objects[deployment("shop", "web")] = "another cluster", baseline.Object{}
			w.put(t, other, elsewhere)
			tc.attack(t, w, id, other)
			_, err := w.store.Get(t.Context(), id)
			wantAbsent(t, err, tc.want, tc.words)
			_, err = w.store.Before(t.Context(), cluster, history())
			wantAbsent(t, err, tc.want, tc.words)
		})
	}
}

// A newer baseline that cannot be read does not hide an older one, and is stated.
func TestBeforeAnUpdate(t *testing.T) {
	w := newWorld(t)
	first, second, late := w.run(t), w.run(t), w.run(t)
	w.put(t, first, small(10))
	w.put(t, second, small(20))
	w.put(t, late, small(40))
	requests := 0
	client := w.through(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		requests++
		return next.RoundTrip(r)
	})
	found, err := baselinestore.New(client).Before(t.Context(), cluster, history())
	if err != nil || found.Run != second || !found.State.Taken.Equal(at(20)) || requests != 3 {
		t.Errorf("the baseline of %s at %s by %d requests, error %v; want that of %s by 3", found.Run, found.State.Taken, requests, err, second)
	}
	w.server.Remove(t, record.Namespace, headerOf(second)+"-baseline-1")
	found, err = w.store.Before(t.Context(), cluster, history())
	if err != nil || found.Run != first || len(found.Passed) != 1 || found.Passed[0].Run != second ||
		found.Passed[0].Reason != baselinestore.Unreadable {
		t.Errorf("the baseline of %s, passed %v, error %v; want that of %s, and %s passed", found.Run, found.Passed, err, first, second)
	}
}

func TestBaselineNeedsARecord(t *testing.T) {
	w := newWorld(t)
	w.run(t)
	err := w.store.Put(t.Context(), uuid.NewString(), small(0), baselinestore.Plain)
	if _, notFound := errors.AsType[*record.NotFoundError](err); !notFound {
		t.Errorf("the error without a record is %v", err)
	}
	id := w.run(t)
	w.server.Deny(func(_ string, request apiserver.Request) bool { return request.Resource == "secrets" })
	err = w.store.Put(t.Context(), id, small(0), baselinestore.Plain)
	if _, unauthentic := errors.AsType[*record.UnauthenticError](err); !unauthentic {
		t.Errorf("the error without the key is %v", err)
	}
	if got := len(w.names(t)); got != 2 {
		t.Errorf("%d ConfigMaps, want 2 headers", got)
	}
}

// judgementAt is a judgement whose last sample is of that minute.
func judgementAt(decision afterupdate.Decision, minute int) afterupdate.Report {
	return afterupdate.Report{
		Kind: afterupdate.Kind, Decision: decision, Samples: afterupdate.Samples{Number: 1, Last: at(minute).Format(time.RFC3339)},
		Regressions: []afterupdate.Regression{{
			Name:   "DeploymentNotReady",
			Object: finding.Object{Kind: "Deployment", Namespace: "shop", Name: "web"},
		}},
		NotCovered: []string{},
	}
}

// updateAt is a judgement of the update that ended in that minute.
func updateAt(judged afterupdate.Report, minute int) afterupdate.Report {
	judged.Update.CompletionTime = at(minute).Format(time.RFC3339)
	return judged
}

func TestJudgementOfTheNewestSampleStays(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// first is the decision of the stored one; empty for Settling.
		first  afterupdate.Decision
		next   afterupdate.Report
		want   afterupdate.Report
		writes int
	}{
		"GoodAgain": {
			reason: "a soak counts from the first Good", first: afterupdate.Good, next: judgementAt(afterupdate.Good, 5),
			want: judgementAt(afterupdate.Good, 2),
		},
		"GoodOfAnother": {
			reason: "it is of a later update", first: afterupdate.Good, next: updateAt(judgementAt(afterupdate.Good, 5), 3),
			want: updateAt(judgementAt(afterupdate.Good, 5), 3), writes: 1,
		},
		"NoLongerGood": {
			reason: "it became worse", first: afterupdate.Good, next: judgementAt(afterupdate.Regressed, 5),
			want: judgementAt(afterupdate.Regressed, 5), writes: 1,
		},
		"Newer": {
			reason: "the update has settled", next: judgementAt(afterupdate.Good, 5), want: judgementAt(afterupdate.Good, 5),
			writes: 1,
		},
		"Older": {
			reason: "a slow process writes last", next: judgementAt(afterupdate.Unfinished, 1),
			want: judgementAt(afterupdate.Settling, 2),
		},
		"Equal": {reason: "nothing has changed", next: judgementAt(afterupdate.Settling, 2), want: judgementAt(afterupdate.Settling, 2)},
		"WithoutSamples": {
			reason: "it was judged by less", next: afterupdate.Report{Decision: afterupdate.Undecided},
			want: judgementAt(afterupdate.Settling, 2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.run(t)
			first := afterupdate.Settling
			if tc.first != "" {
				first = tc.first
			}
			if err := w.store.PutJudgement(t.Context(), id, judgementAt(first, 2)); err != nil {
				t.Fatal(err)
			}
			before := len(w.server.Writes())
			if err := w.store.PutJudgement(t.Context(), id, tc.next); err != nil {
				t.Fatal(err)
			}
			if got := len(w.server.Writes()) - before; got != tc.writes {
				t.Errorf("%s; %d writes, want %d", tc.reason, got, tc.writes)
			}
			found, exists, err := w.store.Judgement(t.Context(), id)
			if diff := cmp.Diff(tc.want, found.Report); err != nil || !exists || diff != "" {
				t.Errorf("%s; error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			w.server.Remove(t, record.Namespace, headerOf(id))
			if left := w.names(t); len(left) > 0 {
				t.Errorf("%v are left when the record is deleted", left)
			}
		})
	}
}

func TestTwoProcessesJudge(t *testing.T) {
	w := newWorld(t)
	id := w.run(t)
	const processes = 8
	var all sync.WaitGroup
	errs := make([]error, processes)
	for i := range processes {
		all.Go(func() { errs[i] = w.store.PutJudgement(t.Context(), id, judgementAt(afterupdate.Settling, i)) })
	}
	all.Wait()
	found, _, err := w.store.Judgement(t.Context(), id)
	if want := judgementAt(afterupdate.Settling, processes-1); errors.Join(append(errs, err)...) != nil ||
		found.Report.Samples.Last != want.Samples.Last {
		t.Errorf("the judgement of %s stays, errors %v; want %s", found.Report.Samples.Last, errors.Join(append(errs, err)...), want.Samples.Last)
	}
}

func TestJudgementsAreListed(t *testing.T) {
	w := newWorld(t)
	if none, err := w.store.Judgements(t.Context()); err != nil || len(none) > 0 {
		t.Fatalf("%v, error %v", none, err)
	}
	good, edited := w.run(t), w.run(t)
	for _, id := range []string{good, edited} {
		if err := w.store.PutJudgement(t.Context(), id, judgementAt(afterupdate.Good, 1)); err != nil {
			t.Fatal(err)
		}
	}
	w.edit(t, headerOf(edited)+"-afterupdate", func(o *corev1.ConfigMap) { o.BinaryData["judgement.gz"] = []byte("forged") })
	all, err := w.store.Judgements(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d judgements, error %v", len(all), err)
	}
	for _, each := range all {
		authentic := each.Authentication.State == record.Authentic
		if authentic != (each.Run == good) || authentic != (each.Report.Decision == afterupdate.Good) {
			t.Errorf("run %s: %+v, decision %q", each.Run, each.Authentication, each.Report.Decision)
		}
	}
	_, _, err = w.store.Judgement(t.Context(), edited)
	if _, unauthentic := errors.AsType[*record.UnauthenticError](err); !unauthentic {
		t.Errorf("the error of an edited judgement is %v", err)
	}
	if _, exists, err := w.store.Judgement(t.Context(), w.run(t)); exists || err != nil {
		t.Errorf("exists %t, error %v; want none", exists, err)
	}
	if err := w.store.PutJudgement(t.Context(), edited, judgementAt(afterupdate.Regressed, 0)); err != nil {
		t.Error(err)
	}
	if found, _, err := w.store.Judgement(t.Context(), edited); err != nil || found.Report.Decision != afterupdate.Regressed {
		t.Errorf("%s, error %v; what was edited is replaced", found.Report.Decision, err)
	}
}
