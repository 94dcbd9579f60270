package runs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/cmd/oc-preflight/history"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/report/diff"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// A command that shows writes nothing to the cluster, also where it fails.
func TestReadsWriteNothing(t *testing.T) {
	w := newWorld(t)
	first := w.Completed('1', records.Report(records.Failed("Etcd.Quorum", "NoQuorum")), w.Fingerprint())
	second := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	running := w.Detached('2', []string{"Etcd.Quorum"})
	before := len(w.server.Writes())
	for _, args := range [][]string{
		{"status"},
		{"status", first},
		{"status", "--to", "4.19.1"},
		{"status", "ffffffff"},
		{"history"},
		{"history", "-o", "wide"},
		{"diff", first, second},
		{"diff", first, running},
		{"logs", running, "Etcd.Quorum"},
		{"logs", running, "Etcd.Sparce"},
		{"cancel", "ffffffff"},
		{"cleanup", "ffffffff"},
		{"cleanup", "--all"},
	} {
		program.Call(t, args...)
		if wrote := w.server.Writes()[before:]; len(wrote) > 0 {
			t.Fatalf("%q has written %q", args, wrote)
		}
	}
}

// The documents for scripts have the fields of their types, and the same data in JSON and YAML.
func TestDocumentsForScripts(t *testing.T) {
	w := newWorld(t)
	id := w.Completed('1', records.Report(records.Passed("Etcd.Quorum"), records.Failed("Etcd.Space", "Full")), w.Fingerprint())
	other := w.Completed('2', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	for name, tc := range map[string]struct {
		reason string
		args   []string
		// into has the type of the document, and timed is its field that differs in each call.
		into  any
		timed string
	}{
		"Status":  {reason: "the report with its standing", args: []string{"status", id}, into: &report.Report{}, timed: "standing"},
		"History": {reason: "the runs", args: []string{"history"}, into: &history.History{}},
		"Diff":    {reason: "the changes", args: []string{"diff", id, other}, into: &diff.Changes{}},
	} {
		t.Run(name, func(t *testing.T) {
			text := program.Call(t, append(tc.args, "-o", "json")...).Stdout
			decoder := json.NewDecoder(strings.NewReader(text))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(tc.into); err != nil {
				t.Fatalf("%s: %v\n%s", tc.reason, err, text)
			}
			var asJSON, asYAML map[string]any
			if err := json.Unmarshal([]byte(text), &asJSON); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(program.Call(t, append(tc.args, "-o", "yaml")...).Stdout), &asYAML); err != nil {
				t.Fatal(err)
			}
			delete(asJSON, tc.timed)
			delete(asYAML, tc.timed)
			if differing := cmp.Diff(asJSON, asYAML); differing != "" {
				t.Errorf("%s: -JSON +YAML:\n%s", tc.reason, differing)
			}
		})
	}
}

// A run of a record that is not authentic is one that other commands name, and none believes.
func TestLogsOfAForgedRecord(t *testing.T) {
	w := newWorld(t)
	id := w.Detached('1', []string{"Etcd.Quorum"}, records.Result("Etcd.Quorum", records.Failed("Etcd.Quorum", "NoQuorum")))
	w.forge(id, func(header *corev1.ConfigMap) {
		header.Data["run.yaml"] = strings.ReplaceAll(header.Data["run.yaml"], "4.19.1", "4.19.2")
	})
	for _, args := range [][]string{{"logs", id, "Etcd.Quorum"}, {"diff", id, id}, {"attach", id}} {
		if got := program.Call(t, args...); got.Code == exit.Ready || strings.Contains(got.Stdout, "NoQuorum") {
			t.Errorf("%q: exit code %d\n%s%s", args, got.Code, got.Stdout, got.Stderr)
		}
	}
}

// Two IDs with the same digits are no name of one of them: the candidates are shown, and nothing is done.
func TestAmbiguousPrefix(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"3b6f2c1e-0100-4000-8000-000000000001", "3b6f2c1e-0200-4000-8000-000000000002"} {
		w.StartJob(id, "Etcd.Quorum")
	}
	before := len(w.server.Writes())
	got := w.call(exit.BadInput, "cleanup", "3b6f2c1e")
	w.contains(got.Stderr, "3b6f2c1e-0100-4000-8000-000000000001", "3b6f2c1e-0200-4000-8000-000000000002")
	if wrote := w.server.Writes()[before:]; len(wrote) > 0 {
		t.Errorf("an ambiguous name has written %q", wrote)
	}
}

// --all cleans up after each run that no process holds, and names the one that is held.
func TestCleanupOfAll(t *testing.T) {
	w := newWorld(t)
	left := w.Detached('1', []string{"Etcd.Quorum"})
	held := w.Begin('2', "Etcd.Quorum")
	_, release := held.Hold(t.Context())
	defer release()
	w.StartJob(left, "Etcd.Quorum")
	w.StartJob(held.Record().ID, "Etcd.Quorum")
	got := w.call(exit.Failed, "cleanup", "--all")
	w.contains(got.Stdout, "run "+left+" has no objects in the cluster\n")
	w.contains(got.Stderr, held.Record().ID, "oc preflight cancel "+held.Record().ID)
	if strings.Contains(got.Stdout, held.Record().ID) {
		t.Errorf("the run of another process was cleaned up:\n%s", got.Stdout)
	}
	w.contains(w.call(exit.Ready, "cleanup", held.Record().ID, "--force-live").Stdout,
		"run "+held.Record().ID+" has no objects in the cluster\n")
}

// An object with the label of a run, and another name, is not of the run: a label alone must not delete it.
func TestCleanupOfForeignObjects(t *testing.T) {
	w := newWorld(t)
	id := w.Detached('1', []string{"Etcd.Quorum"})
	job := w.StartJob(id, "Etcd.Quorum")
	foreign := job.DeepCopy()
	foreign.ObjectMeta = metav1.ObjectMeta{Namespace: job.Namespace, Name: "backup", Labels: job.Labels}
	if _, err := w.Client.BatchV1().Jobs(job.Namespace).Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := w.call(exit.Failed, "cleanup", id)
	w.contains(got.Stdout, "deleted Job default/"+job.Name+"\n")
	w.contains(got.Stderr, "not deleted: Job default/backup has the label of run "+id,
		"oc -n default label job backup preflight.openshift.io/run-")
	if _, err := w.Client.BatchV1().Jobs(job.Namespace).Get(t.Context(), "backup", metav1.GetOptions{}); err != nil {
		t.Errorf("the foreign Job was deleted: %v", err)
	}
}
