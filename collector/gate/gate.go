// Package gate answers: which conditions block the update until they are fixed or
// acknowledged?
//
// Each check is one file. Names are the risk names of the cluster-version
// operator (CVO). Two checks, [Failing] and [RetrievedUpdates], are about what
// `oc adm upgrade` checks in addition; their findings may be accepted by name, as
// with `oc adm upgrade recommend --accept`.
package gate

import (
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
)

// Checks are all gates; fixed is that of [Check]. A new one is added here.
func Checks(fixed removedapi.FixTime) []check.Check {
	return []check.Check{
		adminack.Check(),
		ClusterOperators(),
		Deletion(),
		Failing(),
		GiantHop(),
		IncompatibleOperators(),
		KubeletSkew(),
		MachineConfigPools(),
		NetworkType(),
		Overrides(),
		removedapi.Check(fixed),
		RequestValid(),
		RetrievedUpdates(),
		Rollback(),
		Updating(),
		Upgradeable(),
	}
}
