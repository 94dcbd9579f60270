// Package gate answers: which conditions stand between this cluster and the
// target until somebody fixes or acknowledges them? Each gate is one file.
// Names are the risk names of the cluster-version operator (CVO). Two checks of
// what `oc adm upgrade` looks at besides, Failing and CannotRetrieveUpdates, may
// be accepted by name, as with `oc adm upgrade recommend --accept`.
package gate

import (
	"github.com/openshift/update-preflight/collector/check"
)

// Checks are all gates, for one update of one cluster. Here belongs a new one.
func Checks() []check.Check {
	return []check.Check{
		AdminAck(),
		ClusterOperators(),
		Deletion(),
		Failing(),
		GiantHop(),
		IncompatibleOperators(),
		KubeletSkew(),
		MachineConfigPools(),
		Overrides(),
		RemovedAPIs(),
		RequestValid(),
		RetrievedUpdates(),
		Rollback(),
		Updating(),
		Upgradeable(),
	}
}
