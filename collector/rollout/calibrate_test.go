package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/update"
)

// completed returns a node whose last update with a reboot was completed at that minute.
func completed(pool, config string, minute int) machineconfigurationv1.MachineConfigNode {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
	condition := func(kind machineconfigurationv1.StateProgress, status metav1.ConditionStatus, at time.Time) metav1.Condition {
		return metav1.Condition{Type: string(kind), Status: status, Reason: string(kind), LastTransitionTime: metav1.NewTime(at)}
	}
	return machineconfigurationv1.MachineConfigNode{
		Spec: machineconfigurationv1.MachineConfigNodeSpec{Pool: machineconfigurationv1.MCOObjectReference{Name: pool}},
		Status: machineconfigurationv1.MachineConfigNodeStatus{
			ConfigVersion: &machineconfigurationv1.MachineConfigNodeStatusMachineConfigVersion{Current: config},
			Conditions: []metav1.Condition{
				condition(machineconfigurationv1.MachineConfigNodeUpdated, metav1.ConditionTrue, at),
				condition(machineconfigurationv1.MachineConfigNodeUpdateRebooted, metav1.ConditionFalse, at.Add(-2*time.Second)),
			},
		},
	}
}

// changed returns the node with changed conditions Updated and RebootedNode.
func changed(node machineconfigurationv1.MachineConfigNode, change func(updated, rebooted *metav1.Condition)) machineconfigurationv1.MachineConfigNode {
	change(&node.Status.Conditions[0], &node.Status.Conditions[1])
	return node
}

func TestNodeTimes(t *testing.T) {
	t.Parallel()
	type nodes = []machineconfigurationv1.MachineConfigNode
	for name, tc := range map[string]struct {
		reason   string
		nodes    nodes
		parallel int
		// want are minutes.
		want []int
	}{
		"None":        {reason: "a cluster without MachineConfigNodes"},
		"OneByOne":    {reason: "a node starts when the one before is completed", nodes: nodes{completed("worker", "b", 22), completed("worker", "b", 0), completed("worker", "b", 10)}, want: []int{10, 12}},
		"TwoByTwo":    {reason: "two nodes are updated at a time", parallel: 2, nodes: nodes{completed("worker", "b", 0), completed("worker", "b", 1), completed("worker", "b", 10), completed("worker", "b", 12)}, want: []int{10, 11}},
		"Pools":       {reason: "each pool has its own roll-out", nodes: nodes{completed("worker", "b", 0), completed("worker", "b", 9), completed("master", "m", 3), completed("master", "m", 10)}, want: []int{7, 9}},
		"LastOnly":    {reason: "only the last roll-out counts", nodes: nodes{completed("worker", "a", 0), completed("worker", "a", 5), completed("worker", "b", 100), completed("worker", "b", 108)}, want: []int{8}},
		"Implausible": {reason: "a difference of a minute or of days is not the time of one node", nodes: nodes{completed("worker", "b", 0), completed("worker", "b", 1), completed("worker", "b", 3000)}},
		"New": {
			reason: "a new node was not updated",
			nodes:  nodes{completed("worker", "b", 0), changed(completed("worker", "b", 10), func(_, rebooted *metav1.Condition) { rebooted.Reason = "NotYetOccurred" })},
		},
		"NoReboot": {
			reason: "the last update of the node needed no reboot",
			nodes: nodes{completed("worker", "b", 0), changed(completed("worker", "b", 10), func(_, rebooted *metav1.Condition) {
				rebooted.LastTransitionTime = metav1.NewTime(rebooted.LastTransitionTime.Add(-time.Hour))
			})},
		},
		"Updating": {
			reason: "the node is being updated",
			nodes:  nodes{completed("worker", "b", 0), changed(completed("worker", "b", 10), func(updated, _ *metav1.Condition) { updated.Status = metav1.ConditionFalse })},
		},
		"NoConditions": {reason: "MCO has not written the status yet", nodes: nodes{completed("worker", "b", 0), {}, {Status: machineconfigurationv1.MachineConfigNodeStatus{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []time.Duration
			for _, minutes := range tc.want {
				want = append(want, time.Duration(minutes)*time.Minute)
			}
			if diff := cmp.Diff(want, rollout.NodeTimes(tc.nodes, func(string) int { return tc.parallel })); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCalibrated(t *testing.T) {
	t.Parallel()
	documented := rollout.Documented(3, "")
	if model, ok := documented.Calibrated([]time.Duration{time.Minute}); ok || !cmp.Equal(documented, model) {
		t.Errorf("one node is not sufficient, got %v", model.Node)
	}
	model, ok := documented.Calibrated([]time.Duration{8 * time.Minute, 9 * time.Minute, 12 * time.Minute, 99 * time.Minute})
	want := rollout.Range{Low: 8 * time.Minute, Expected: 9 * time.Minute, High: 12 * time.Minute}
	if !ok || model.Node != want {
		t.Errorf("a node takes %v, want the median of those that were not interrupted: %v", model.Node, want)
	}
}

// entry returns an entry of a history; without minutes it has no completion time.
func entry(version string, state configv1.UpdateState, minutes int) configv1.UpdateHistory {
	start := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	made := configv1.UpdateHistory{Version: version, State: state, StartedTime: start}
	if minutes != 0 {
		end := metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute))
		made.CompletionTime = &end
	}
	return made
}

func TestHistory(t *testing.T) {
	t.Parallel()
	const completed, partial = configv1.CompletedUpdate, configv1.PartialUpdate
	type past = map[update.Kind][]time.Duration
	for name, tc := range map[string]struct {
		reason  string
		entries []configv1.UpdateHistory
		want    past
	}{
		"Installed": {reason: "the installation is no update", entries: []configv1.UpdateHistory{entry("4.16.1", completed, 40)}, want: past{}},
		"Kinds": {
			reason:  "an update starts from the last release that was completed",
			entries: []configv1.UpdateHistory{entry("4.17.3", completed, 90), entry("4.17.1", partial, 10), entry("4.16.9", completed, 50), entry("4.16.1", completed, 40)},
			want:    past{update.Minor: {90 * time.Minute}, update.Patch: {50 * time.Minute}},
		},
		"Unusable": {
			reason: "times that are missing or contradictory, the same version and a rollback are ignored",
			entries: []configv1.UpdateHistory{
				entry("4.16.1", completed, 30), entry("4.16.9", completed, 20), entry("4.16.9", completed, -5), entry("4.16.9", completed, 0),
				entry("no version", completed, 5), entry("4.16.1", completed, 40),
			},
			want: past{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, rollout.History(tc.entries)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
