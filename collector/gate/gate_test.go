package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/internal/checktest"
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
			want: map[string][]string{
				"ClusterVersionUpgradeable":                 {"ClusterOperatorUpgradeable-machine-config"},
				"ClusterOperatorUpgradeable-machine-config": {"MachineConfigPool-master"},
			},
		},
		"OtherPool": {
			reason:   "a pool in another state is not what the operator reports",
			findings: []finding.Finding{operator, reported("MachineConfigPool-worker", preflight.Fail, "DegradedPool", "degraded")},
			want:     map[string][]string{},
		},
		"Operator": {
			reason:   "the condition states more than the ClusterOperators",
			findings: []finding.Finding{reported("ClusterVersionUpgradeable", preflight.Fail, "Overrides", "overrides are set"), operator},
			want:     map[string][]string{},
		},
		"Passed": {
			reason:   "an operator that blocks nothing has no cause",
			findings: []finding.Finding{reported("ClusterOperatorUpgradeable-machine-config", preflight.Warn, "PoolUpdating", "unknown"), pool},
			want:     map[string][]string{},
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

// conditions sets the status of a pool: these conditions are True, and otherwise
// Degraded is False. The status is of the first generation.
func conditions(pool *machineconfigurationv1.MachineConfigPool,
	isTrue ...machineconfigurationv1.MachineConfigPoolConditionType,
) *machineconfigurationv1.MachineConfigPool {
	pool.Status = machineconfigurationv1.MachineConfigPoolStatus{ObservedGeneration: 1, MachineCount: 3, UpdatedMachineCount: 1}
	status := map[machineconfigurationv1.MachineConfigPoolConditionType]corev1.ConditionStatus{
		machineconfigurationv1.MachineConfigPoolDegraded: corev1.ConditionFalse,
	}
	for _, kind := range isTrue {
		status[kind] = corev1.ConditionTrue
	}
	for kind, is := range status {
		pool.Status.Conditions = append(pool.Status.Conditions, machineconfigurationv1.MachineConfigPoolCondition{
			Type: kind, Status: is, Message: "because of " + string(kind),
		})
	}
	return pool
}

func empty(pool *machineconfigurationv1.MachineConfigPool) *machineconfigurationv1.MachineConfigPool {
	pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 0, 0
	return pool
}

// The fields of a pool say who has paused it: a test of the API server, which reads them as the product does.
func TestPausedByItsFields(t *testing.T) {
	server.Of("acme-operator").Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode), conditions(paused("worker")))
	remedies := checktest.Remedies(checktest.Run(t, gate.MachineConfigPools(), server.Snapshot(t), checktest.MinorUpdate(t, "", "")))
	if !strings.Contains(remedies, "Wait until acme-operator, which paused the pool") {
		t.Error(remedies)
	}
}

// The program that paused a pool unpauses it: an administrator who does so instead breaks off what its nodes are in.
func TestPausedByAProgram(t *testing.T) {
	of := conditions(paused("worker"))
	of.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": "worker"}}
	server.Of("oc").Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode), of, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Labels: map[string]string{"role": "worker"},
		Annotations: map[string]string{"sriovnetwork.openshift.io/state": "Draining_MCP_Paused"},
	}})
	remedies := checktest.Remedies(checktest.Run(t, gate.MachineConfigPools(), server.Snapshot(t), checktest.MinorUpdate(t, "", "")))
	if !strings.Contains(remedies, "Wait until sriovnetwork.openshift.io, which paused the pool") || strings.Contains(remedies, "oc patch") {
		t.Error(remedies)
	}
}

func TestMachineConfigPools(t *testing.T) {
	const name = "MachineConfigPool-worker"
	stale := conditions(pool("worker"))
	stale.Status.ObservedGeneration = 0
	unreported := conditions(pool("worker"))
	unreported.Status.Conditions = nil
	undetermined := conditions(pool("worker"))
	undetermined.Status.Conditions[0].Status = corev1.ConditionUnknown
	for test, tc := range map[string]struct {
		reason  string
		to      string
		pool    *machineconfigurationv1.MachineConfigPool
		message string // a part of it
		name    string
		want    checktest.Result
	}{
		"Updated": {
			reason: "the pool is up to date", pool: conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolUpdated),
			message: "none of the 1 ",
			name:    "MachineConfigPool", want: checktest.Result{Outcome: preflight.Pass, Reason: "PoolsUpdated"},
		},
		"Degraded": {
			reason: "the machine-config-operator reports Upgradeable=False; the other condition has the cause",
			pool: conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolDegraded,
				machineconfigurationv1.MachineConfigPoolNodeDegraded),
			message: "because of Degraded; NodeDegraded: because of NodeDegraded; this does not block patch updates",
			want:    checktest.Result{Outcome: preflight.Fail, Reason: "DegradedPool"},
		},
		"DegradedAndPaused": {
			reason: "the worst finding is reported",
			pool:   conditions(paused("worker"), machineconfigurationv1.MachineConfigPoolDegraded),
			want:   checktest.Result{Outcome: preflight.Fail, Reason: "DegradedPool"},
		},
		"BuildInterrupted": {
			reason: "the machine-config-operator reports Upgradeable=False for an interrupted build",
			pool:   conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolBuildInterrupted),
			want:   checktest.Result{Outcome: preflight.Fail, Reason: "InterruptedBuild"},
		},
		"Updating": {
			reason: "since 4.19 an update of the nodes does not block", message: "1 of 3 nodes",
			pool: conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolUpdating),
			want: checktest.Result{Outcome: preflight.Warn, Reason: "PoolUpdating"},
		},
		"Paused": {
			reason: "a paused pool alone does not block", message: "KubeletMinorVersionUpgradeable reports by when",
			pool: conditions(paused("worker"), machineconfigurationv1.MachineConfigPoolUpdating),
			want: checktest.Result{Outcome: preflight.Warn, Reason: "PoolPaused"},
		},
		"PausedEmpty": {
			reason: "a pool without nodes keeps none from an update", message: "none of the 1 ",
			pool: empty(conditions(paused("infra"))), name: "MachineConfigPool",
			want: checktest.Result{Outcome: preflight.Pass, Reason: "PoolsUpdated"},
		},
		"Stale": {
			reason: "the status is older than the last change", message: "generation 0, but its spec has generation 1",
			pool: stale, want: checktest.Result{Outcome: preflight.Unknown, Reason: "StaleStatus"},
		},
		"Unreported": {
			reason: "a pool without conditions is inconclusive",
			pool:   unreported, want: checktest.Result{Outcome: preflight.Unknown, Reason: "NoDegradedCondition"},
		},
		"Undetermined": {
			reason: "a pool with Degraded=Unknown is inconclusive",
			pool:   undetermined, want: checktest.Result{Outcome: preflight.Unknown, Reason: "NoDegradedCondition"},
		},
		"Patch": {
			reason: "Upgradeable=False does not block patch updates", to: "4.18.9",
			pool: conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolDegraded),
			name: "MachineConfigPool", want: checktest.Result{Outcome: preflight.Skipped, Reason: "NotConcerned"},
		},
	} {
		t.Run(test, func(t *testing.T) {
			server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode), tc.pool)
			findings := checktest.Run(t, gate.MachineConfigPools(), server.Snapshot(t), checktest.MinorUpdate(t, "", tc.to))
			if tc.name == "" {
				tc.name = name
			}
			if diff := cmp.Diff(map[string]checktest.Result{tc.name: tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			checktest.Contains(t, tc.reason, findings[0].Message, []string{tc.message})
		})
	}
}

func TestMachineConfigPoolsUnread(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode))
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   checktest.Result
	}{
		"Forbidden": {
			reason: "without permission the check is inconclusive", server: server.Unprivileged(),
			want: checktest.Result{Outcome: preflight.Unknown, Reason: "Forbidden"},
		},
		"APIMissing": {
			reason: "every OpenShift cluster has the API",
			server: server.Responding(map[string]checktest.Response{poolsPath: checktest.NotServed}),
			want:   checktest.Result{Outcome: preflight.Unknown, Reason: "APIMissing"},
		},
		"Malformed": {
			reason: "a pool that cannot be decoded", want: checktest.Result{Outcome: preflight.Unknown, Reason: "Error"},
			server: server.Responding(map[string]checktest.Response{poolsPath: checktest.Body(
				`{"kind":"MachineConfigPoolList","apiVersion":"machineconfiguration.openshift.io/v1","items":[
				{"kind":"MachineConfigPool","apiVersion":"machineconfiguration.openshift.io/v1","metadata":{"name":"x"},"status":{"conditions":"none"}}]}`)}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := checktest.Run(t, gate.MachineConfigPools(), tc.server.Snapshot(t), checktest.MinorUpdate(t, "", ""))
			if diff := cmp.Diff(map[string]checktest.Result{"MachineConfigPool": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestManyMachineConfigPools(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode))
	var pools []*machineconfigurationv1.MachineConfigPool
	for i := range 2000 {
		pool := conditions(paused(fmt.Sprintf("pool-%d", i)))
		if i == 1999 {
			conditions(pool, machineconfigurationv1.MachineConfigPoolDegraded)
		}
		pool.APIVersion, pool.Kind = "machineconfiguration.openshift.io/v1", "MachineConfigPool"
		pools = append(pools, pool)
	}
	many := server.Responding(map[string]checktest.Response{poolsPath: checktest.Pages(t, "machineconfiguration.openshift.io/v1",
		"MachineConfigPoolList", pools)})
	findings := checktest.Run(t, gate.MachineConfigPools(), many.Snapshot(t), checktest.MinorUpdate(t, "", ""))
	first, last := findings[0], findings[len(findings)-1]
	if len(findings) != 51 || first.Name != "MachineConfigPool-pool-1999" || last.Outcome != preflight.Warn ||
		!strings.Contains(last.Message, "1950 more") {
		t.Errorf("%d findings, from %s to %q; want 50 with the degraded pool first, and the count of the others", len(findings), first.Name,
			last.Message)
	}
}
