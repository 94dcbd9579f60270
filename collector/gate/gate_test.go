package gate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// A finding that only repeats others names them, and stays in the verdict.
func TestWithCauses(t *testing.T) {
	const pools = "One or more machine config pools are updating, please see `oc get mcp` for further details"
	pool := reported("MachineConfigPool-master", preflight.Warn, "PoolUpdating", `MachineConfigPool "master" is updating`)
	operator := reported("ClusterOperatorUpgradeable-machine-config", preflight.Fail, "PoolUpdating",
		`ClusterOperator "machine-config" reports Upgradeable=False: `+pools+"\nThis blocks updates to another minor version than 4.18.")
	condition := reported("ClusterVersionUpgradeable", preflight.Fail, "PoolUpdating",
		"Cluster operator machine-config should not be upgraded between minor versions: "+pools)
	for name, tc := range map[string]struct {
		reason   string
		findings []finding.Finding
		want     map[string][]string
	}{
		"Chain": {
			reason: "the pool is the cause of both conditions", findings: []finding.Finding{condition, operator, pool},
			want: map[string][]string{"ClusterVersionUpgradeable": {"ClusterOperatorUpgradeable-machine-config"}, "ClusterOperatorUpgradeable-machine-config": {"MachineConfigPool-master"}},
		},
		"OtherPool": {
			reason:   "a pool in another state is not what the operator reports",
			findings: []finding.Finding{operator, reported("MachineConfigPool-worker", preflight.Fail, "DegradedPool", "degraded")}, want: map[string][]string{},
		},
		"Operator": {
			reason:   "the condition states more than the ClusterOperators",
			findings: []finding.Finding{reported("ClusterVersionUpgradeable", preflight.Fail, "Overrides", "overrides are set"), operator}, want: map[string][]string{},
		},
		"Passed": {
			reason:   "an operator that blocks nothing has no cause",
			findings: []finding.Finding{reported("ClusterOperatorUpgradeable-machine-config", preflight.Warn, "PoolUpdating", "unknown"), pool}, want: map[string][]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			decided, folded := verdict.Fold(tc.findings, verdict.Expectation{}, verdict.Policy{})
			got := map[string][]string{}
			for _, f := range gate.WithCauses(folded) {
				if f.CausedBy != nil {
					got[f.Name] = f.CausedBy
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if name == "Chain" && len(decided.Blocking) != 2 {
				t.Errorf("%s: %v block, want the condition and the operator", tc.reason, decided.Blocking)
			}
		})
	}
}

func reported(name string, outcome preflight.Outcome, reason, message string) finding.Finding {
	return finding.New(outcome, finding.ReportedReason(reason), "%s", message).Named(name).From(finding.SourceGate)
}
