package trigger_test

import (
	"strings"
	"testing"
)

// The versions of the releases: the cluster is at 5.1.3.
const (
	minor = "5.2.0"
	patch = "5.1.9"
)

// A selected target is not run ahead, so its delay does not count. Its verdict is no longer Ready
// when the record has been deleted.
func TestSelectedRunsAtOnce(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass"}})
	w.offer(minor)
	p := w.start("--ahead=0", "--ahead-delay=10m")
	w.selectVersion(minor)
	digest := strings.SplitAfter(w.images[minor], "@")[1]
	ready := `update_preflight_verdict{decision="Ready",digest="` + digest + `",guard="true",target="` + minor + `"} `
	w.awaitRuns(minor + " selected Complete Ready")
	testCluster.ExpectNothingLeft(t)
	p.awaitMetric(ready + "1")
	w.deleteRecords()
	p.awaitMetric(ready + "0")
}

func TestOfferedRunsAhead(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"fail"}, patch: {"pass"}})
	p := w.start()
	w.offer(minor, patch)
	found := w.awaitRuns(patch+" ahead Complete Ready", minor+" ahead Complete Blocked")
	if found[0].Target.Version != patch || found[0].StartTime.Before(found[1].CompletionTime) {
		t.Errorf("the runs must be sequential, beginning with the newest version: %+v", found)
	}
	digest := func(version string) string { return strings.SplitAfter(w.images[version], "@")[1] }
	exported := p.awaitMetric(
		"update_preflight_up 1",
		`update_preflight_verdict{decision="Blocked",digest="`+digest(minor)+`",guard="true",target="`+minor+`"} 1`,
		`update_preflight_verdict{decision="Ready",digest="`+digest(patch)+`",guard="false",target="`+patch+`"} 1`,
		`update_preflight_findings{blocks="true",outcome="Fail",target="`+minor+`"} 1`,
	)
	if !strings.Contains(exported, `update_preflight_completion_timestamp_seconds{target="`+patch+`"}`) {
		t.Errorf("the completion time of the run is not exported:\n%s", exported)
	}

	// The verdict on the selected target holds: no further run.
	w.selectVersion(patch)
	p.awaitMetric(`update_preflight_verdict{decision="Ready",digest="` + digest(patch) + `",guard="true",target="` + patch + `"} 1`)
	w.awaitRuns(patch+" ahead Complete Ready", minor+" ahead Complete Blocked")
	testCluster.ExpectNothingLeft(t)
}

// ClusterVersion is deleted and created again: the controller waits for it, and runs nothing
// ahead while an update is in progress.
func TestNoRunsAheadDuringAnUpdate(t *testing.T) {
	w := newWorld(t, map[string][]string{minor: {"pass"}})
	testCluster.Kubectl(t, "delete", "clusterversion", "version")
	p := w.start()
	p.awaitMetric("update_preflight_up 1")
	w.awaitRuns()
	w.State.Updating = true
	w.offer(minor)
	// The exported target shows that the controller has processed ClusterVersion.
	p.awaitMetric(`update_preflight_verdict{decision="Undecided",digest="` + strings.SplitAfter(w.images[minor], "@")[1] +
		`",guard="true",target="` + minor + `"} 1`)
	w.awaitRuns()
	w.State.Updating = false
	w.Apply(t)
	w.awaitRuns(minor + " ahead Complete Ready")
}
