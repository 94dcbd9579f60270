package runner_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
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
		Plan: runner.PlanRequest{Files: []runner.GraphFile{{Name: "stable-4.20", Content: graph}}},
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
	node.let()
	made := w.runPath(t.Context(), t, request)
	if made.Decision != verdict.Ready || made.Updates[1].Verdict.Decision != verdict.NothingKnown {
		t.Errorf("decision %s, of the later update %s; want Ready, NothingKnown: %+v", made.Decision, made.Updates[1].Verdict.Decision, made.Updates[1].Findings)
	}
	if got := node.pods(); got != 1 {
		t.Errorf("%d pods were started for one check of two releases", got)
	}
	shared := find(t, made.Updates[1], check)
	if shared.Outcome != preflight.Pass || !strings.Contains(shared.Message, "the same as that of "+next) {
		t.Errorf("the result of the later update is that of the first: %+v", shared)
	}
	for _, each := range made.Updates {
		expectNothingButTheRecord(t, w, each.Run.ID, record.Complete)
	}
	stored, err := record.New(w.cluster.Kubernetes).Get(t.Context(), made.Updates[1].Run.ID)
	if err != nil || stored.Decision != string(verdict.NothingKnown) || !strings.Contains(stored.Selection, next) {
		t.Errorf("decision %q, selection %s, error %v; want NothingKnown, and the path", stored.Decision, stored.Selection, err)
	}
	if !stored.Provisional {
		t.Error("the record of the later update is not provisional: it would count as a verdict on the update of this cluster")
	}
}

// TestLaterUpdateIsContinued detaches from the run of the later update, whose check fails,
// and comes back to the same path.
func TestLaterUpdateIsContinued(t *testing.T) {
	w := withJobs(t)
	const later = "Etcd.Definition"
	manifest := strings.ReplaceAll(checkManifest, "quorum", "definition")
	request := w.pathTo(t, map[string]string{"0000_50_etcd_12_definition.yaml": manifest})
	w.options.Accept = accepting("Images", check)
	path := make(chan string, 1)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	whenPodOf(t, w, afterNext, func(value string) {
		path <- value
		leave()
	})
	node := newKubelet(t, w, 1)
	node.held = afterNext
	node.let()
	w.options.OnInterrupt = func(string) runner.Interruption { return runner.Detach }
	left, err := runner.RunPath(ctx, w.cluster, request, w.options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(current+","+next+","+afterNext, <-path); diff != "" {
		t.Errorf("the check receives the whole path: -want +got:\n%s", diff)
	}
	if left.Decision == verdict.Ready || !left.Interrupted() {
		t.Errorf("decision %s, interrupted %t; want no Ready, true", left.Decision, left.Interrupted())
	}
	close(node.freed)
	made := w.runPath(t.Context(), t, request)
	if made.Decision != verdict.Blocked || made.Updates[1].Run.ID != left.Updates[1].Run.ID {
		t.Errorf("decision %s of run %s, want Blocked of run %s", made.Decision, made.Updates[1].Run.ID, left.Updates[1].Run.ID)
	}
	failed := find(t, made.Updates[1], later)
	if failed.Outcome != preflight.Fail || !strings.Contains(failed.Message, "Judged from "+current) {
		t.Errorf("a failure of a later update states from which release it was judged: %+v", failed)
	}
}

// whenPodOf calls do with PREFLIGHT_UPDATE_PATH of the first pod for a target.
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
