package settling_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/settling"
)

func noon() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }

// entries is a history whose newest entry is the first: a version, with "-" before one that was not completed. Each
// began an hour before the one that is newer.
func entries(versions ...string) []configv1.UpdateHistory {
	var history []configv1.UpdateHistory
	for i, version := range versions {
		started := metav1.NewTime(noon().Add(-time.Duration(i) * time.Hour))
		entry := configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: version, StartedTime: started}
		if version[0] == '-' {
			entry.State, entry.Version = configv1.PartialUpdate, version[1:]
		}
		ended := metav1.NewTime(started.Add(30 * time.Minute))
		entry.CompletionTime = &ended
		if i == 0 && entry.State == configv1.PartialUpdate {
			entry.CompletionTime = nil
		}
		history = append(history, entry)
	}
	return history
}

func TestChangeOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		history    []configv1.UpdateHistory
		none       bool
		from, to   string
		retargeted []string
		// started is how many hours before noon.
		started    int
		completed  bool
		rolledBack bool
	}{
		"Installed":      {reason: "an installation is no update", history: entries("4.18.1"), none: true},
		"NoHistory":      {reason: "CVO has not written one yet", none: true},
		"InstallPartial": {reason: "no release was ever completed", history: entries("-4.18.2", "-4.18.1"), none: true},
		"Completed":      {reason: "the usual update", history: entries("4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.2", completed: true},
		"InProgress":     {reason: "CVO works on it", history: entries("-4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.2"},
		"Retargeted": {
			reason: "the state before the first start is that before the update", history: entries("4.18.3", "-4.18.2", "4.18.1"),
			from: "4.18.1", to: "4.18.3", retargeted: []string{"4.18.2"}, started: 1, completed: true,
		},
		"RetargetedTwice": {
			reason: "also after several", history: entries("-4.18.4", "-4.18.3", "-4.18.2", "4.18.1"), from: "4.18.1",
			to: "4.18.4", retargeted: []string{"4.18.2", "4.18.3"}, started: 2,
		},
		"Last": {
			reason: "earlier updates are other changes", history: entries("4.18.3", "4.18.2", "-4.18.1", "4.18.0"),
			from: "4.18.2", to: "4.18.3", completed: true,
		},
		"GivenUp": {
			reason: "the release before was requested again before the end", history: entries("4.18.1", "-4.18.2", "4.18.1"),
			from: "4.18.1", to: "4.18.2", started: 1, rolledBack: true,
		},
		"GivingUp": {
			reason: "and is not completed again", history: entries("-4.18.1", "-4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.2",
			started: 1, rolledBack: true,
		},
		"Undone": {
			reason: "the release before was requested again after the end", history: entries("4.18.1", "4.18.2", "4.18.1"),
			from: "4.18.1", to: "4.18.2", started: 1, completed: true, rolledBack: true,
		},
		"Lower": {
			reason:  "a lower release that the cluster never ran is an update like any other",
			history: entries("4.18.0", "4.18.2", "4.18.1"), from: "4.18.2", to: "4.18.0", completed: true,
		},
		"SameAgain": {reason: "the same release was requested again after an interruption", history: entries("4.18.2", "-4.18.3", "-4.18.2",
			"4.18.1"), from: "4.18.1", to: "4.18.2", retargeted: []string{"4.18.2", "4.18.3"}, started: 2, completed: true},
	} {
		t.Run(name, func(t *testing.T) {
			change, found := settling.ChangeOf(tc.history)
			if found == tc.none {
				t.Fatalf("%s: found %t", tc.reason, found)
			}
			if tc.none {
				return
			}
			if change.From.Version != tc.from || change.To.Version != tc.to || !slices.Equal(change.Retargeted, tc.retargeted) ||
				change.RolledBack != tc.rolledBack {
				t.Errorf("%s: %+v", tc.reason, change)
			}
			if want := noon().Add(-time.Duration(tc.started) * time.Hour); !change.Started.Equal(want) {
				t.Errorf("%s: started %s, want %s", tc.reason, change.Started, want)
			}
			if change.Completed.IsZero() == tc.completed {
				t.Errorf("%s: completed %s", tc.reason, change.Completed)
			}
		})
	}
}

// ended is when the cluster-version operator has completed the update of a test, an hour before noon.
func ended() time.Time { return noon().Add(-time.Hour) }

// rollout is one of an operator, a pool and a node that was rebooted, all of which ended at the time of their update.
func rollout() settling.Cluster {
	return settling.Cluster{
		Change: settling.Change{
			From: configv1.UpdateHistory{Version: "4.18.1"}, To: configv1.UpdateHistory{Version: "4.18.2"}, Started: ended().Add(-time.Hour),
			Completed: ended(),
		},
		Operators: []configv1.ClusterOperator{{
			ObjectMeta: metav1.ObjectMeta{Name: "dns"},
			Status: configv1.ClusterOperatorStatus{
				Versions: []configv1.OperandVersion{{Name: "operator", Version: "4.18.2"}, {Name: "coredns", Version: "1.2"}},
				Conditions: []configv1.ClusterOperatorStatusCondition{{
					Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse,
					LastTransitionTime: metav1.NewTime(ended().Add(-10 * time.Minute)),
				}},
			},
		}},
		Pools: []machineconfigurationv1.MachineConfigPool{{
			ObjectMeta: metav1.ObjectMeta{Name: "worker", Generation: 2},
			Status: machineconfigurationv1.MachineConfigPoolStatus{
				ObservedGeneration: 2, MachineCount: 3, UpdatedMachineCount: 3,
				Conditions: []machineconfigurationv1.MachineConfigPoolCondition{{
					Type:   machineconfigurationv1.MachineConfigPoolUpdated,
					Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ended()),
				}},
			},
		}},
		Nodes: []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
			Status: corev1.NodeStatus{
				NodeInfo: corev1.NodeSystemInfo{BootID: "boot-2"}, Conditions: []corev1.NodeCondition{{
					Type:   corev1.NodeReady,
					Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ended().Add(-30 * time.Minute)),
				}},
			},
		}},
	}
}

func TestProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(c *settling.Cluster)
		// waiting are parts of what it waits for, and settled is how long after the end of the update it settles otherwise.
		waiting []string
		settled time.Duration
		paused  string
	}{
		"Settled": {reason: "all rest for five minutes", change: func(*settling.Cluster) {}, settled: 5 * time.Minute},
		"NotCompleted": {
			reason: "CVO applies the release", change: func(c *settling.Cluster) { c.Change.Completed = time.Time{} },
			waiting: []string{"the cluster-version operator has not completed 4.18.2"},
		},
		"Behind": {
			reason:  "an operator states the version from before",
			change:  func(c *settling.Cluster) { c.Operators[0].Status.Versions[0].Version = "4.18.1" },
			waiting: []string{"ClusterOperators at another version: dns"},
		},
		"NoVersion": {
			reason: "an operator that states none is not behind",
			change: func(c *settling.Cluster) { c.Operators[0].Status.Versions = nil }, settled: 5 * time.Minute,
		},
		"Progressing": {
			reason:  "an operator is rolling out",
			change:  func(c *settling.Cluster) { c.Operators[0].Status.Conditions[0].Status = configv1.ConditionTrue },
			waiting: []string{"ClusterOperators that are progressing: dns"},
		},
		"OperatorLater": {reason: "an operator ended after CVO", change: func(c *settling.Cluster) {
			c.Operators[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(ended().Add(12 * time.Minute))
		}, settled: 17 * time.Minute},
		"OwnOperator": {reason: "the ClusterOperator of the preflight is of no release", change: func(c *settling.Cluster) {
			c.Operators[0].Name = "update-preflight"
			c.Operators[0].Status.Versions[0].Version = "v0.1"
		}, settled: 5 * time.Minute},
		"PoolNotUpdated": {
			reason: "nodes are left", change: func(c *settling.Cluster) { c.Pools[0].Status.UpdatedMachineCount = 2 },
			waiting: []string{"MachineConfigPools that are not updated: worker (2 of 3 nodes)"},
		},
		"PoolOld": {
			reason: "the controller has not read the new pool yet",
			change: func(c *settling.Cluster) { c.Pools[0].Generation = 3 }, waiting: []string{"MachineConfigPools that are not updated: worker"},
		},
		"PoolNoCondition": {
			reason: "nothing states that it is updated", change: func(c *settling.Cluster) { c.Pools[0].Status.Conditions = nil },
			waiting: []string{"MachineConfigPools that are not updated: worker"},
		},
		"PoolPaused": {reason: "it never ends", change: func(c *settling.Cluster) {
			c.Pools[0].Spec.Paused,
				c.Pools[0].Status.UpdatedMachineCount = true, 0
		}, settled: 5 * time.Minute, paused: "worker"},
		"PoolLater": {reason: "the last node was updated an hour after CVO", change: func(c *settling.Cluster) {
			c.Pools[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(ended().Add(time.Hour))
		}, settled: 65 * time.Minute},
		"Rebooted": {reason: "a node was rebooted after CVO", change: func(c *settling.Cluster) {
			c.Nodes[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(ended().Add(3 * time.Minute))
		}, settled: 23 * time.Minute},
		"NotRebooted": {reason: "a node that has its boot ID was only not ready", change: func(c *settling.Cluster) {
			c.Nodes[0].Status.NodeInfo.BootID = "boot-1"
			c.Nodes[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(ended().Add(3 * time.Minute))
		}, settled: 5 * time.Minute},
		"NewNode": {reason: "a node that the baseline does not have was not rebooted by the update", change: func(c *settling.Cluster) {
			c.Nodes[0].Name = "worker-9"
			c.Nodes[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(ended().Add(3 * time.Minute))
		}, settled: 5 * time.Minute},
		"All": {reason: "everything that it waits for is named", change: func(c *settling.Cluster) {
			c.Operators[0].Status.Versions[0].Version, c.Operators[0].Status.Conditions[0].Status = "4.18.1", configv1.ConditionTrue
			c.Pools[0].Status.UpdatedMachineCount = 1
		}, waiting: []string{"at another version", "progressing", "not updated"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := rollout()
			tc.change(&cluster)
			before := baseline.State{Objects: map[baseline.Key]baseline.Object{{Kind: baseline.Node, Name: "worker-1"}: {Detail: "boot-1"}}}
			got := settling.Of(cluster, before)
			waiting := strings.Join(got.Waiting, "; ")
			for _, part := range tc.waiting {
				if !strings.Contains(waiting, part) {
					t.Errorf("%s: it waits for %q, want %q", tc.reason, waiting, part)
				}
			}
			var want time.Time
			if tc.settled > 0 {
				want = ended().Add(tc.settled)
			}
			if !got.Settled.Equal(want) || len(got.Waiting) != len(tc.waiting) {
				t.Errorf("%s: settled at %s, want %s; it waits for %q", tc.reason, got.Settled, want, waiting)
			}
			if paused := strings.Join(got.Paused, ","); paused != tc.paused {
				t.Errorf("%s: paused are %q, want %q", tc.reason, paused, tc.paused)
			}
		})
	}
}

// Steps are named in the order in which they ended.
func TestSteps(t *testing.T) {
	before := baseline.State{Objects: map[baseline.Key]baseline.Object{{Kind: baseline.Node, Name: "worker-1"}: {Detail: "boot-1"}}}
	var got []string
	for _, step := range settling.Of(rollout(), before).Steps {
		got = append(got, step.Text)
	}
	want := "the start of the update, the reboot of node worker-1, the rollout of ClusterOperator dns, the end of the update of the " +
		"control plane, the update of MachineConfigPool worker"
	if steps := strings.Join(got, ", "); steps != want {
		t.Errorf("steps %s, want %s", steps, want)
	}
}
