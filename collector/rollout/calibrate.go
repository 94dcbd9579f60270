package rollout

import (
	"maps"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/update"
)

const (
	// minSamples is the smallest number of node times that replaces the documented one.
	minSamples = 2
	// sameTime bounds the time between conditions that are set together.
	sameTime = time.Minute
	// minNode and maxNode bound the time of a node that is plausible: less is two nodes at
	// the same time, more is a roll-out that was interrupted.
	minNode, maxNode = 2 * time.Minute, 4 * time.Hour
)

// NodeTimes are how long the nodes took in the last roll-out of each pool, sorted, by their
// MachineConfigNodes. Parallel is how many nodes of a pool are updated at a time.
//
// Of a roll-out, MachineConfigNodes keep the time at which each node was completed: MCO
// then resets all other conditions (machine-config-operator pkg/upgrademonitor). A node
// starts when the node before it in its place is completed, so the time between both is
// that of the node. Nodes that were not rebooted, as new ones, do not count.
func NodeTimes(nodes []machineconfigurationv1.MachineConfigNode, parallel func(pool string) int) []time.Duration {
	type rollout struct{ pool, config string }
	completed := map[rollout][]time.Time{}
	for i := range nodes {
		if at, ok := rebooted(nodes[i].Status.Conditions); ok && nodes[i].Status.ConfigVersion != nil {
			of := rollout{nodes[i].Spec.Pool.Name, nodes[i].Status.ConfigVersion.Current}
			completed[of] = append(completed[of], at)
		}
	}
	last := map[string][]time.Time{}
	for of, times := range completed {
		slices.SortFunc(times, time.Time.Compare)
		if newest := last[of.pool]; len(newest) == 0 || times[len(times)-1].After(newest[len(newest)-1]) {
			last[of.pool] = times
		}
	}
	var took []time.Duration
	for _, pool := range slices.Sorted(maps.Keys(last)) {
		places := max(1, parallel(pool))
		for i := places; i < len(last[pool]); i++ {
			if each := last[pool][i].Sub(last[pool][i-places]); each >= minNode && each <= maxNode {
				took = append(took, each)
			}
		}
	}
	slices.Sort(took)
	return took
}

// rebooted is when the last update of a node was completed, if it rebooted the node.
func rebooted(conditions []metav1.Condition) (time.Time, bool) {
	updated := meta.FindStatusCondition(conditions, string(machineconfigurationv1.MachineConfigNodeUpdated))
	reboot := meta.FindStatusCondition(conditions, string(machineconfigurationv1.MachineConfigNodeUpdateRebooted))
	if updated == nil || updated.Status != metav1.ConditionTrue || reboot == nil || reboot.Reason == "NotYetOccurred" {
		return time.Time{}, false
	}
	return updated.LastTransitionTime.Time, updated.LastTransitionTime.Sub(reboot.LastTransitionTime.Time).Abs() <= sameTime
}

// Calibrated is the model with the times of nodes of this cluster: the median, from the
// minimum to the maximum. The result is false for too few times.
func (m Model) Calibrated(nodes []time.Duration) (Model, bool) {
	if len(nodes) < minSamples {
		return m, false
	}
	m.Node, m.Measured = ofHistory(nodes), true
	return m, true
}

// History are the durations of the past updates of a cluster by kind, from the history of
// its ClusterVersion, the newest entry first. An update starts from the last release that
// was completed before. The installation, updates that were not completed, and those
// whose times are missing or contradictory are ignored.
func History(entries []configv1.UpdateHistory) map[update.Kind][]time.Duration {
	past := map[update.Kind][]time.Duration{}
	for i, entry := range entries {
		if entry.State != configv1.CompletedUpdate || entry.CompletionTime == nil {
			continue
		}
		took := entry.CompletionTime.Sub(entry.StartedTime.Time)
		before := completedBefore(entries[i+1:])
		if took <= 0 || before == "" {
			continue
		}
		if kind := update.Kind(update.KindOf(before, entry.Version)); kind == update.Patch || kind == update.Minor || kind == update.Major {
			past[kind] = append(past[kind], took)
		}
	}
	return past
}

// completedBefore is the version of the newest completed entry; empty if there is none.
func completedBefore(older []configv1.UpdateHistory) string {
	for _, entry := range older {
		if entry.State == configv1.CompletedUpdate {
			return entry.Version
		}
	}
	return ""
}
