package gate

import (
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

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
