package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/zoo"
)

// The versions of the path of these tests.
const first, middle, last = "5.0.4", "5.1.3", "5.2.0"

// offerPath makes the cluster offer releases with these checks, and returns the path of a
// file with the update graph.
func offerPath(t *testing.T, releases map[string]map[string]animal) (file string) {
	t.Helper()
	pullSpecs := map[string]string{}
	for version, checks := range releases {
		pullSpec, err := testCluster.Push(t.Context(), version, checks)
		if err != nil {
			t.Fatal(err)
		}
		pullSpecs[version] = pullSpec
	}
	w := testCluster.Offer(t, pullSpecs, zooNamespace)
	w.State.Version = first
	w.Apply(t)
	graph, err := json.Marshal(map[string]any{
		"nodes": []map[string]string{
			{"version": first, "payload": w.State.Image}, {"version": middle, "payload": pullSpecs[middle]}, {"version": last, "payload": pullSpecs[last]},
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

// readsHabitats grants a check access to list habitats.
const readsHabitats = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: candidate, namespace: CAGE` + zoo.Annotated + `}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: zoo-habitats` + zoo.Annotated + `},
 rules: [{apiGroups: [zoo.example.com], resources: [habitats], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: zoo-habitats` + zoo.Annotated + `},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: zoo-habitats},
 subjects: [{kind: ServiceAccount, name: candidate, namespace: CAGE}]}
`

// Each update of a path runs the checks of its signed release in pods. A check that both
// releases have runs once. A check of the last release fails, since the present cluster
// lacks a resource that the release in the middle adds: the finding blocks the path, and
// states the release from which it was judged.
func TestPathRunsTheChecksOfEachRelease(t *testing.T) {
	file := offerPath(t, map[string]map[string]animal{
		middle: {"steady": {Ending: "pass", Beside: habitats}},
		last:   {"steady": {Ending: "pass"}, "habitat": {Ending: "habitat", Change: zoo.AsCandidate, Beside: readsHabitats}},
	})
	got := call(t, "run", "-o", "json", "--path", "--to", last, "--graph", file)
	var path report.Path
	if err := json.Unmarshal([]byte(got.Stdout), &path); err != nil {
		t.Fatalf("%v: %s%s", err, got.Stdout, got.Stderr)
	}
	if got.Code != 3 || path.Decision != verdict.Blocked || len(path.Updates) != 2 || path.Updates[0].Verdict.Decision != verdict.Ready {
		t.Fatalf("exit code %d, %s\n%s%s", got.Code, path.Decision, got.Stderr, got.Stdout)
	}
	steady := byName(path.Updates[0])["Zoo.Animal"]
	if steady.Outcome != preflight.Pass || steady.Job == nil {
		t.Fatalf("the check of the first release: %+v, want Pass in a Job", steady)
	}
	outcomes := map[preflight.Outcome]finding.Finding{}
	for _, f := range path.Updates[1].Findings {
		if f.Name == "Zoo.Animal" {
			outcomes[f.Outcome] = f
		}
	}
	want := "the resource habitats.zoo.example.com does not exist\nJudged from " + first + ", which the cluster runs; the update to " + middle + " may change this."
	if diff := cmp.Diff(want, outcomes[preflight.Fail].Message); diff != "" {
		t.Errorf("the check that only the last release has: -want +got:\n%s\n%+v", diff, path.Updates[1].Findings)
	}
	if shared := outcomes[preflight.Pass]; shared.Job == nil || shared.Job.Name != steady.Job.Name {
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
	got := call(t, "history", "-o", "json")
	if err := json.Unmarshal([]byte(got.Stdout), &history); err != nil {
		t.Fatalf("%v: %s%s", err, got.Stdout, got.Stderr)
	}
	return slices.DeleteFunc(history.Runs, func(run historyEntry) bool { return run.To != version })
}

// detachAt detaches from a path when a check runs, and returns the run of its last update.
func detachAt(t *testing.T, check string, args ...string) historyEntry {
	t.Helper()
	command := preflightCommand(t, append([]string{"run", "-o", "json", "--on-interrupt", "detach"}, args...)...)
	var stdout bytes.Buffer
	command.Stdout = &stdout
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), check+": running") {
		t.Log(lines.Text())
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		t.Log(lines.Text())
	}
	_ = command.Wait() // the exit code is compared
	var detached report.Path
	if err := json.Unmarshal(stdout.Bytes(), &detached); err != nil || command.ProcessState.ExitCode() != 130 || detached.Decision == verdict.Ready {
		t.Fatalf("exit code %d, %s, %v; want 130, and not Ready", command.ProcessState.ExitCode(), detached.Decision, err)
	}
	run := runsOf(t, last)[0]
	if diff := cmp.Diff([]string{first, middle, last}, run.Path); diff != "" || run.ID != detached.Updates[1].Run.ID || run.Phase != "Running" {
		t.Fatalf("the run of the later update: %+v; its path: -want +got:\n%s", run, diff)
	}
	return run
}

// Each update of a detached path is a run in the history. The run of the later update is
// canceled by its ID, or continued with "attach" and the graph of the path.
func TestDetachFromPath(t *testing.T) {
	waiting := animal{Ending: "patient", Change: zoo.AsCandidate, Beside: zoo.Access("get", zoo.Annotated)}
	file := offerPath(t, map[string]map[string]animal{middle: {"steady": {Ending: "pass"}}, last: {"patient": waiting}})
	path := []string{"--hop", middle, "--hop", last, "--graph", file}

	canceled := detachAt(t, "Zoo.Patient", path...)
	if runs := runsOf(t, middle); len(runs) == 0 || runs[0].Phase != "Complete" || runs[0].Decision != "Ready" || runs[0].Path != nil {
		t.Errorf("the run of the first update: %+v, want Complete, Ready and no path", runs)
	}
	if got := call(t, "cancel", canceled.ID); got.Code != 0 {
		t.Fatalf("cancel: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if run := runsOf(t, last)[0]; run.ID != canceled.ID || run.Phase != "Canceled" || len(run.Path) != 3 {
		t.Errorf("the run: %+v, want Canceled with its path", run)
	}
	testCluster.ExpectNothingLeft(t)

	detached := detachAt(t, "Zoo.Patient", path...)
	testCluster.Kubectl(t, "-n", zooNamespace, "create", "configmap", "go")
	defer testCluster.Kubectl(t, "-n", zooNamespace, "delete", "configmap", "go")
	got := call(t, "attach", detached.ID, "--graph", file, "--prometheus", monitoring, "-o", "json")
	var result report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &result); err != nil {
		t.Fatalf("%v: %s%s", err, got.Stdout, got.Stderr)
	}
	if got.Code != 4 || result.Run.ID != detached.ID || result.Verdict.Decision != verdict.NothingKnown {
		t.Errorf("attach: exit code %d, %s of run %s; want 4, NothingKnown of run %s\n%s", got.Code, result.Verdict.Decision, result.Run.ID, detached.ID, got.Stderr)
	}
	if run := runsOf(t, last)[0]; run.Phase != "Complete" || run.Decision != "NothingKnown" {
		t.Errorf("the run: %+v, want Complete and NothingKnown", run)
	}
	testCluster.ExpectNothingLeft(t)
}
