package runs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/records"
)

// header returns the header of a recorded run.
func (w world) header(id string) *corev1.ConfigMap {
	w.t.Helper()
	found, err := w.Client.CoreV1().ConfigMaps(record.Namespace).List(w.t.Context(),
		metav1.ListOptions{LabelSelector: "preflight.openshift.io/record=" + id})
	if err != nil || len(found.Items) != 1 {
		w.t.Fatalf("want one header of run %s, got %d: %v", id, len(found.Items), err)
	}
	return &found.Items[0]
}

// forge changes the header of a run as an editor of ConfigMaps, who does not have the key.
func (w world) forge(id string, change func(*corev1.ConfigMap)) {
	w.t.Helper()
	header := w.header(id)
	change(header)
	if _, err := w.Client.CoreV1().ConfigMaps(record.Namespace).Update(w.t.Context(), header, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// compress returns a text in the encoding of a header.
func compress(t *testing.T, text string) []byte {
	t.Helper()
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return compressed.Bytes()
}

// reportData returns the content of report.gz for a report.
func (w world) reportData(decided report.Report) []byte {
	w.t.Helper()
	state, err := json.Marshal(w.Fingerprint())
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(decided)
	if err != nil {
		w.t.Fatal(err)
	}
	return compress(w.t, string(state)+"\n"+string(text))
}

// A user who can edit ConfigMaps cannot make a record Ready.
func TestForgedRecords(t *testing.T) {
	passing := records.Report(records.Passed("Etcd.Quorum"))
	passing.Verdict.ValidUntil = "2999-01-01T00:00:00Z"
	failing := records.Report(records.Failed("Etcd.Quorum", "NoQuorum"))
	for name, tc := range map[string]struct {
		reason string
		// attack returns the ID of the forged run; blocked is a run that is Blocked.
		attack func(w world, blocked string) string
	}{
		"Report": {reason: "the report was replaced", attack: func(w world, blocked string) string {
			w.t.Helper()
			w.forge(blocked, func(header *corev1.ConfigMap) { header.BinaryData["report.gz"] = w.reportData(passing) })
			return blocked
		}},
		"Everything": {reason: "report, decision, labels and verdict.json were replaced", attack: func(w world, blocked string) string {
			w.t.Helper()
			w.forge(blocked, func(header *corev1.ConfigMap) {
				header.BinaryData["report.gz"] = w.reportData(passing)
				header.Labels["preflight.openshift.io/decision"] = "Ready"
				for _, key := range []string{"run.yaml", "verdict.json"} {
					header.Data[key] = strings.ReplaceAll(header.Data[key], "Blocked", "Ready")
				}
			})
			return blocked
		}},
		"MACRemoved": {reason: "the record has the format of an earlier version", attack: func(w world, blocked string) string {
			w.t.Helper()
			w.forge(blocked, func(header *corev1.ConfigMap) {
				header.BinaryData["report.gz"] = w.reportData(passing)
				delete(header.Data, "record.mac")
			})
			return blocked
		}},
		"OtherRun": {reason: "the record has the content of a run that was Ready", attack: func(w world, blocked string) string {
			w.t.Helper()
			other := w.header(w.Completed('2', passing, w.Fingerprint()))
			w.forge(blocked, func(header *corev1.ConfigMap) {
				summary := strings.ReplaceAll(other.Data["run.yaml"], other.Labels["preflight.openshift.io/record"], blocked)
				header.Data, header.BinaryData = other.Data, other.BinaryData
				header.Data["run.yaml"] = summary
			})
			return blocked
		}},
		"Copied": {reason: "a record was deleted and created again", attack: func(w world, _ string) string {
			w.t.Helper()
			id := w.Completed('2', passing, w.Fingerprint())
			header := w.header(id)
			maps := w.Client.CoreV1().ConfigMaps(record.Namespace)
			if err := maps.Delete(w.t.Context(), header.Name, metav1.DeleteOptions{}); err != nil {
				w.t.Fatal(err)
			}
			header.ObjectMeta = metav1.ObjectMeta{Name: header.Name, Labels: header.Labels, Annotations: header.Annotations}
			if _, err := maps.Create(w.t.Context(), header, metav1.CreateOptions{}); err != nil {
				w.t.Fatal(err)
			}
			return id
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := tc.attack(w, w.Completed('1', failing, w.Fingerprint()))
			got := w.call(exit.Undecided, "status", id)
			w.contains(got.Stdout, "UNDECIDED  ", "UNKNOWN  RunRecord (UnauthenticRecord)\n", "oc preflight run --to 4.19.", "Verdict: Undecided, ")
			for _, word := range []string{"Etcd.Quorum", "2999-01-01"} {
				if strings.Contains(got.Stdout, word) {
					t.Errorf("%s, but status reports %s of the record:\n%s", tc.reason, word, got.Stdout)
				}
			}
			w.contains(w.call(exit.Ready, "history").Stdout, "Unverified ", "Complete, Unauthentic\n")
			w.contains(w.call(exit.Ready, "history", "-o", "json").Stdout, `"authenticity": "Unauthentic"`)
			w.contains(w.call(exit.Failed, "diff", id, id).Stderr, "error: the record of run "+id+" is not authentic: ", "oc preflight run")
			w.contains(w.call(exit.Undecided, "attach", id).Stdout, "(UnauthenticRecord)")
		})
	}
}

// A newer record that was edited makes the verdict of an older one outdated: the newer
// verdict may have been Blocked.
func TestAForgedRecordEndsAnOlderVerdict(t *testing.T) {
	w := newWorld(t)
	older := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	w.NextSecond()
	newer := w.Completed('1', records.Report(records.Failed("Etcd.Quorum", "NoQuorum")), w.Fingerprint())
	w.forge(newer, func(header *corev1.ConfigMap) {
		header.Data["run.yaml"] = strings.ReplaceAll(header.Data["run.yaml"], "Blocked", "Ready")
	})
	w.contains(w.call(exit.Undecided, "status").Stdout, "(UnauthenticRecord)")
	w.contains(w.call(exit.Undecided, "status", older).Stdout,
		"Outdated   run "+newer+" of the same target is newer: the record of run "+newer+" is not authentic")
}

// Edited results of a run in progress are neither reported nor logged, and the run can be
// canceled.
func TestForgedRunInProgress(t *testing.T) {
	w := newWorld(t)
	id := w.Detached('1', []string{"Etcd.Quorum"}, records.Result("Etcd.Quorum", records.Failed("Etcd.Quorum", "NoQuorum")))
	passing, err := json.Marshal(records.Result("Etcd.Quorum", records.Passed("Etcd.Quorum")))
	if err != nil {
		t.Fatal(err)
	}
	w.forge(id, func(header *corev1.ConfigMap) { header.BinaryData["results.gz"] = compress(t, string(passing)+"\n") })
	w.contains(w.call(exit.Undecided, "status").Stdout, "No verdict yet", "UNKNOWN  RunRecord (UnauthenticRecord)\n",
		"Verdict so far: Undecided, ")
	w.contains(w.call(exit.Failed, "logs", id, "Etcd.Quorum").Stderr, "is not authentic")
	w.contains(w.call(exit.Failed, "attach", id).Stderr, "error: the record of run "+id+" is not authentic: ", "oc preflight cancel "+id)
	w.contains(w.call(exit.Ready, "cancel", id).Stdout, "run "+id+" was canceled; 0 of 1 check had reported\n")
	w.expectCanceled(id)
	w.contains(w.call(exit.Interrupted, "status", id).Stdout, "UNKNOWN  Etcd.Quorum (Canceled)\n")
}

// A record has no verdict if the key does not exist or the user has no permission to read
// it.
func TestRecordsWithoutTheKey(t *testing.T) {
	w := newWorld(t)
	id := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	w.call(exit.Ready, "status", id)

	const reader = "reader"
	w.server.Deny(func(user string, request apiserver.Request) bool {
		return user == reader && request.Resource == "secrets"
	})
	got := w.call(exit.Undecided, "status", id, "--as", reader)
	w.contains(got.Stdout, "UNKNOWN  RunRecord (UnverifiableRecord)\n", "may not be read by this user", "oc preflight auth")
	w.contains(w.call(exit.Ready, "history", "-o", "json", "--as", reader).Stdout, `"authenticity": "Unverifiable"`,
		`"decision": "Unverified"`)
	w.contains(w.call(exit.Failed, "diff", id, id, "--as", reader).Stderr, "unknown whether the record of run "+id+" is authentic",
		"oc preflight auth status")

	if err := w.Client.CoreV1().Secrets(record.Namespace).Delete(t.Context(), recordstore.KeySecret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.contains(w.call(exit.Undecided, "status", id).Stdout, "UNKNOWN  RunRecord (UnauthenticRecord)\n", recordstore.KeySecret,
		"does not exist")
	next := w.Completed('2', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	w.call(exit.Ready, "status", next)
	w.contains(w.call(exit.Undecided, "status", id).Stdout, "does not match its content")
}

// A verdict is valid for at most a day, also if a process with the key recorded it.
func TestAVerdictIsValidForADay(t *testing.T) {
	w := newWorld(t)
	long := records.Report(records.Passed("Etcd.Quorum"))
	long.Verdict.ValidUntil = "2999-01-01T00:00:00Z"
	id := w.Completed('1', long, w.Fingerprint())
	if got := w.call(exit.Ready, "status", id).Stdout; strings.Contains(got, "2999-01-01") {
		t.Errorf("the verdict must expire after a day:\n%s", got)
	}
}
