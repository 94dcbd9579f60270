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
	"slices"
	"strings"

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

// WithCauses are folded findings, of which those that only repeat others name these: the condition Upgradeable of
// ClusterVersion repeats ClusterOperators and admin gates, and that of the machine-config-operator repeats its pools.
// The input is not changed.
//
// Source: syncUpgradeableStatus in pkg/operator/status.go of the machine-config-operator, whose reasons are those of
// the findings about pools; see also [clusterversion.Repeats].
func WithCauses(findings []finding.Finding) []finding.Finding {
	caused := slices.Clone(findings)
	for i, f := range findings {
		caused[i].CausedBy = clusterversion.Repeats(f, findings)
		if f.Name == clusterversion.NameOfOperator("machine-config") && f.Outcome == preflight.Fail {
			caused[i].CausedBy = poolsWith(f.Reason, findings)
		}
	}
	return caused
}

func poolsWith(reason string, findings []finding.Finding) []string {
	var names []string
	for _, f := range findings {
		if strings.HasPrefix(f.Name, nameMachineConfigPool+"-") && f.Reason == reason {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
