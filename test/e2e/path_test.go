package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/zoo"
)

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
	const first, middle, last = "5.0.4", "5.1.3", "5.2.0"
	pullSpecs := map[string]string{}
	for version, checks := range map[string]map[string]animal{
		middle: {"steady": {Ending: "pass", Beside: habitats}},
		last:   {"steady": {Ending: "pass"}, "habitat": {Ending: "habitat", Change: zoo.AsCaptive, Beside: readsHabitats}},
	} {
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
	file := filepath.Join(t.TempDir(), "stable-5.2.json")
	if err := os.WriteFile(file, graph, 0o600); err != nil {
		t.Fatal(err)
	}
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
