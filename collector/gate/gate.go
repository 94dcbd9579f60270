// Package gate answers: which conditions block the update until they are fixed or
// acknowledged?
//
// [Checks] are the gates of a target, [Later] the gates of a later update of a path. A check is one
// file, here or in a package beneath for a subject with several: [clusterversion], [adminack],
// [removedapi]. Its name is the risk name of the cluster-version operator (CVO), if it has one.
package gate

import (
	"context"
	"fmt"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Checks are all gates; fixed is passed to [removedapi.Check]. A new gate is added here.
func Checks(fixed removedapi.FixTime) []check.Check {
	return []check.Check{
		adminack.Check(),
		clusterversion.ClusterOperators(),
		clusterversion.Deletion(),
		clusterversion.Failing(),
		clusterversion.GiantHop(),
		IncompatibleOperators(),
		KubeletSkew(),
		MachineConfigPools(),
		NetworkType(),
		clusterversion.Overrides(),
		removedapi.Check(fixed),
		clusterversion.RequestValid(),
		clusterversion.RetrievedUpdates(),
		clusterversion.Rollback(),
		clusterversion.Updating(),
		clusterversion.Upgradeable(),
	}
}

// Later are the gates that can be evaluated for a later update of a path, which starts
// from a release that the cluster does not run yet. before are the admin gates of that
// release, by key; nil where it could not be read. fixed is passed to [removedapi.Check]. A
// subject of these checks has Later set.
func Later(before map[string]string, fixed removedapi.FixTime) []check.Check {
	return []check.Check{
		adminack.Later(before),
		clusterversion.LaterGiantHop(),
		IncompatibleOperators(),
		laterKubeletSkew(),
		NetworkType(),
		removedapi.Check(fixed),
	}
}

// laterKubeletSkew is KubeletSkew, except that a kubelet which is too old at present only
// warns: the nodes can be updated at the release before the update, whose gate then
// decides.
func laterKubeletSkew() check.Check {
	skew := KubeletSkew()
	judge := skew.Run
	skew.Run = func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
		findings, err := judge(ctx, s)
		for i, f := range findings {
			if f.Outcome == preflight.Fail {
				findings[i] = measure.Changed(f, preflight.Warn, "%s", untilThen(s.Update))
			}
		}
		return findings, err
	}
	return skew
}

func untilThen(u update.Update) string {
	return fmt.Sprintf("The nodes have to be updated when the cluster runs %s, before the update to %s.", u.From, u.To)
}
