package trigger_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/openshift/update-preflight/runner/record"
)

// The versions of the releases: the cluster is at 5.1.3.
const (
	minor = "5.2.0"
	patch = "5.1.9"
)

func TestSelectedRunsAtOnce(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass", "fail"}})
	w.offer(minor)
	w.start("--ahead=0", "--ahead-delay=10m")
	w.choose(minor)
	w.awaitRuns(minor + " selected Complete Blocked")
	house.ExpectNothingLeft(t)
}

func TestOfferedRunsAhead(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"fail"}, patch: {"pass"}})
	p := w.start()
	w.offer(minor, patch)
	found := w.awaitRuns(patch+" ahead Complete Ready", minor+" ahead Complete Blocked")
	if found[0].Target.Version != patch || found[0].StartTime.Before(found[1].CompletionTime) {
		t.Errorf("the runs were not one after the other, the newest version first: %+v", found)
	}
	digest := func(version string) string { return strings.SplitAfter(w.images[version], "@")[1] }
	exported := p.awaitMetric(
		"update_preflight_up 1",
		`update_preflight_verdict{decision="Blocked",digest="`+digest(minor)+`",guard="true",target="`+minor+`"} 1`,
		`update_preflight_verdict{decision="Ready",digest="`+digest(patch)+`",guard="false",target="`+patch+`"} 1`,
		`update_preflight_findings{blocks="true",outcome="Fail",target="`+minor+`"} 1`,
	)
	if !strings.Contains(exported, `update_preflight_completion_timestamp_seconds{target="`+patch+`"}`) {
		t.Errorf("the end of the run is not exported:\n%s", exported)
	}

	// The selection uses what is known, and is a run of its own.
	w.choose(patch)
	w.awaitRuns(patch+" ahead Complete Ready", patch+" selected Complete Ready", minor+" ahead Complete Blocked")
	house.ExpectNothingLeft(t)
}

func TestNoRunsAheadDuringAnUpdate(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass"}})
	w.State.Updating = true
	w.offer(minor)
	p := w.start()
	// The controller has planned: it knows the target.
	p.awaitMetric(`update_preflight_verdict{decision="Undecided",digest="` + strings.SplitAfter(w.images[minor], "@")[1] + `",guard="true",target="` + minor + `"} 1`)
	w.awaitRuns()
	w.State.Updating = false
	w.Apply(t)
	w.awaitRuns(minor + " ahead Complete Ready")
}

func TestWithdrawn(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass", "sleep"}})
	w.offer(minor)
	w.start("--ahead=0")
	w.choose(minor)
	w.awaitPods(1)
	w.choose("")
	w.awaitRuns(minor + " selected Interrupted Undecided")
	house.ExpectNothingLeft(t)
}

func TestAnotherTargetIsSelected(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"sleep"}, patch: {"pass"}})
	w.offer(minor, patch)
	w.start("--ahead=0")
	w.choose(minor)
	w.awaitPods(1)
	w.choose(patch)
	w.awaitRuns(patch+" selected Complete Ready", minor+" selected Interrupted Undecided")
	house.ExpectNothingLeft(t)
}

func TestLeaderIsKilled(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass", "slow"}})
	w.offer(minor)
	first := w.start("--ahead=0")
	w.choose(minor)
	w.awaitPods(1)
	begun := w.awaitRuns(minor + " selected Running")
	w.start("--ahead=0")
	first.signal(syscall.SIGKILL)
	finished := w.awaitRuns(minor + " selected Complete Ready")
	if finished[0].ID != begun[0].ID {
		t.Errorf("the next leader finished run %s, want %s", finished[0].ID, begun[0].ID)
	}
	house.ExpectNothingLeft(t)
}

// A leader that was killed cannot end the run of a target that is withdrawn meanwhile.
func TestWithdrawnWithoutALeader(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"sleep"}})
	w.offer(minor)
	first := w.start("--ahead=0")
	w.choose(minor)
	w.awaitPods(1)
	first.signal(syscall.SIGKILL)
	w.choose("")
	w.start("--ahead=0")
	w.awaitRuns(minor + " selected Canceled Undecided")
	house.ExpectNothingLeft(t)
}

// A controller that is ended, as for its own update, leaves the run to the next one.
func TestLeaderEnds(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass", "slow"}})
	w.offer(minor)
	first := w.start("--ahead=0")
	w.choose(minor)
	w.awaitPods(1)
	if code := first.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	begun := w.await("the run is in progress", func(found []record.Record) bool {
		return slices.Equal(summaries(found), []string{minor + " selected Running"})
	})
	w.start("--ahead=0")
	finished := w.awaitRuns(minor + " selected Complete Ready")
	if finished[0].ID != begun[0].ID {
		t.Errorf("the next leader finished run %s, want %s", finished[0].ID, begun[0].ID)
	}
	house.ExpectNothingLeft(t)
}

// The API server is killed while a check runs. The controller stays the leader, or becomes
// it again, and finishes the run.
func TestAPIServerIsKilled(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass", "slow"}})
	w.offer(minor)
	p := w.start("--ahead=0", "--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s")
	w.choose(minor)
	w.awaitPods(1)
	begun := w.awaitRuns(minor + " selected Running")
	if err := local.Crash(t.Context(), "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if err := local.Revive(t.Context(), "kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	finished := w.awaitRuns(minor + " selected Complete Ready")
	if finished[0].ID != begun[0].ID {
		t.Errorf("run %s finished, want %s", finished[0].ID, begun[0].ID)
	}
	p.awaitMetric("update_preflight_up 1")
	house.ExpectNothingLeft(t)
}

// ClusterVersion is deleted and comes back: the controller waits for it.
func TestNoClusterVersion(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass"}})
	house.Kubectl(t, "delete", "clusterversion", "version")
	p := w.start()
	p.awaitMetric("update_preflight_up 1")
	w.awaitRuns()
	w.offer(minor)
	w.awaitRuns(minor + " ahead Complete Ready")
}

// A verdict whose record is deleted is not Ready any more.
func TestRecordIsDeleted(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass"}})
	w.offer(minor)
	p := w.start("--ahead=0")
	w.choose(minor)
	digest := strings.SplitAfter(w.images[minor], "@")[1]
	ready := `update_preflight_verdict{decision="Ready",digest="` + digest + `",guard="true",target="` + minor + `"} `
	w.awaitRuns(minor + " selected Complete Ready")
	p.awaitMetric(ready + "1")
	w.forget()
	p.awaitMetric(ready + "0")
}
