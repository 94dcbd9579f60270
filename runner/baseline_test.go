package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
)

// shop is the only object of the states that the sampler reads.
var shop = baseline.Key{Kind: baseline.Deployment, Namespace: "shop", Name: "web"}

// samples reads a state with that object, and counts its calls.
func samples(object baseline.Object, err error, calls *int) runner.Sampler {
	return func(_ context.Context, from *snapshot.Cluster, _ *hypershift.State, monitored *monitoring.Client, now time.Time) (baseline.State,
		error,
	) {
		*calls++
		if from == nil || monitored == nil || now.IsZero() {
			err = errors.New("a state cannot be read")
		}
		return baseline.State{
			Taken: now, ClusterID: "id", Version: current, Image: digested("1"),
			Objects: map[baseline.Key]baseline.Object{shop: object},
		}, err
	}
}

// sampledRun makes a run of the world whose checks pass.
func sampledRun(t *testing.T, w world) report.Report {
	t.Helper()
	newKubelet(t, w, 0).End()
	return w.run(t)
}

// A verdict that permits the update has its baseline before it exists.
func TestBaselineIsStoredBeforeTheEndOfTheRun(t *testing.T) {
	for name, noJobs := range map[string]bool{"Held": false, "WithoutJobs": true} {
		t.Run(name, func(t *testing.T) {
			w := withJobs(t)
			w.options.Selection.NoJobs = noJobs
			records, store := recordstore.New(w.cluster.Kubernetes), baselinestore.New(w.cluster.Kubernetes)
			calls := 0
			sample := samples(baseline.Object{Desired: 2, Ready: 2}, nil, &calls)
			ended := func() (complete int) {
				all, err := records.List(t.Context())
				if err != nil {
					t.Error(err)
				}
				for _, each := range all {
					if each.Phase == record.Complete {
						complete++
					}
				}
				return complete
			}
			before := ended()
			w.options.Hooks.Sampler = func(ctx context.Context, from *snapshot.Cluster, of *hypershift.State, monitored *monitoring.Client,
				now time.Time,
			) (baseline.State, error) {
				if ended() != before {
					t.Error("the run has ended before its baseline was read")
				}
				return sample(ctx, from, of, monitored, now)
			}
			w.options.Hooks.Observer = observer{decided: func(decided report.Report) {
				if _, err := store.Get(t.Context(), decided.Run.ID); err != nil {
					t.Errorf("the verdict is shown before its baseline is stored: %v", err)
				}
			}}
			began := w.cluster.Now().Add(-time.Second)
			decided := sampledRun(t, w)
			found, err := store.Get(t.Context(), decided.Run.ID)
			if err != nil || calls != 1 || len(decided.Notices) > 0 {
				t.Fatalf("%d states were read, notices %v, error %v", calls, decided.Notices, err)
			}
			recorded, err := records.Get(t.Context(), decided.Run.ID)
			if err != nil || !recorded.Baseline.Equal(found.State.Taken.Truncate(time.Second)) || decided.Run.Baseline == "" {
				t.Errorf("the record states a baseline of %s, and the report of %q, error %v", recorded.Baseline, decided.Run.Baseline, err)
			}
			if found.State.Taken.Before(began) || found.State.Taken.After(w.cluster.Now()) || found.Digest != nil {
				t.Errorf("taken at %s, redacted %t; want a plain one that was taken since %s", found.State.Taken, found.Digest != nil, began)
			}
			if diff := cmp.Diff(map[baseline.Key]baseline.Object{shop: {Desired: 2, Ready: 2}}, found.State.Objects); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			expectOnlyRecord(t, w, decided.Run.ID, record.Complete)
		})
	}
}

func TestBaselineIsNotStored(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(w *world)
	}{
		"Off":              {reason: "the user stores none", change: func(w *world) { w.options.Baseline = baselinestore.None }},
		"UpdateInProgress": {reason: "no update starts from that state", change: func(w *world) { w.state.Updating = true }},
	} {
		t.Run(name, func(t *testing.T) {
			w := withJobs(t)
			calls := 0
			w.options.Hooks.Sampler = samples(baseline.Object{}, nil, &calls)
			tc.change(&w)
			w.apply(t)
			decided := sampledRun(t, w)
			_, err := baselinestore.New(w.cluster.Kubernetes).Get(t.Context(), decided.Run.ID)
			if absent, ok := errors.AsType[*baselinestore.AbsentError](err); !ok || absent.Reason != baselinestore.NotTaken || calls != 0 ||
				len(decided.Notices) > 0 {
				t.Errorf("%s: %d states were read, notices %v, error %v", tc.reason, calls, decided.Notices, err)
			}
			expectOnlyRecord(t, w, decided.Run.ID, record.Complete)
		})
	}
	t.Run("Interrupted", func(t *testing.T) {
		w := withJobs(t)
		calls := 0
		w.options.Hooks.Sampler = samples(baseline.Object{}, nil, &calls)
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		whenJobExists(t, w, interrupt)
		decided, err := runner.Run(ctx, w.cluster, w.target, w.options)
		if err != nil || decided.Run.Phase != report.PhaseInterrupted || calls != 0 {
			t.Errorf("phase %s, %d states were read, error %v", decided.Run.Phase, calls, err)
		}
	})
	t.Run("LaterUpdateOfAPath", func(t *testing.T) {
		w := withJobs(t)
		calls := 0
		w.options.Hooks.Sampler = samples(baseline.Object{}, nil, &calls)
		request := w.pathTo(t, map[string]string{"0000_50_etcd_11_quorum.yaml": checkManifest})
		newKubelet(t, w, 0).End()
		made := w.runPath(t.Context(), t, request)
		store := baselinestore.New(w.cluster.Kubernetes)
		_, first := store.Get(t.Context(), made.Updates[0].Run.ID)
		_, later := store.Get(t.Context(), made.Updates[1].Run.ID)
		if first != nil || later == nil || calls != 1 {
			t.Errorf("%d states were read, errors %v and %v; want the baseline of the first update only", calls, first, later)
		}
	})
}

func TestRedactedBaseline(t *testing.T) {
	w := withJobs(t)
	calls := 0
	w.options.Baseline, w.options.Hooks.Sampler = baselinestore.Digests, samples(baseline.Object{}, nil, &calls)
	decided := sampledRun(t, w)
	found, err := baselinestore.New(w.cluster.Kubernetes).Get(t.Context(), decided.Run.ID)
	if err != nil || found.Digest == nil {
		t.Fatalf("redacted %t, error %v", found.Digest != nil, err)
	}
	if diff := cmp.Diff([]baseline.Key{shop.Redacted(found.Digest)}, found.State.Keys()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A baseline that cannot be stored changes no verdict, and the report states it.
func TestBaselineThatFailsIsANotice(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"Reading": {
			err:  errors.New("the API server is overloaded"),
			want: "no baseline is stored, so the state after the update cannot be compared with the state before it: the API server is overloaded",
		},
		"Writing": {want: "could not store the baseline: no run has the ID"}, // its record was deleted, which is written again at the end
	} {
		t.Run(name, func(t *testing.T) {
			w := withJobs(t)
			calls := 0
			sample := samples(baseline.Object{}, tc.err, &calls)
			w.options.Hooks.Sampler = func(ctx context.Context, from *snapshot.Cluster, of *hypershift.State, monitored *monitoring.Client,
				now time.Time,
			) (baseline.State, error) {
				if tc.err == nil {
					running := metav1.ListOptions{LabelSelector: record.LabelPhase + "=" + string(record.Running)}
					if err := w.cluster.Kubernetes.CoreV1().ConfigMaps(record.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
						running); err != nil {
						t.Error(err)
					}
				}
				return sample(ctx, from, of, monitored, now)
			}
			stepped := false
			w.options.Hooks.Observer = observer{step: func(step string) { stepped = stepped || strings.Contains(step, tc.want) }}
			decided := sampledRun(t, w)
			if decided.Verdict.Decision != verdict.Ready || len(decided.Notices) != 1 || !strings.Contains(decided.Notices[0], tc.want) || !stepped {
				t.Errorf("%s, notices %v, shown %t; want Ready with the notice %q", decided.Verdict.Decision, decided.Notices, stepped, tc.want)
			}
			recorded, err := recordstore.New(w.cluster.Kubernetes).Get(t.Context(), decided.Run.ID)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := standing.Stored(recorded)
			if diff := cmp.Diff(decided.Notices, stored.Notices); err != nil || diff != "" {
				t.Errorf("error %v, recorded (-want +got):\n%s", err, diff)
			}
		})
	}
}
