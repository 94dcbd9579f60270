package runs_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/cmd/oc-preflight/history"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// What was judged after an update is shown with its run, and nothing of it if it is not authentic.
func TestJudgementAfterTheUpdate(t *testing.T) {
	w := newWorld(t)
	id := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	w.contains(w.call(exit.Ready, "history").Stdout, "WHAT")
	judged := afterupdate.Report{
		Decision: afterupdate.Regressed, Message: "2 problems that the cluster did not have before the update",
		Samples: afterupdate.Samples{Last: "2026-11-21T12:00:00Z"},
	}
	if err := baselinestore.New(w.Client).PutJudgement(t.Context(), id, judged); err != nil {
		t.Fatal(err)
	}
	w.contains(w.call(exit.Ready, "history").Stdout, "AFTER", "Regressed")
	w.contains(w.call(exit.Ready, "status", id, "--details").Stdout,
		"After      Regressed: 2 problems that the cluster did not have before the update (oc preflight after "+id+")\n")
	w.contains(w.call(exit.Ready, "status", id, "-o", "short").Stdout, "run "+id[:8]+", Regressed after the update\n")
	w.expectAfter(id, report.AfterUpdate{Decision: "Regressed", Message: judged.Message, Time: judged.Samples.Last})

	maps := w.Client.CoreV1().ConfigMaps(record.Namespace)
	stored, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "preflight.openshift.io/afterupdate=" + id})
	if err != nil || len(stored.Items) != 1 {
		t.Fatalf("want one judgement, got %d: %v", len(stored.Items), err)
	}
	edited := &stored.Items[0]
	judged.Decision, judged.Message = afterupdate.Good, "nothing that was good before is bad"
	text, err := json.Marshal(judged)
	if err != nil {
		t.Fatal(err)
	}
	edited.BinaryData["judgement.gz"] = compress(t, string(text))
	if _, err := maps.Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.expectAfter(id, report.AfterUpdate{
		Decision: judgement.Unverified,
		Message:  "the stored judgement is not authentic: configmap \"" + edited.Name + "\" has a MAC that does not match its content",
	})
}

// expectAfter compares what status and history state about the update after a run.
func (w world) expectAfter(id string, want report.AfterUpdate) {
	w.t.Helper()
	var shown report.Report
	if err := json.Unmarshal([]byte(w.call(exit.Ready, "status", id, "-o", "json").Stdout), &shown); err != nil {
		w.t.Fatal(err)
	}
	if shown.AfterUpdate == nil || *shown.AfterUpdate != want {
		w.t.Errorf("status has %+v, want %+v", shown.AfterUpdate, want)
	}
	var listed history.History
	if err := json.Unmarshal([]byte(w.call(exit.Ready, "history", "-o", "json").Stdout), &listed); err != nil {
		w.t.Fatal(err)
	}
	if got := listed.Runs[0].AfterUpdate; got != want.Decision {
		w.t.Errorf("history has %q, want %q", got, want.Decision)
	}
}

// A cluster that runs the release of a run, without a judgement of it, is to be judged: a new run would be about another
// update.
func TestNotJudgedAfterTheUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		change   func(*openshift.State)
		want     string
		next     string
		exitCode int
	}{
		"Before": {reason: "the update has not begun", change: func(*openshift.State) {}, next: "", exitCode: exit.Ready},
		"Updated": {
			reason: "the update is complete", change: func(s *openshift.State) { s.Version, s.Image = "4.19.1", records.Image('1') },
			want: judgement.NotJudged, next: "See what is worse since the update: oc preflight after ", exitCode: exit.Undecided,
		},
		"Updating": {
			reason: "the update is in progress",
			change: func(s *openshift.State) { s.Version, s.Image, s.Updating = "4.19.1", records.Image('1'), true }, exitCode: exit.Undecided,
		},
		"Other": {
			reason: "the cluster was updated to another image of that version",
			change: func(s *openshift.State) { s.Version, s.Image = "4.19.1", records.Image('2') }, exitCode: exit.Undecided,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
			tc.change(&w.state)
			w.present()
			got := program.Call(t, "status", id)
			if got.Code != tc.exitCode || !strings.Contains(got.Stdout, tc.next) {
				t.Errorf("%s: exit code %d\n%s%s", tc.reason, got.Code, got.Stdout, got.Stderr)
			}
			if strings.Contains(got.Stdout, judgement.NotJudged) != (tc.want != "") {
				t.Errorf("%s: want NotJudged %t\n%s", tc.reason, tc.want != "", got.Stdout)
			}
			if tc.want != "" && strings.Contains(got.Stdout, "oc preflight run") {
				t.Errorf("%s: a run is proposed\n%s", tc.reason, got.Stdout)
			}
		})
	}
}
