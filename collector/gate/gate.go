// Package gate answers: which conditions stand between this cluster and the
// target until somebody fixes or acknowledges them? Each gate is one file.
// Names are the risk names of the cluster-version operator (CVO). Two checks of
// what `oc adm upgrade` looks at besides, Failing and CannotRetrieveUpdates, may
// be accepted by name, as with `oc adm upgrade recommend --accept`.
package gate

import (
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
)

// Checks are all gates, for one update of one cluster. Here belongs a new one.
func Checks(cluster *snapshot.Cluster, u update.Update) []check.Check {
	return []check.Check{
		AdminAck(cluster, u),
		ClusterOperators(cluster, u),
		Deletion(cluster, u),
		Failing(cluster, u),
		GiantHop(cluster, u),
		IncompatibleOperators(cluster, u),
		KubeletSkew(cluster, u),
		MachineConfigPools(cluster, u),
		Overrides(cluster, u),
		RemovedAPIs(cluster, u),
		RequestValid(cluster, u),
		RetrievedUpdates(cluster, u),
		Rollback(cluster, u),
		Updating(cluster, u),
		Upgradeable(cluster, u),
	}
}
