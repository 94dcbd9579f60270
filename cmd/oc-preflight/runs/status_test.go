package runs_test

import (
	"encoding/json"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/records"
)

func TestNoRecordedRuns(t *testing.T) {
	w := newWorld(t)
	w.contains(w.call(exit.Ready, "history").Stdout, "no run is recorded in this cluster\n")
	w.contains(w.call(exit.Failed, "status").Stderr,
		"error: no run is recorded in this cluster\nhint: Start one: oc preflight run --to-latest\n")
	w.contains(w.call(exit.BadInput, "status", "3b6f2c1e").Stderr, `no run has the ID "3b6f2c1e"`, "oc preflight history")
	w.contains(w.call(exit.BadInput, "cancel", "3b6").Stderr, `"3b6"`, "at least 4 digits")
	w.call(exit.BadInput, "diff", "3b6f2c1e")
	w.contains(w.call(exit.Failed, "diff").Stderr, "error: 0 runs ended, and 2 are compared\nhint: Show them: oc preflight history\n")
	w.contains(w.call(exit.BadInput, "attach").Stderr, "error: no run is in progress\nhint: Show the newest one: oc preflight status\n")
	w.contains(w.call(exit.Failed, "logs", "Etcd.Quorum").Stderr, "error: no run is recorded in this cluster")
	w.call(exit.BadInput, "logs", "3b6f2c1e", "Etcd.Quorum")
}

func TestStatusOfARunInProgress(t *testing.T) {
	w := newWorld(t)
	w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	detached := w.Detached('2', []string{"Etcd.Quorum", "Etcd.Space"}, records.Result("Etcd.Quorum", records.Passed("Etcd.Quorum")))

	got := w.call(exit.Undecided, "status", "--details")
	w.contains(got.Stdout, "No verdict yet on the update to 4.19.2: the run has not ended.\n", "Checks     1 of 2 reported so far\n",
		"Awaited    Etcd.Space\n", "Run        "+detached, "Held by    no process: the run continues when a process attaches to it\n",
		"PASS     Etcd.Quorum\n", "Verdict so far: Undecided, ")

	held := w.Begin('3', "Etcd.Quorum", "Etcd.Space")
	held.Put(records.Result("Etcd.Quorum", records.Failed("Etcd.Quorum", "NoQuorum")))
	_, release := held.Hold(t.Context())
	defer release()
	w.Until(func() bool {
		found, err := w.Store.Get(t.Context(), held.Record().ID)
		return err == nil && len(found.Results) > 0
	})
	got = w.call(exit.Blocked, "status", held.Record().ID[:8], "-o", "json")
	var stored report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &stored); err != nil {
		t.Fatal(err)
	}
	if stored.Run.Phase != report.PhaseRunning || stored.Standing == nil || stored.Standing.Holder != "laptop_1" ||
		len(stored.Expected.Missing) != 1 {
		t.Errorf("%+v", stored)
	}
	got = w.call(exit.Blocked, "status", held.Record().ID)
	w.contains(got.Stdout, "BLOCKED SO FAR  ", "Do not update this cluster to 4.19.3 yet. The run has not ended.\n", "Held by    laptop_1\n",
		"Verdict so far: Blocked, ")
}

// Without an ID, status shows one of the runs in progress and names the others.
func TestOtherRunsInProgressAreNamed(t *testing.T) {
	w := newWorld(t)
	w.Detached('1', []string{"Etcd.Quorum"})
	w.Detached('2', []string{"Etcd.Quorum"})
	w.contains(w.call(exit.Undecided, "status").Stderr, "another run is in progress: ", " (to 4.19.")
}

// A run in progress whose checks have all passed is not Ready.
func TestAllPassedIsNotReady(t *testing.T) {
	w := newWorld(t)
	w.Detached('1', []string{"Etcd.Quorum"}, records.Result("Etcd.Quorum", records.Passed("Etcd.Quorum")))
	w.contains(w.call(exit.Undecided, "status").Stdout, "Checks     1 of 1 reported so far\n", "Verdict so far: Undecided, ")
}

func TestStatusOfAVerdict(t *testing.T) {
	w := newWorld(t)
	id := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	w.contains(w.call(exit.Ready, "status", id[:4]).Stdout,
		"This cluster can be updated to 4.19.1. The run was made by version test, which differs from this program's (devel).\n",
		"Verdict: Ready, ")

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-new"}}
	if _, err := w.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := w.call(exit.Undecided, "status")
	w.contains(got.Stdout, "Outdated   Node worker-new is new\n", "Verdict: none that holds (it was Ready), ", ": run the preflight again\n")
	if !strings.Contains(got.Stdout, "\n\nOUTDATED  ") {
		t.Errorf("an outdated verdict must not be reported as current:\n%s", got.Stdout)
	}
	w.contains(w.call(exit.Undecided, "status", "-o", "yaml").Stdout, "standing:\n  ended:\n  - Node worker-new is new\n")
	w.contains(w.call(exit.Ready, "history").Stdout, id[:8]+"  4.19.1  Ready ")

	expired := records.Report(records.Passed("Etcd.Quorum"))
	expired.Verdict.ValidUntil = "2026-01-01T00:00:00Z"
	w.contains(w.call(exit.Undecided, "status", w.Completed('2', expired, w.Fingerprint())).Stdout,
		"Outdated   it was valid until 2026-01-01T00:00:00Z\n")

	unknown := w.Completed('3', records.Report(records.Passed("Etcd.Quorum")), nil)
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
		return configv1.ClusterOperatorStatusCondition{
			Type: kind, Status: status, Reason: "Broken", Message: "it is broken",
			LastTransitionTime: metav1.Now(),
		}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(w *world)
		code   int
		want   string
	}{
		"Nothing": {
			reason: "the run is Ready, and nothing has changed", change: func(*world) {}, code: exit.Ready,
			want: "READY  4.18.3 -> 4.19.1: ",
		},
		"Gate": {reason: "a gate was added", code: exit.Blocked, want: "FAIL  AdminAck-ack-4.18-new", change: func(w *world) {
			w.state.Gates["ack-4.18-new"] = "Read the notes."
		}},
		"Upgradeable": {
			reason: "an operator does not allow the update", code: exit.Blocked, want: "FAIL  ClusterOperatorUpgradeable-etcd",
			change: func(w *world) {
				w.state.Operators = []configv1.ClusterOperator{operator(
					condition(configv1.OperatorAvailable, configv1.ConditionTrue), condition(configv1.OperatorDegraded, configv1.ConditionFalse),
					condition(configv1.OperatorUpgradeable, configv1.ConditionFalse),
				)}
			},
		},
		"Available": {reason: "an operator is not available", code: exit.Blocked, want: "ClusterOperator", change: func(w *world) {
			w.state.Operators = []configv1.ClusterOperator{operator(condition(configv1.OperatorAvailable, configv1.ConditionFalse),
				condition(configv1.OperatorDegraded, configv1.ConditionTrue))}
		}},
		"Withdrawn": {
			reason: "the update is not offered any more", code: exit.Undecided, want: "UNKNOWN  ClusterVersionRecommendedUpdate",
			change: func(w *world) {
				delete(w.state.Available, "4.19.1")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			// The operator exists at the time of the run: a new one ends the verdict.
			w.state.Operators = []configv1.ClusterOperator{operator(condition(configv1.OperatorAvailable, configv1.ConditionTrue),
				condition(configv1.OperatorDegraded, configv1.ConditionFalse))}
			w.present()
			id := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
			tc.change(&w)
			w.present()
			for _, args := range [][]string{{"status", "--to", "4.19.1"}, {"status", id}, {"attach", id}} {
				got := w.call(tc.code, args...)
				w.contains(got.Stdout, tc.want, "Evaluated  gates, risks and health at ")
			}
		})
	}
}

// A forced run is Ready for who forced it, and not afterwards.
func TestStatusOfAForcedRun(t *testing.T) {
	w := newWorld(t)
	forced := records.Report()
	forced.Expected = verdict.Expectation{Checks: 1, Reported: 1}
	forced.Verdict, forced.Findings = verdict.Fold([]finding.Finding{records.Failed("Etcd.Quorum", "NoQuorum")}, forced.Expected,
		verdict.Policy{Force: true})
	w.contains(w.call(exit.Blocked, "status", w.Completed('1', forced, w.Fingerprint())).Stdout, "FAIL  Etcd.Quorum (NoQuorum)", "FORCED")
}

// What is asked about is the target: a verdict on another one is no answer.
func TestStatusOfATarget(t *testing.T) {
	w := newWorld(t)
	w.contains(w.call(exit.Failed, "status", "--to", "4.19.1").Stderr,
		"no run of 4.19.1 is recorded in this cluster\nhint: Start one: oc preflight run --to 4.19.1\n")
	w.Completed('2', records.Report(records.Failed("Etcd.Quorum", "NoQuorum")), w.Fingerprint())
	w.NextSecond()
	newest := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	w.call(exit.Ready, "status", "--to", "4.19.1")
	w.call(exit.Ready, "status", "--to-image", "registry/release@"+records.Digest('1'))
	w.call(exit.Ready, "status", newest)
	w.call(exit.Blocked, "status", "--to", "4.19.2")
	w.contains(w.call(exit.Undecided, "status").Stdout, "UNKNOWN  Target (SeveralTargets)", "4.19.2 is Blocked",
		"$ oc preflight status --to 4.19.1")
	for _, args := range [][]string{{"--to", "4.19.1", newest}, {"--to", "4.19.1", "--to-image", "x"}} {
		w.call(exit.BadInput, append([]string{"status"}, args...)...)
	}
}

// A newer verdict on the same target makes an older one outdated, even if that has not
// expired; a verdict on another target does not.
func TestANewerVerdictEndsAnOlderOne(t *testing.T) {
	w := newWorld(t)
	older := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	w.Completed('2', records.Report(records.Failed("Etcd.Quorum", "NoQuorum")), w.Fingerprint())
	w.call(exit.Ready, "status", older)

	w.NextSecond()
	newer := w.Completed('1', records.Report(records.Failed("Etcd.Quorum", "NoQuorum")), w.Fingerprint())
	w.contains(w.call(exit.Blocked, "status").Stdout, "Verdict: Blocked, ")
	w.call(exit.Blocked, "status", newer)
	w.contains(w.call(exit.Undecided, "status", older).Stdout,
		"Outdated   run "+newer+" of the same target is newer, with the decision Blocked\n")
}

// A holder that was killed does not renew its Lease: history and status report that no
// process holds the run.
func TestHistoryOfAKilledRun(t *testing.T) {
	w := newWorld(t)
	killed := w.Begin('1', "Etcd.Quorum").Record().ID
	w.Until(func() bool {
		return strings.Contains(w.call(exit.Ready, "history").Stdout, killed[:8]+"  4.19.1  Running ") &&
			strings.Contains(w.call(exit.Ready, "history").Stdout, "left: attach to it or cancel it\n")
	})
	w.contains(w.call(exit.Undecided, "status", killed).Stdout, "Held by    no process")
}

func TestHistory(t *testing.T) {
	w := newWorld(t)
	first := w.Completed('1', records.Report(records.Failed("Etcd.Quorum", "NoQuorum")), w.Fingerprint())
	second := w.Detached('2', []string{"Etcd.Quorum", "Etcd.Space"})
	_, release := w.Begin('3', "Etcd.Quorum").Hold(t.Context())
	defer release()
	got := w.call(exit.Ready, "history").Stdout
	w.contains(got, "RUN ", "TO      DECISION  WHEN ", second[:8]+"  4.19.2  Running ", "left: attach to it or cancel it\n",
		first[:8]+"  4.19.1  Blocked ", "4.19.3  Running ", "held by laptop_1\n")
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

// What cannot be the version of a run is wrong usage: the command that starts one would be refused, too.
func TestStatusOfNoVersion(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct{ reason, version, stated string }{
		"Prefix": {reason: "the right one is proposed", version: "v4.19.1", stated: "write --to 4.19.1"},
		"Minor":  {reason: "a version has three numbers", version: "4.19", stated: `the version "4.19" is not a semantic version like 4.19.3`},
		"Image": {
			reason: "a pull spec has a flag of its own", version: "registry/release@" + records.Digest('1'),
			stated: "write --to-image registry/release@",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.call(exit.BadInput, "status", "--to", tc.version)
			w.contains(got.Stderr, tc.stated)
			if strings.Contains(got.Stderr, "oc preflight run") {
				t.Errorf("%s: a command is shown that is refused:\n%s", tc.reason, got.Stderr)
			}
		})
	}
}

func TestLogsOfDeletedPods(t *testing.T) {
	w := newWorld(t)
	other := records.Failed("Etcd.Members", "NoQuorum")
	id := w.Detached('1', []string{"Etcd.Quorum", "Etcd.Space"}, record.Result{Check: "Etcd.Quorum", Findings: []finding.Finding{other}})
	for _, name := range []string{"Etcd.Quorum", "Etcd.Members"} {
		got := w.call(exit.Ready, "logs", id, name)
		w.contains(got.Stderr, "the pods of Etcd.Quorum and their logs were deleted; these are its recorded findings:\n")
		w.contains(got.Stdout, "FAIL  Etcd.Members (NoQuorum)\n    because of NoQuorum\n")
	}
	w.contains(w.call(exit.Failed, "logs", id, "Etcd.Space").Stderr, "error: Etcd.Space has neither pods nor a result")
	w.contains(w.call(exit.BadInput, "logs", id, "Etcd.Sparce").Stderr, `has no check "Etcd.Sparce"; it has Etcd.Quorum, Etcd.Space`)
	w.call(exit.Ready, "cancel", id)
	w.contains(w.call(exit.Failed, "logs", id, "Etcd.Space").Stderr,
		"error: the pods of Etcd.Space were deleted, and the run ended before the check reported\n")
}
