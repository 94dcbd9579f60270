package inspection_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/inspection"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/records"
)

func version() after.Ref { return after.Ref{Kind: "ClusterVersion", Name: "version"} }

// world is a cluster with a run that stored its baseline four hours before noon, at whose times it is inspected.
type world struct {
	t         *testing.T
	state     *after.World
	server    *apiserver.Server
	connected *cluster.Cluster
	run       string
	inspected *inspection.Inspection
}

// newWorld is a cluster after its update and these changes. names are how the baseline names its objects, and ofRun
// selects its run.
func newWorld(t *testing.T, names baselinestore.Names, ofRun string, changes ...after.Case) *world {
	t.Helper()
	w := &world{t: t, state: after.New(after.Noon())}
	before := w.state.Baseline(t)
	w.state.Update()
	for _, each := range changes {
		each.Apply(w.state)
	}
	w.server = w.state.Server(t)
	recorded := records.In(t, w.server.Config())
	w.run = recorded.Completed('b', report.Report{Verdict: verdict.Verdict{Decision: verdict.Ready}}, nil)
	if err := baselinestore.New(recorded.Client).Put(t.Context(), w.run, *before, names); err != nil {
		t.Fatal(err)
	}
	w.connected = w.at(0)
	options := inspection.Options{Monitoring: w.state.Monitoring(t)}
	if ofRun != "" {
		options.Run = w.run
	}
	w.inspected = inspection.New(w.connected, options)
	return w
}

// at is the cluster at a time before noon.
func (w *world) at(before time.Duration) *cluster.Cluster {
	w.t.Helper()
	connected, err := cluster.ConnectAt(w.server.Config(), "test", after.Noon().Add(-before))
	if err != nil {
		w.t.Fatal(err)
	}
	return connected
}

// look inspects the cluster as it is, at a time before noon.
func (w *world) look(before time.Duration) (afterupdate.Report, error) {
	w.t.Helper()
	for _, object := range w.state.Objects(w.t) {
		w.server.Add(w.t, object)
	}
	*w.connected = *w.at(before)
	return w.inspected.Look(w.t.Context())
}

// judged is the judgement of a look.
func (w *world) judged(before time.Duration) afterupdate.Report {
	w.t.Helper()
	made, err := w.look(before)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// entry is an update that was requested and ended at times before noon; it has not ended at 0.
func entry(state, of string, requested, ended time.Duration) any {
	made := map[string]any{
		"state": state, "version": of, "image": "", "verified": true,
		"startedTime": after.Noon().Add(-requested).Format(time.RFC3339), "completionTime": nil,
	}
	if ended > 0 {
		made["completionTime"] = after.Noon().Add(-ended).Format(time.RFC3339)
	}
	return made
}

// requested sets the history, the newest entry first, and the release of the newest one.
func (w *world) requested(of string, history ...any) {
	w.state.Put(version(), "status.desired.version", of)
	w.state.Put(version(), "status.history", history)
}

func installed() any { return entry("Completed", after.From, 31*24*time.Hour, 30*24*time.Hour) }

// An update that is continued with another release is judged from the beginning, by the baseline from before its first
// start.
func TestRetargeted(t *testing.T) {
	w := newWorld(t, baselinestore.Plain, "")
	w.requested(after.To, entry("Partial", after.To, 3*time.Hour, 0), installed())
	if made := w.judged(170 * time.Minute); made.Decision != afterupdate.Unfinished || made.Update.Run != w.run {
		t.Fatalf("%s by run %s: %s", made.Decision, made.Update.Run, made.Message)
	}
	w.judged(165 * time.Minute)
	w.requested("4.18.3", entry("Completed", "4.18.3", 160*time.Minute, 2*time.Hour), entry("Partial", after.To, 3*time.Hour, 160*time.Minute),
		installed())
	made := w.judged(100 * time.Minute)
	want := afterupdate.Update{
		Run: w.run, From: after.From, To: "4.18.3", Retargeted: []string{after.To},
		StartTime: after.Noon().Add(-3 * time.Hour).Format(time.RFC3339), CompletionTime: after.Noon().Add(-2 * time.Hour).Format(time.RFC3339),
	}
	if diff := cmp.Diff(want, made.Update); diff != "" || made.Samples.Number != 1 || made.Baseline == nil {
		t.Errorf("%d samples; -want +got:\n%s", made.Samples.Number, diff)
	}
}

func TestRolledBack(t *testing.T) {
	w := newWorld(t, baselinestore.Plain, "")
	w.requested(after.From, entry("Completed", after.From, 2*time.Hour, time.Hour), entry("Completed", after.To, 3*time.Hour, 150*time.Minute),
		installed())
	if made := w.judged(0); made.Decision != afterupdate.RolledBack || made.Update.To != after.To {
		t.Errorf("%s of %+v: %s", made.Decision, made.Update, made.Message)
	}
}

// A baseline that does not count is not used. One that was asked for is an error, the others leave the decision open.
func TestBaselinesThatDoNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(w *world)
		want   string
	}{
		"OtherUpdate": {
			reason: "the baseline is from before an earlier update", want: "is for 4.18.1, but the update started from 4.18.2",
			change: func(w *world) {
				w.requested("4.18.3", entry("Completed", "4.18.3", 90*time.Minute, time.Hour), entry("Completed", after.To, 3*time.Hour, 2*time.Hour),
					installed())
			},
		},
		"OtherCluster": {
			reason: "the cluster was made again under its name",
			want:   "belongs to cluster 6ba7b810-9dad-41d1-80b4-00c04fd430c8, and this cluster is 7ba7b810", change: func(w *world) {
				w.state.Put(version(), "spec.clusterID", "7ba7b810-9dad-41d1-80b4-00c04fd430c8")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			newest := newWorld(t, baselinestore.Plain, "")
			tc.change(newest)
			if made := newest.judged(0); made.Decision != afterupdate.Undecided || made.Baseline != nil || !strings.Contains(made.Message, tc.want) {
				t.Errorf("%s: %s: %s", tc.reason, made.Decision, made.Message)
			}
			selected := newWorld(t, baselinestore.Plain, "selected")
			tc.change(selected)
			_, err := selected.look(0)
			if refused, ok := errors.AsType[*input.Error](err); !ok || !strings.Contains(refused.Error(), tc.want) ||
				!strings.Contains(refused.Error(), selected.run) {
				t.Errorf("%s: error %v, want one of run %s with %q", tc.reason, err, selected.run, tc.want)
			}
		})
	}
}

// An editor of ConfigMaps does not decide what was good before.
func TestEditedBaseline(t *testing.T) {
	w := newWorld(t, baselinestore.Plain, "", after.Regressions()[2])
	maps := w.connected.Kubernetes.CoreV1().ConfigMaps(record.Namespace)
	stored, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "preflight.openshift.io/baseline=" + w.run})
	if err != nil || len(stored.Items) != 1 {
		t.Fatalf("want one baseline, got %d: %v", len(stored.Items), err)
	}
	index := &stored.Items[0]
	index.Data["baseline.json"] = strings.Replace(index.Data["baseline.json"], `"taken":"2`, `"taken":"1`, 1)
	if _, err := maps.Update(t.Context(), index, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if made := w.judged(0); made.Decision != afterupdate.Undecided ||
		!strings.Contains(made.Message, "the baseline of run "+w.run+" is not authentic") {
		t.Errorf("%s: %s", made.Decision, made.Message)
	}
}

// A baseline with digests of names gives the same judgement, with the names of the objects.
func TestRedactedBaseline(t *testing.T) {
	chosen := slices.DeleteFunc(after.Regressions(), func(each after.Case) bool {
		return !slices.Contains([]string{"AggregatedAPI", "ImagePull", "Routes", "ClaimLost"}, each.Name)
	})
	of := func(names baselinestore.Names, changes ...after.Case) afterupdate.Report {
		w := newWorld(t, names, "", changes...)
		w.judged(70 * time.Minute)
		w.judged(30 * time.Minute)
		made := w.judged(0)
		made.Update.Run = ""
		return made
	}
	plain := of(baselinestore.Plain, chosen...)
	if plain.Decision != afterupdate.Regressed || plain.Counts.Regressions < len(chosen) {
		t.Fatalf("%s with %+v", plain.Decision, plain.Counts)
	}
	if diff := cmp.Diff(plain, of(baselinestore.Digests, chosen...)); diff != "" {
		t.Errorf("-plain +redacted:\n%s", diff)
	}
	for _, innocent := range after.Innocents() {
		if innocent.Name != "WebhookScaledToZero" && innocent.Name != "OwnerBrokeAll" {
			continue
		}
		if made := of(baselinestore.Digests, innocent); made.Decision != afterupdate.Good {
			t.Errorf("%s: %s: %+v", innocent, made.Decision, made.Regressions)
		}
	}
}

// Samples from before the clock was set back do not count.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t, baselinestore.Plain, "")
	w.judged(20 * time.Minute)
	if made := w.judged(10 * time.Minute); made.Decision != afterupdate.Good || made.Samples.Number != 2 {
		t.Fatalf("%s by %d samples: %s", made.Decision, made.Samples.Number, made.Message)
	}
	if made := w.judged(15 * time.Minute); made.Decision != afterupdate.Settling || made.Samples.Number != 1 {
		t.Errorf("%s by %d samples: %s", made.Decision, made.Samples.Number, made.Message)
	}
}

func TestArchivesOfTwoClusters(t *testing.T) {
	of := func(file string, change func(*after.World)) *cluster.Cluster {
		state := after.New(after.Noon())
		change(state)
		state.Newest()
		file = filepath.Join(t.TempDir(), file)
		state.Archive(t, file)
		opened, err := archive.Open(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		connected, err := cluster.ConnectAt(opened.Config(), "test", opened.Now())
		if err != nil {
			t.Fatal(err)
		}
		return connected
	}
	before := of("before.json", func(*after.World) {})
	other := of("other.json", func(state *after.World) {
		state.Update()
		state.Put(version(), "spec.clusterID", "7ba7b810-9dad-41d1-80b4-00c04fd430c8")
	})
	_, err := inspection.Archives(t.Context(), inspection.Archived{Cluster: before}, inspection.Archived{Cluster: other}, scene.Settings{})
	if _, ok := errors.AsType[*input.Error](err); !ok || !strings.Contains(err.Error(), "the archives are from two clusters") {
		t.Errorf("error %v", err)
	}
}
