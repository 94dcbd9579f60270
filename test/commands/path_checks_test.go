package commands_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/zoo"
)

// The versions of the path of these tests.
const zooFirst, zooMiddle, zooLast = "5.0.4", "5.1.3", "5.2.0"

// offerPath makes the cluster offer releases with these checks, and returns the path of a
// file with the update graph.
func offerPath(t *testing.T, releases map[string]map[string]animal) (file string) {
	t.Helper()
	byDefault.use(t)
	pullSpecs := map[string]string{}
	for version, checks := range releases {
		pullSpec, err := testCluster.Push(t.Context(), version, checks)
		if err != nil {
			t.Fatal(err)
		}
		pullSpecs[version] = pullSpec
	}
	w := testCluster.Offer(t, pullSpecs, zooNamespace)
	w.State.Version = zooFirst
	w.Apply(t)
	graph, err := json.Marshal(map[string]any{
		"nodes": []map[string]string{
			{"version": zooFirst, "payload": w.State.Image},
			{"version": zooMiddle, "payload": pullSpecs[zooMiddle]},
			{"version": zooLast, "payload": pullSpecs[zooLast]},
		},
		"edges": [][]int{{0, 1}, {1, 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "stable-5.2.json")
	if err := os.WriteFile(file, graph, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// habitats is a CustomResourceDefinition of the release in the middle. It is not part of a
// preflight, so that a run does not create it.
const habitats = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: habitats.zoo.example.com}
spec:
  group: zoo.example.com
  scope: Cluster
  names: {kind: Habitat, plural: habitats, singular: habitat, listKind: HabitatList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// Each update of a path runs the checks of its signed release. A check that both releases
// have runs once. A check of the last release fails, from the point of view of the present
// cluster: the finding blocks the path, and states the release from which it was judged.
func TestPathRunsTheChecksOfEachRelease(t *testing.T) {
	file := offerPath(t, map[string]map[string]animal{
		zooMiddle: {"steady": {Plain: true, Beside: habitats}},
		zooLast: {"steady": {Plain: true}, "habitat": {
			Ending: "fail", Plain: true, Change: zoo.AsCandidate,
			Beside: zoo.Access("list", zoo.Annotated),
		}},
	})
	node := newKubelet(t, 0)
	node.Code = exitCode
	node.End()
	got := call(t, "run", "-o", "json", "--path", "--to", zooLast, "--graph", file)
	var path report.Path
	decode(t, got, &path)
	if got.Code != exit.Blocked || path.Decision != verdict.Blocked || len(path.Updates) != 2 ||
		path.Updates[0].Verdict.Decision != verdict.Ready {
		t.Fatalf("exit code %d, %s\n%s%s", got.Code, path.Decision, got.Stderr, got.Stdout)
	}
	steady := byName(path.Updates[0])["Zoo.Steady"]
	if steady.Outcome != preflight.Pass || steady.Job == nil {
		t.Fatalf("the check of the first release: %+v, want Pass in a Job", steady)
	}
	later := byName(path.Updates[1])
	want := "Evaluated for " + zooFirst + ", which the cluster runs; the update to " + zooMiddle + " may change this."
	if f := later["Zoo.Habitat"]; f.Outcome != preflight.Fail || !strings.HasSuffix(f.Message, want) {
		t.Errorf("the check that only the last release has: %+v, want Fail and %q", f, want)
	}
	if shared := later["Zoo.Steady"]; shared.Outcome != preflight.Pass || shared.Job == nil || shared.Job.Name != steady.Job.Name {
		t.Errorf("the check of both releases: %+v, want the Job of %+v", shared, steady)
	}
	testCluster.ExpectNothingLeft(t)
}

// historyEntry is a run in the output of "history".
type historyEntry struct {
	ID       string   `json:"id"`
	Phase    string   `json:"phase"`
	Decision string   `json:"decision"`
	To       string   `json:"to"`
	Path     []string `json:"path"`
}

// runsOf returns the recorded runs of a release, newest first.
func runsOf(t *testing.T, version string) []historyEntry {
	t.Helper()
	var history struct {
		Runs []historyEntry `json:"runs"`
	}
	decode(t, call(t, "history", "-o", "json"), &history)
	return slices.DeleteFunc(history.Runs, func(run historyEntry) bool { return run.To != version })
}

// detach starts a path, detaches from it when the check of the last release has a pod, and
// returns the run of its last update.
func detach(t *testing.T, node *kubelet.Kubelet, args ...string) historyEntry {
	t.Helper()
	run := start(t, append([]string{"run", "-o", "json", "--on-interrupt", "detach"}, args...)...)
	for !kubelet.OfTarget(zooLast)(firstPod(t, node, run)) {
		continue
	}
	run.Interrupt()
	got := run.Wait()
	var detached report.Path
	decode(t, got, &detached)
	if got.Code != exit.Interrupted || detached.Decision == verdict.Ready {
		t.Fatalf("exit code %d, %s; want %d, and not Ready", got.Code, detached.Decision, exit.Interrupted)
	}
	newest := runsOf(t, zooLast)[0]
	if diff := cmp.Diff([]string{zooFirst, zooMiddle, zooLast}, newest.Path); diff != "" || newest.ID != detached.Updates[1].Run.ID ||
		newest.Phase != "Running" {
		t.Fatalf("the run of the later update: %+v; its path: -want +got:\n%s", newest, diff)
	}
	return newest
}

// Each update of a detached path is a run in the history. The run of the later update is
// canceled by its ID, or continued with "attach" and the graph of the path.
func TestDetachFromPath(t *testing.T) {
	waiting := animal{Plain: true, Change: zoo.AsCandidate, Beside: zoo.Access("get", zoo.Annotated)}
	file := offerPath(t, map[string]map[string]animal{zooMiddle: {"steady": {Plain: true}}, zooLast: {"patient": waiting}})
	node := newKubelet(t, 0)
	node.Held = kubelet.OfTarget(zooLast)
	node.End()
	path := []string{"--hop", zooMiddle, "--hop", zooLast, "--graph", file}

	canceled := detach(t, node, path...)
	if runs := runsOf(t, zooMiddle); len(runs) == 0 || runs[0].Phase != "Complete" || runs[0].Decision != "Ready" || runs[0].Path != nil {
		t.Errorf("the run of the first update: %+v, want Complete, Ready and no path", runs)
	}
	if got := call(t, "cancel", canceled.ID); got.Code != exit.Ready {
		t.Fatalf("cancel: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if run := runsOf(t, zooLast)[0]; run.ID != canceled.ID || run.Phase != "Canceled" || len(run.Path) != 3 {
		t.Errorf("the run: %+v, want Canceled with its path", run)
	}
	testCluster.ExpectNothingLeft(t)

	detached := detach(t, node, path...)
	node.Free()
	got := call(t, "attach", detached.ID, "--graph", file, "--prometheus", testCluster.Monitoring, "-o", "json")
	var result report.Report
	decode(t, got, &result)
	if got.Code != exit.Undecided || result.Run.ID != detached.ID || result.Verdict.Decision != verdict.NothingKnown {
		t.Errorf("attach: exit code %d, %s of run %s; want %d, NothingKnown of run %s\n%s", got.Code, result.Verdict.Decision, result.Run.ID,
			exit.Undecided, detached.ID, got.Stderr)
	}
	if run := runsOf(t, zooLast)[0]; run.Phase != "Complete" || run.Decision != "NothingKnown" {
		t.Errorf("the run: %+v, want Complete and NothingKnown", run)
	}
	testCluster.ExpectNothingLeft(t)
}
