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

// The path of these tests.
const first, middle, last = "5.0.4", "5.1.3", "5.2.0"

// offerPath has the cluster offer releases with these checks, and returns the file with the
// graph of the path.
func offerPath(t *testing.T, releases map[string]map[string]animal) (file string) {
	t.Helper()
	pullSpecs := map[string]string{}
	for version, checks := range releases {
		pullSpec, err := house.Push(t.Context(), version, checks)
		if err != nil {
			t.Fatal(err)
		}
		pullSpecs[version] = pullSpec
	}
	w := house.Offer(t, pullSpecs, zooNamespace)
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

// habitats is the CustomResourceDefinition that the release in the middle adds to the
// cluster; it is no part of the checks.
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

// readsHabitats lets a check list the habitats.
const readsHabitats = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: captive, namespace: CAGE` + zoo.Marked + `}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: zoo-habitats` + zoo.Marked + `},
 rules: [{apiGroups: [zoo.example.com], resources: [habitats], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: zoo-habitats` + zoo.Marked + `},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: zoo-habitats},
 subjects: [{kind: ServiceAccount, name: captive, namespace: CAGE}]}
`

// Each update of a path runs the checks of its signed release in pods: a check that both
// releases have runs once. One of the last release lists a resource that the release in the
// middle adds: judged from the present cluster it fails, which blocks the path, and states
// so.
func TestPathRunsTheChecksOfEachRelease(t *testing.T) {
	file := offerPath(t, map[string]map[string]animal{
		middle: {"steady": {Ending: "pass", Beside: habitats}},
		last:   {"steady": {Ending: "pass"}, "habitat": {Ending: "habitat", Change: zoo.AsCaptive, Beside: readsHabitats}},
	})
	got := call(t, "run", "-o", "json", "--path", "--to", last, "--graph", file)
	var made report.Path
	if err := json.Unmarshal([]byte(got.Stdout), &made); err != nil {
		t.Fatalf("%v: %s%s", err, got.Stdout, got.Stderr)
	}
	if got.Code != 3 || made.Decision != verdict.Blocked || len(made.Updates) != 2 || made.Updates[0].Verdict.Decision != verdict.Ready {
		t.Fatalf("exit code %d, %s\n%s%s", got.Code, made.Decision, got.Stderr, got.Stdout)
	}
	steady := byName(made.Updates[0])["Zoo.Animal"]
	if steady.Outcome != preflight.Pass || steady.Job == nil {
		t.Fatalf("the check of the first release passes in a Job: %+v", steady)
	}
	outcomes := map[preflight.Outcome]finding.Finding{}
	for _, f := range made.Updates[1].Findings {
		if f.Name == "Zoo.Animal" {
			outcomes[f.Outcome] = f
		}
	}
	want := "the resource habitats.zoo.example.com does not exist\nJudged from " + first + ", which the cluster runs; the update to " + middle + " may change this."
	if diff := cmp.Diff(want, outcomes[preflight.Fail].Message); diff != "" {
		t.Errorf("the check of the last release alone fails, judged from the cluster: -want +got:\n%s\n%+v", diff, made.Updates[1].Findings)
	}
	if shared := outcomes[preflight.Pass]; shared.Job == nil || shared.Job.Name != steady.Job.Name {
		t.Errorf("the check of both releases ran in one Job: %+v, want that of %+v", shared, steady)
	}
	house.ExpectNothingLeft(t)
}

// listed is a run as "history" has it.
type listed struct {
	ID       string   `json:"id"`
	Phase    string   `json:"phase"`
	Decision string   `json:"decision"`
	To       string   `json:"to"`
	Path     []string `json:"path"`
}

// runsOf are the runs of a release that are recorded, newest first.
func runsOf(t *testing.T, version string) []listed {
	t.Helper()
	var history struct {
		Runs []listed `json:"runs"`
	}
	got := call(t, "history", "-o", "json")
	if err := json.Unmarshal([]byte(got.Stdout), &history); err != nil {
		t.Fatalf("%v: %s%s", err, got.Stdout, got.Stderr)
	}
	return slices.DeleteFunc(history.Runs, func(run listed) bool { return run.To != version })
}

// leaveAt detaches from a path when a check runs, and returns the run of its last update.
func leaveAt(t *testing.T, check string, args ...string) listed {
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
	var left report.Path
	if err := json.Unmarshal(stdout.Bytes(), &left); err != nil || command.ProcessState.ExitCode() != 130 || left.Decision == verdict.Ready {
		t.Fatalf("exit code %d, %s, %v; want 130, and no Ready", command.ProcessState.ExitCode(), left.Decision, err)
	}
	run := runsOf(t, last)[0]
	if diff := cmp.Diff([]string{first, middle, last}, run.Path); diff != "" || run.ID != left.Updates[1].Run.ID || run.Phase != "Running" {
		t.Fatalf("the run of the later update is listed with its path: %+v: -want +got:\n%s", run, diff)
	}
	return run
}

// A path is left while its later update is checked: each update is a run in the history,
// that of the later one is canceled by its ID, or attached to with the graph of the path.
func TestPathIsLeft(t *testing.T) {
	patient := animal{Ending: "patient", Change: zoo.AsCaptive, Beside: zoo.Access("get", zoo.Marked)}
	file := offerPath(t, map[string]map[string]animal{middle: {"steady": {Ending: "pass"}}, last: {"patient": patient}})
	path := []string{"--hop", middle, "--hop", last, "--graph", file}

	canceled := leaveAt(t, "Zoo.Patient", path...)
	if runs := runsOf(t, middle); len(runs) == 0 || runs[0].Phase != "Complete" || runs[0].Decision != "Ready" || runs[0].Path != nil {
		t.Errorf("the run of the first update is complete, without a path: %+v", runs)
	}
	if got := call(t, "cancel", canceled.ID); got.Code != 0 {
		t.Fatalf("cancel: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if run := runsOf(t, last)[0]; run.ID != canceled.ID || run.Phase != "Canceled" || len(run.Path) != 3 {
		t.Errorf("the run is canceled, with its path: %+v", run)
	}
	house.ExpectNothingLeft(t)

	left := leaveAt(t, "Zoo.Patient", path...)
	house.Kubectl(t, "-n", zooNamespace, "create", "configmap", "go")
	defer house.Kubectl(t, "-n", zooNamespace, "delete", "configmap", "go")
	got := call(t, "attach", left.ID, "--graph", file, "--prometheus", monitoring, "-o", "json")
	var decided report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &decided); err != nil {
		t.Fatalf("%v: %s%s", err, got.Stdout, got.Stderr)
	}
	if got.Code != 4 || decided.Run.ID != left.ID || decided.Verdict.Decision != verdict.NothingKnown {
		t.Errorf("attach: exit code %d, %s of run %s; want 4, NothingKnown of run %s\n%s", got.Code, decided.Verdict.Decision, decided.Run.ID, left.ID, got.Stderr)
	}
	if run := runsOf(t, last)[0]; run.Phase != "Complete" || run.Decision != "NothingKnown" {
		t.Errorf("the run is complete: %+v", run)
	}
	house.ExpectNothingLeft(t)
}
