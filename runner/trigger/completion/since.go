package completion

import (
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
	add := func(all []configv1.ClusterOperatorStatusCondition, kinds ...configv1.ClusterStatusConditionType) {
		for _, kind := range kinds {
			if found := condition(all, kind); found != nil {
				times = append(times, found.LastTransitionTime.Time)
			}
		}
	}
	add(cluster.Version.Status.Conditions, typeFailing, configv1.OperatorProgressing)
	for i := range cluster.Operators {
		add(cluster.Operators[i].Status.Conditions, configv1.OperatorAvailable, configv1.OperatorDegraded)
	}
	for i := range cluster.Pools {
		for _, each := range cluster.Pools[i].Status.Conditions {
			if each.Type == machineconfigurationv1.MachineConfigPoolUpdated || each.Type == machineconfigurationv1.MachineConfigPoolDegraded {
				times = append(times, each.LastTransitionTime.Time)
			}
		}
	}
	newest := times[0]
	for _, each := range times[1:] {
		if each.After(newest) {
			newest = each
		}
	}
	return newest
}
