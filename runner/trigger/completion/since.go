package completion

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
)

// Since is since when a cluster for which [Of] is True has been so, as far as its objects have times:
// since the end of the update, and the last change of a condition that it depends on. It is zero
// where the end of the update has no time.
func Since(cluster Cluster) time.Time {
	history := cluster.Version.Status.History
	if len(history) == 0 || history[0].CompletionTime.IsZero() {
		return time.Time{}
	}
	times := []time.Time{history[0].CompletionTime.Time}
	times = append(times, changes(cluster.Version.Status.Conditions, typeFailing, configv1.OperatorProgressing)...)
	for i := range cluster.Operators {
		times = append(times, changes(cluster.Operators[i].Status.Conditions, configv1.OperatorAvailable, configv1.OperatorDegraded)...)
	}
	for i := range cluster.Pools {
		times = append(times, poolChanges(&cluster.Pools[i])...)
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// changes are the times of the last changes of these conditions.
func changes(all []configv1.ClusterOperatorStatusCondition, kinds ...configv1.ClusterStatusConditionType) []time.Time {
	var times []time.Time
	for _, kind := range kinds {
		if found := condition(all, kind); found != nil {
			times = append(times, found.LastTransitionTime.Time)
		}
	}
	return times
}

// poolChanges are the times of the last changes of the conditions on which a pool depends.
func poolChanges(pool *machineconfigurationv1.MachineConfigPool) []time.Time {
	var times []time.Time
	for _, each := range pool.Status.Conditions {
		if each.Type == machineconfigurationv1.MachineConfigPoolUpdated || each.Type == machineconfigurationv1.MachineConfigPoolDegraded {
			times = append(times, each.LastTransitionTime.Time)
		}
	}
	return times
}
