package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/collector/updateplan/planner"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/release"
)

// afterNext is the release after next.
const afterNext = "4.20.1"

// pathTo pushes and signs the release after next with these manifests, and requests the
// path to it. Its graph has both updates.
func (w *world) pathTo(t *testing.T, manifests map[string]string) runner.PathRequest {
	t.Helper()
	etcd, err := release.BuildImage(t.Context(), w.registry, "etcd", release.Image{})
	if err != nil {
		t.Fatal(err)
	}
	pullSpec, err := release.Push(t.Context(), w.registry, release.Release{
		Version: afterNext, Components: []release.Component{{Name: "etcd", Image: etcd, Source: "quay.io/openshift/etcd", Manifests: manifests}},
	})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := w.signer.Sign(pullSpec, "quay.io/openshift-release-dev/ocp-release:"+afterNext+"-x86_64")
	if err != nil {
		t.Fatal(err)
	}
	w.state.Signatures.Add(pullSpec, signature)
	w.apply(t)
	graph, err := json.Marshal(map[string]any{
		"nodes": []map[string]string{
			{"version": current, "payload": digested("1")}, {"version": next, "payload": w.pullSpec}, {"version": afterNext, "payload": pullSpec},
		},
		"edges": [][]int{{0, 1}, {1, 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return runner.PathRequest{
		Hops: []runner.Target{{Version: next}, {Version: afterNext}},
		Plan: planner.Request{Graph: graphsource.Request{Files: []graphsource.File{{Name: "stable-4.20", Content: graph}}}},
	}
}

func (w world) runPath(ctx context.Context, t *testing.T, request runner.PathRequest) report.Path {
	t.Helper()
	made, err := runner.RunPath(ctx, w.cluster, request, w.options)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Updates) != 2 {
		t.Fatalf("%d updates have a report, want 2: %+v", len(made.Updates), made)
	}
	return made
}

func TestCheckOfTwoReleasesRunsOnce(t *testing.T) {
	w := withJobs(t)
	request := w.pathTo(t, map[string]string{"0000_50_etcd_11_quorum.yaml": checkManifest})
	node := newKubelet(t, w, 0)
	node.End()
	made := w.runPath(t.Context(), t, request)
	if made.Decision != verdict.Ready || made.Updates[1].Verdict.Decision != verdict.NothingKnown {
		t.Errorf("decision %s, of the later update %s; want Ready, NothingKnown: %+v", made.Decision, made.Updates[1].Verdict.Decision,
			made.Updates[1].Findings)
	}
	if got := node.Pods(); got != 1 {
		t.Errorf("%d pods were started for one check of two releases", got)
	}
	shared := find(t, made.Updates[1], check)
	if shared.Outcome != preflight.Pass || !strings.Contains(shared.Message, "identical to "+next) {
		t.Errorf("want the result of the first update for the later one, got %+v", shared)
	}
	for _, each := range made.Updates {
		expectOnlyRecord(t, w, each.Run.ID, record.Complete)
	}
	stored, err := recordstore.New(w.cluster.Kubernetes).Get(t.Context(), made.Updates[1].Run.ID)
	if err != nil || stored.Decision != string(verdict.NothingKnown) || !strings.Contains(stored.Selection, next) {
		t.Errorf("decision %q, selection %s, error %v; want NothingKnown, and the path", stored.Decision, stored.Selection, err)
	}
	if !stored.Provisional {
		t.Error("the record of the later update is not provisional: it would count as a verdict on the update of this cluster")
	}
}

// TestLaterUpdateIsContinued detaches from the run of the later update, whose check fails,
// and runs the same path again.
func TestLaterUpdateIsContinued(t *testing.T) {
	w := withJobs(t)
	const later = "Etcd.Definition"
	manifest := strings.ReplaceAll(checkManifest, "quorum", "definition")
	request := w.pathTo(t, map[string]string{"0000_50_etcd_12_definition.yaml": manifest})
	w.options.Judgement.Accept = accepting("Images", check)
	path := make(chan string, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	whenPodOf(t, w, afterNext, func(value string) {
		path <- value
		interrupt()
	})
	node := newKubelet(t, w, preflight.ExitFail)
	node.Held = kubelet.OfTarget(afterNext)
	node.End()
	w.options.Hooks.OnInterrupt = func(string) runner.Interruption { return runner.Detach }
	detached, err := runner.RunPath(ctx, w.cluster, request, w.options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(current+","+next+","+afterNext, <-path); diff != "" {
		t.Errorf("the path that the check receives: -want +got:\n%s", diff)
	}
	if detached.Decision == verdict.Ready || !detached.Interrupted() {
		t.Errorf("decision %s, interrupted %t; want no Ready, true", detached.Decision, detached.Interrupted())
	}
	node.Free()
	made := w.runPath(t.Context(), t, request)
	if made.Decision != verdict.Blocked || made.Updates[1].Run.ID != detached.Updates[1].Run.ID {
		t.Errorf("decision %s of run %s, want Blocked of run %s", made.Decision, made.Updates[1].Run.ID, detached.Updates[1].Run.ID)
	}
	failed := find(t, made.Updates[1], later)
	if failed.Outcome != preflight.Fail || !strings.Contains(failed.Message, "Evaluated for "+current) {
		t.Errorf("want a failure of a later update with the release from which it was judged, got %+v", failed)
	}
}

// detachedPath is a path from which a test detached during the update to a version. The
// node ends the checks of other updates.
type detachedPath struct {
	world

	request runner.PathRequest
	path    report.Path
	node    *kubelet.Kubelet
}

// detachPath detaches from the path when the check of the update to that version runs.
func detachPath(t *testing.T, at string) detachedPath {
	t.Helper()
	w := withJobs(t)
	request := w.pathTo(t, map[string]string{"0000_50_etcd_12_definition.yaml": strings.ReplaceAll(checkManifest, "quorum", "definition")})
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	whenPodOf(t, w, at, func(string) { interrupt() })
	node := newKubelet(t, w, 0)
	node.Held = kubelet.OfTarget(at)
	node.End()
	detaching := w.options
	detaching.Hooks.OnInterrupt = func(string) runner.Interruption { return runner.Detach }
	detached, err := runner.RunPath(ctx, w.cluster, request, detaching)
	if err != nil || !detached.Interrupted() || detached.Decision == verdict.Ready {
		t.Fatalf("decision %s, interrupted %t, error %v; want no Ready, true", detached.Decision, detached.Interrupted(), err)
	}
	return detachedPath{world: w, request: request, path: detached, node: node}
}

// id is the ID of the detached run.
func (p detachedPath) id() string { return p.path.Updates[len(p.path.Updates)-1].Run.ID }

// The run of each update of a path is attached to by its ID. The risks of a later update
// are read from the graph again: without a graph that has it, they are Unknown.
func TestAttachToAnUpdateOfAPath(t *testing.T) {
	const risks = "ClusterVersionRecommendedUpdate"
	for name, tc := range map[string]struct {
		reason, at string
		graph      func(graphsource.Request) graphsource.Request
		want       verdict.Decision
		risks      preflight.Outcome
		path       []string
	}{
		"First": {
			reason: "the first update needs no graph", at: next,
			graph: func(graphsource.Request) graphsource.Request { return graphsource.Request{} },
			want:  verdict.Ready, risks: preflight.Pass,
		},
		"Later": {
			reason: "the graph contains the update without risks", at: afterNext,
			graph: func(r graphsource.Request) graphsource.Request { return r },
			want:  verdict.NothingKnown, risks: preflight.Pass, path: []string{current, next, afterNext},
		},
		"LaterWithoutGraph": {
			reason: "no graph was given, and the cluster has no channel", at: afterNext,
			graph: func(graphsource.Request) graphsource.Request { return graphsource.Request{} },
			want:  verdict.Undecided, risks: preflight.Unknown, path: []string{current, next, afterNext},
		},
		"LaterOffline": {
			reason: "no graph is stored", at: afterNext,
			graph: func(graphsource.Request) graphsource.Request {
				return graphsource.Request{Channels: []string{"stable-4.20"}, Offline: true}
			},
			want: verdict.Undecided, risks: preflight.Unknown, path: []string{current, next, afterNext},
		},
		"LaterNotInGraph": {
			reason: "the update was removed from the graph", at: afterNext,
			graph: func(r graphsource.Request) graphsource.Request {
				content := strings.Replace(string(r.Files[0].Content), ",[1,2]", "", 1)
				return graphsource.Request{Files: []graphsource.File{{Name: "stable-4.20", Content: []byte(content)}}}
			},
			want: verdict.Undecided, risks: preflight.Unknown, path: []string{current, next, afterNext},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := detachPath(t, tc.at)
			p.node.Free()
			decided, err := runner.Attach(t.Context(), p.cluster, p.id(), tc.graph(p.request.Plan.Graph), p.options)
			if err != nil || decided.Run.ID != p.id() || decided.Verdict.Decision != tc.want {
				t.Fatalf("%s: %s of run %s, error %v; want %s of run %s: %+v", tc.reason, decided.Verdict.Decision, decided.Run.ID, err, tc.want,
					p.id(), decided.Findings)
			}
			if got := find(t, decided, risks); got.Outcome != tc.risks {
				t.Errorf("%s: the risks are %s: %s; want %s", tc.reason, got.Outcome, got.Message, tc.risks)
			}
			stored, err := recordstore.New(p.cluster.Kubernetes).Get(t.Context(), p.id())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.path, runner.PathOf(stored)); diff != "" {
				t.Errorf("%s: the path of the record: -want +got:\n%s", tc.reason, diff)
			}
			expectOnlyRecord(t, p.world, p.id(), record.Complete)
		})
	}
}

// The run of each update of a path is canceled by its ID.
func TestCancelAnUpdateOfAPath(t *testing.T) {
	for _, at := range []string{next, afterNext} {
		t.Run(at, func(t *testing.T) {
			p := detachPath(t, at)
			ended, err := hold.Cancel(t.Context(), place.Of(p.cluster, hosted.Estate{}), p.id(),
				progress.New(p.options.Hooks.Observer, slog.New(slog.DiscardHandler)))
			if err != nil || ended.Phase != record.Canceled || ended.Provisional != (at == afterNext) {
				t.Errorf("phase %s, provisional %t, error %v; want Canceled, and provisional for the later update alone", ended.Phase,
					ended.Provisional, err)
			}
			p.node.Free()
			expectOnlyRecord(t, p.world, p.id(), record.Canceled)
		})
	}
}

// A path of one update has the result of Run, and an additional update never makes a path
// Ready that was not.
func TestPathOfOneUpdateIsRun(t *testing.T) {
	w := newWorld(t, map[string]string{})
	request := w.pathTo(t, nil)
	random := rand.New(rand.NewPCG(14, 4))
	decisions := map[verdict.Decision]bool{}
	for range 10 {
		w.state.Gates, w.state.Acks = map[string]string{}, map[string]string{}
		accepted := []string{check}
		for _, gate := range []string{"ack-4.18-a", "ack-4.18-b", "ack-4.17-c"} {
			if random.IntN(3) == 0 {
				w.state.Gates[gate] = "Read https://example.com first."
			}
			if random.IntN(2) == 0 {
				w.state.Acks[gate] = "true"
			}
		}
		if random.IntN(2) == 0 {
			accepted = nil
		}
		w.options.Judgement.Accept = accepting(accepted...)
		w.apply(t)
		alone := w.run(t)
		decisions[alone.Verdict.Decision] = true
		single := request
		single.Hops = request.Hops[:1]
		made, err := runner.RunPath(t.Context(), w.cluster, single, w.options)
		if err != nil || len(made.Updates) != 1 {
			t.Fatalf("%d updates, error %v", len(made.Updates), err)
		}
		state := fmt.Sprintf("gates %v, acks %v, accepted %v", w.state.Gates, w.state.Acks, accepted)
		if diff := cmp.Diff(alone.Findings, made.Updates[0].Findings); diff != "" || made.Decision != alone.Verdict.Decision {
			t.Errorf("%s: the path is %s, Run returned %s: -run +path:\n%s", state, made.Decision, alone.Verdict.Decision, diff)
		}
		longer := w.runPath(t.Context(), t, request)
		if diff := cmp.Diff(alone.Findings, longer.Updates[0].Findings); diff != "" {
			t.Errorf("%s: the first of two updates: -run +path:\n%s", state, diff)
		}
		if longer.Decision == verdict.Ready && made.Decision != verdict.Ready || made.Decision == verdict.Blocked &&
			longer.Decision != verdict.Blocked {
			t.Errorf("%s: one update is %s, and two are %s", state, made.Decision, longer.Decision)
		}
	}
	if len(decisions) < 3 {
		t.Errorf("the cases have the decisions %v only", decisions)
	}
}

// whenPodOf calls do once a pod for a target exists, with its PREFLIGHT_UPDATE_PATH.
func whenPodOf(t *testing.T, w world, target string, do func(path string)) {
	t.Helper()
	pods, err := w.cluster.Kubernetes.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{LabelSelector: label.Run})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer pods.Stop()
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type != watch.Added {
				continue
			}
			environment := environmentOf(pod)
			if environment["PREFLIGHT_TARGET_VERSION"] == target {
				do(environment["PREFLIGHT_UPDATE_PATH"])
				return
			}
		}
	}()
}

func environmentOf(pod *corev1.Pod) map[string]string {
	environment := map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		environment[variable.Name] = variable.Value
	}
	return environment
}

func TestPathThatCannotBeChecked(t *testing.T) {
	w := newWorld(t, map[string]string{})
	request := w.pathTo(t, nil)
	for name, tc := range map[string]struct {
		reason string
		change func(*runner.PathRequest)
		want   string
	}{
		"NotInGraph": {
			reason: "a release that neither the graph nor the cluster has", want: "4.99.0",
			change: func(r *runner.PathRequest) { r.Hops = []runner.Target{{Version: next}, {Version: "4.99.0"}} },
		},
		"Latest": {
			reason: "an update of a path is named", want: "names neither a version nor an image",
			change: func(r *runner.PathRequest) { r.Hops = []runner.Target{{Latest: true}} },
		},
		"TooMany": {
			reason: "checks receive a bounded path", want: "more than 31",
			change: func(r *runner.PathRequest) { r.Hops = make([]runner.Target, 32) },
		},
		"NoPath": {
			reason: "the graph has no path", want: "4.99.0",
			change: func(r *runner.PathRequest) { r.Hops, r.Plan.Target.Version = nil, "4.99.0" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := request
			tc.change(&changed)
			_, err := runner.RunPath(t.Context(), w.cluster, changed, w.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want one with %q", tc.reason, err, tc.want)
			}
		})
	}
}
