package commands_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	client "github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
)

// fingerprint returns the state of the cluster that a new verdict is based on.
func (w world) fingerprint() map[string]string {
	w.t.Helper()
	connected, err := client.Connect(byDefault.Config, "test")
	if err != nil {
		w.t.Fatal(err)
	}
	return fingerprint.Read(w.t.Context(), snapshot.Of(connected))
}

func TestNoRecordedRuns(t *testing.T) {
	w := newWorld(t)
	w.contains(w.call(exit.Ready, "history").Stdout, "no run is recorded in this cluster\n")
	w.contains(w.call(exit.Failed, "status").Stderr, "error: no run is recorded in this cluster; start one: oc preflight run --to-latest\n")
	w.contains(w.call(exit.BadInput, "status", "3b6f2c1e").Stderr, `no run has the ID "3b6f2c1e"`, "oc preflight history")
	w.contains(w.call(exit.BadInput, "cancel", "3b6").Stderr, `"3b6"`, "at least 4 digits")
	w.call(exit.BadInput, "diff", "3b6f2c1e")
	w.contains(w.call(exit.Failed, "diff").Stderr, "error: 0 runs ended, and 2 are compared; show them with: oc preflight history\n")
	w.contains(w.call(exit.BadInput, "attach").Stderr, "error: no run is in progress; show the newest one: oc preflight status\n")
	w.contains(w.call(exit.Failed, "logs", "Etcd.Quorum").Stderr, "error: no run is recorded in this cluster")
	w.call(exit.BadInput, "logs", "3b6f2c1e", "Etcd.Quorum")
}

func TestStatusOfARunInProgress(t *testing.T) {
	w := newWorld(t)
	w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed")), w.fingerprint())
	detached := w.detachedRun('2', []string{"Etcd.Quorum", "Etcd.Space"}, result("Etcd.Quorum", newFinding("Etcd.Quorum", preflight.Pass, "Passed")))

	got := w.call(exit.Undecided, "status", "--details")
	w.contains(got.Stdout, "No verdict yet on the update to 4.19.2: the run has not ended.\n", "Checks     1 of 2 reported so far\n",
		"Awaited    Etcd.Space\n", "Run        "+detached, "Held by    no process: the run continues when a process attaches to it\n", "PASS     Etcd.Quorum\n", "Verdict so far: Undecided, ")

	held := w.begin('3', "Etcd.Quorum", "Etcd.Space")
	held.Put(result("Etcd.Quorum", newFinding("Etcd.Quorum", preflight.Fail, "NoQuorum")))
	_, release := held.Hold(t.Context())
	defer release()
	w.until(func() bool {
		found, err := w.records.Get(t.Context(), held.Record().ID)
		return err == nil && len(found.Results) > 0
	})
	got = w.call(exit.Blocked, "status", held.Record().ID[:8], "-o", "json")
	var stored report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &stored); err != nil {
		t.Fatal(err)
	}
	if stored.Run.Phase != report.PhaseRunning || stored.Standing == nil || stored.Standing.Holder != "laptop_1" || len(stored.Expected.Missing) != 1 {
		t.Errorf("%+v", stored)
	}
	got = w.call(exit.Blocked, "status", held.Record().ID)
	w.contains(got.Stdout, "BLOCKED SO FAR  ", "Do not update this cluster to 4.19.3 yet. The run has not ended.\n", "Held by    laptop_1\n", "Verdict so far: Blocked, ")
}

// Without an ID, status shows one of the runs in progress and names the others.
func TestOtherRunsInProgressAreNamed(t *testing.T) {
	w := newWorld(t)
	w.detachedRun('1', []string{"Etcd.Quorum"})
	w.detachedRun('2', []string{"Etcd.Quorum"})
	w.contains(w.call(exit.Undecided, "status").Stderr, "another run is in progress: ", " (to 4.19.")
}

// until polls a condition, which a background process makes true.
func (w world) until(done func() bool) {
	w.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-w.t.Context().Done():
			w.t.Fatal("the condition did not become true before the end of the test")
		case <-ticker.C:
		}
	}
}

// A run in progress whose checks have all passed is not Ready.
func TestAllPassedIsNotReady(t *testing.T) {
	w := newWorld(t)
	w.detachedRun('1', []string{"Etcd.Quorum"}, result("Etcd.Quorum", newFinding("Etcd.Quorum", preflight.Pass, "Passed")))
	w.contains(w.call(exit.Undecided, "status").Stdout, "Checks     1 of 1 reported so far\n", "Verdict so far: Undecided, ")
}

func TestStatusOfAVerdict(t *testing.T) {
	w := newWorld(t)
	id := w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed")), w.fingerprint())
	w.contains(w.call(exit.Ready, "status", id[:4]).Stdout, "This cluster can be updated to 4.19.1.\n", "Verdict: Ready, ")

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-new"}}
	if _, err := w.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := w.call(exit.Undecided, "status")
	w.contains(got.Stdout, "Outdated   Node worker-new is new\n", "Verdict: none that holds (it was Ready), ", ": run the preflight again\n")
	if !strings.HasPrefix(got.Stdout, "OUTDATED  ") {
		t.Errorf("an outdated verdict must not be reported as current:\n%s", got.Stdout)
	}
	w.contains(w.call(exit.Undecided, "status", "-o", "yaml").Stdout, "standing:\n  ended:\n  - Node worker-new is new\n")
	w.contains(w.call(exit.Ready, "history").Stdout, id[:8]+"  4.19.1  Ready ")

	expired := newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed"))
	expired.Verdict.ValidUntil = "2026-01-01T00:00:00Z"
	w.contains(w.call(exit.Undecided, "status", w.completedRun('2', expired, w.fingerprint())).Stdout, "Outdated   it was valid until 2026-01-01T00:00:00Z\n")

	unknown := w.completedRun('3', newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed")), nil)
	w.contains(w.call(exit.Undecided, "status", unknown).Stdout, "its state was not recorded")
}

// A recorded verdict is about the past: what the built-in checks read is judged now, and the
// results of the release's checks stay those of the run.
func TestStatusJudgesTheClusterNow(t *testing.T) {
	operator := func(conditions ...configv1.ClusterOperatorStatusCondition) configv1.ClusterOperator {
		return configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: "etcd"},
			Status:     configv1.ClusterOperatorStatus{Conditions: conditions},
		}
	}
	condition := func(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: kind, Status: status, Reason: "Broken", Message: "it is broken", LastTransitionTime: metav1.Now()}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(w *world)
		code   int
		want   string
	}{
		"Nothing": {reason: "the run is Ready, and nothing has changed", change: func(*world) {}, code: exit.Ready, want: "READY  4.18.3 -> 4.19.1: "},
		"Gate": {reason: "a gate was added", code: exit.Blocked, want: "FAIL  AdminAck-ack-4.18-new", change: func(w *world) {
			w.state.Gates["ack-4.18-new"] = "Read the notes."
		}},
		"Upgradeable": {reason: "an operator does not allow the update", code: exit.Blocked, want: "FAIL  ClusterOperatorUpgradeable-etcd", change: func(w *world) {
			w.state.Operators = []configv1.ClusterOperator{operator(
				condition(configv1.OperatorAvailable, configv1.ConditionTrue), condition(configv1.OperatorDegraded, configv1.ConditionFalse),
				condition(configv1.OperatorUpgradeable, configv1.ConditionFalse),
			)}
		}},
		"Available": {reason: "an operator is not available", code: exit.Blocked, want: "ClusterOperator", change: func(w *world) {
			w.state.Operators = []configv1.ClusterOperator{operator(condition(configv1.OperatorAvailable, configv1.ConditionFalse), condition(configv1.OperatorDegraded, configv1.ConditionTrue))}
		}},
		"Withdrawn": {reason: "the update is not offered any more", code: exit.Undecided, want: "UNKNOWN  ClusterVersionRecommendedUpdate", change: func(w *world) {
			delete(w.state.Available, "4.19.1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			// The operator exists at the time of the run: a new one ends the verdict.
			w.state.Operators = []configv1.ClusterOperator{operator(condition(configv1.OperatorAvailable, configv1.ConditionTrue), condition(configv1.OperatorDegraded, configv1.ConditionFalse))}
			w.present()
			id := w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed")), w.fingerprint())
			tc.change(&w)
			w.present()
			for _, args := range [][]string{{"status", "--to", "4.19.1"}, {"status", id}, {"attach", id}} {
				got := w.call(tc.code, args...)
				w.contains(got.Stdout, tc.want, "Judged     gates, risks and health at ")
			}
		})
	}
}

// A forced run is Ready for who forced it, and not afterwards.
func TestStatusOfAForcedRun(t *testing.T) {
	w := newWorld(t)
	forced := newReport()
	forced.Expected = verdict.Expectation{Checks: 1, Reported: 1}
	forced.Verdict, forced.Findings = verdict.Fold([]finding.Finding{newFinding("Etcd.Quorum", preflight.Fail, "NoQuorum")}, forced.Expected, verdict.Policy{Force: true})
	w.contains(w.call(exit.Blocked, "status", w.completedRun('1', forced, w.fingerprint())).Stdout, "FAIL  Etcd.Quorum (NoQuorum)", "FORCED")
}

// What is asked about is the target: a verdict on another one is no answer.
func TestStatusOfATarget(t *testing.T) {
	w := newWorld(t)
	w.contains(w.call(exit.Failed, "status", "--to", "4.19.1").Stderr, "no run of 4.19.1 is recorded in this cluster; start one: oc preflight run --to 4.19.1\n")
	w.completedRun('2', newReport(newFinding("Etcd.Quorum", preflight.Fail, "NoQuorum")), w.fingerprint())
	ended := time.Now().Unix() // records have a granularity of a second
	w.until(func() bool { return time.Now().Unix() > ended })
	newest := w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed")), w.fingerprint())
	w.call(exit.Ready, "status", "--to", "4.19.1")
	w.call(exit.Ready, "status", "--to-image", "registry/release@"+digest('1'))
	w.call(exit.Ready, "status", newest)
	w.call(exit.Blocked, "status", "--to", "4.19.2")
	w.contains(w.call(exit.Undecided, "status").Stdout, "UNKNOWN  Target (SeveralTargets)", "4.19.2 is Blocked", "$ oc preflight status --to 4.19.1")
	for _, args := range [][]string{{"--to", "4.19.1", newest}, {"--to", "4.19.1", "--to-image", "x"}} {
		w.call(exit.BadInput, append([]string{"status"}, args...)...)
	}
}

// A newer verdict on the same target makes an older one outdated, even if that has not
// expired; a verdict on another target does not.
func TestANewerVerdictEndsAnOlderOne(t *testing.T) {
	w := newWorld(t)
	older := w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed")), w.fingerprint())
	w.completedRun('2', newReport(newFinding("Etcd.Quorum", preflight.Fail, "NoQuorum")), w.fingerprint())
	w.call(exit.Ready, "status", older)

	ended := time.Now().Unix() // records have a granularity of a second
	w.until(func() bool { return time.Now().Unix() > ended })
	newer := w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Fail, "NoQuorum")), w.fingerprint())
	w.contains(w.call(exit.Blocked, "status").Stdout, "Verdict: Blocked, ")
	w.call(exit.Blocked, "status", newer)
	w.contains(w.call(exit.Undecided, "status", older).Stdout, "Outdated   run "+newer+" of the same target is newer, with the decision Blocked\n")
}

// A holder that was killed does not renew its Lease: history and status report that no
// process holds the run.
func TestHistoryOfAKilledRun(t *testing.T) {
	w := newWorld(t)
	killed := w.begin('1', "Etcd.Quorum").Record().ID
	w.until(func() bool {
		return strings.Contains(w.call(exit.Ready, "history").Stdout, killed[:8]+"  4.19.1  Running ") && strings.Contains(w.call(exit.Ready, "history").Stdout, "left: attach to it or cancel it\n")
	})
	w.contains(w.call(exit.Undecided, "status", killed).Stdout, "Held by    no process")
}

func TestHistory(t *testing.T) {
	w := newWorld(t)
	first := w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Fail, "NoQuorum")), nil)
	second := w.detachedRun('2', []string{"Etcd.Quorum", "Etcd.Space"})
	_, release := w.begin('3', "Etcd.Quorum").Hold(t.Context())
	defer release()
	got := w.call(exit.Ready, "history").Stdout
	w.contains(got, "RUN ", "TO      DECISION  WHEN ", second[:8]+"  4.19.2  Running ", "left: attach to it or cancel it\n", first[:8]+"  4.19.1  Blocked ", "4.19.3  Running ", "held by laptop_1\n")
	var stored struct {
		Runs []struct {
			Holder string `json:"holder"`
		} `json:"runs"`
	}
	if err := json.Unmarshal([]byte(w.call(exit.Ready, "history", "-o", "json").Stdout), &stored); err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, run := range stored.Runs {
		if run.Holder == "laptop_1" {
			held++
		}
	}
	if len(stored.Runs) != 3 || held != 1 {
		t.Errorf("%d of %d runs are held, want 1 of 3: %+v", held, len(stored.Runs), stored)
	}
}
