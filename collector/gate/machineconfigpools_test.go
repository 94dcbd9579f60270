package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// conditions are a pool's: those named are True, and Degraded is False where it
// is not. The status is of the pool's first generation.
func conditions(pool *machineconfigurationv1.MachineConfigPool, isTrue ...machineconfigurationv1.MachineConfigPoolConditionType) *machineconfigurationv1.MachineConfigPool {
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

func TestMachineConfigPools(t *testing.T) {
	const name = "MachineConfigPool-worker"
	stale := conditions(pool("worker"))
	stale.Status.ObservedGeneration = 0
	silent := conditions(pool("worker"))
	silent.Status.Conditions = nil
	unsure := conditions(pool("worker"))
	unsure.Status.Conditions[0].Status = corev1.ConditionUnknown
	for test, tc := range map[string]struct {
		reason string
		to     string
		pool   *machineconfigurationv1.MachineConfigPool
		says   string
		name   string
		want   checktest.Said
	}{
		"Updated": {
			reason: "nothing is in the way", pool: conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolUpdated), says: "none of the 1 ",
			name: "MachineConfigPool", want: checktest.Said{Outcome: preflight.Pass, Reason: "PoolsUpdated"},
		},
		"Degraded": {
			reason: "the machine-config-operator says Upgradeable=False, and the condition below says why",
			pool:   conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolDegraded, machineconfigurationv1.MachineConfigPoolNodeDegraded),
			says:   "because of Degraded; NodeDegraded: because of NodeDegraded; this does not block patch updates",
			want:   checktest.Said{Outcome: preflight.Fail, Reason: "DegradedPool"},
		},
		"DegradedAndPaused": {
			reason: "the worst is said",
			pool:   conditions(paused("worker"), machineconfigurationv1.MachineConfigPoolDegraded),
			want:   checktest.Said{Outcome: preflight.Fail, Reason: "DegradedPool"},
		},
		"BuildInterrupted": {
			reason: "so does a build that was interrupted",
			pool:   conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolBuildInterrupted),
			want:   checktest.Said{Outcome: preflight.Fail, Reason: "InterruptedBuild"},
		},
		"Updating": {
			reason: "since 4.19 an update of the nodes does not block", says: "1 of 3 nodes",
			pool: conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolUpdating),
			want: checktest.Said{Outcome: preflight.Warn, Reason: "PoolUpdating"},
		},
		"Paused": {
			reason: "a paused pool blocks nothing by itself", says: "see KubeletMinorVersionUpgradeable",
			pool: conditions(paused("worker"), machineconfigurationv1.MachineConfigPoolUpdating),
			want: checktest.Said{Outcome: preflight.Warn, Reason: "PoolPaused"},
		},
		"Stale": {
			reason: "a status of before the last change tells nothing", says: "of generation 0, and the pool is at 1",
			pool: stale, want: checktest.Said{Outcome: preflight.Unknown, Reason: "StaleStatus"},
		},
		"Silent": {
			reason: "a pool without conditions is not known to be well",
			pool:   silent, want: checktest.Said{Outcome: preflight.Unknown, Reason: "NoDegradedCondition"},
		},
		"Unsure": {
			reason: "nor is one that does not know",
			pool:   unsure, want: checktest.Said{Outcome: preflight.Unknown, Reason: "NoDegradedCondition"},
		},
		"Patch": {
			reason: "Upgradeable=False does not block patch updates", to: "4.18.9",
			pool: conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolDegraded),
			name: "MachineConfigPool", want: checktest.Said{Outcome: preflight.Skipped, Reason: "NotConcerned"},
		},
	} {
		t.Run(test, func(t *testing.T) {
			server.Hold(t, infrastructure(configv1.HighlyAvailableTopologyMode), tc.pool)
			findings := checktest.Run(t, gate.MachineConfigPools(), server.Snapshot(t), parse(t, "", tc.to))
			if diff := cmp.Diff(map[string]checktest.Said{either(tc.name, name): tc.want}, checktest.Summary(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.says)
			}
		})
	}
}

func TestMachineConfigPoolsUnreadable(t *testing.T) {
	server.Hold(t, infrastructure(configv1.HighlyAvailableTopologyMode))
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   checktest.Said
	}{
		"Forbidden":  {reason: "who may not look cannot tell", server: server.Nobody(), want: checktest.Said{Outcome: preflight.Unknown, Reason: "Forbidden"}},
		"APIMissing": {reason: "OpenShift has it", server: server.Answering(map[string]checktest.Answer{poolsPath: checktest.NotServed}), want: checktest.Said{Outcome: preflight.Unknown, Reason: "APIMissing"}},
		"Malformed": {
			reason: "a pool that is no pool", want: checktest.Said{Outcome: preflight.Unknown, Reason: "Error"},
			server: server.Answering(map[string]checktest.Answer{poolsPath: checktest.Says(`{"kind":"MachineConfigPoolList","apiVersion":"machineconfiguration.openshift.io/v1","items":[
				{"kind":"MachineConfigPool","apiVersion":"machineconfiguration.openshift.io/v1","metadata":{"name":"x"},"status":{"conditions":"none"}}]}`)}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := checktest.Run(t, gate.MachineConfigPools(), tc.server.Snapshot(t), parse(t, "", ""))
			if diff := cmp.Diff(map[string]checktest.Said{"MachineConfigPool": tc.want}, checktest.Summary(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestManyMachineConfigPools(t *testing.T) {
	server.Hold(t, infrastructure(configv1.HighlyAvailableTopologyMode))
	var pools []*machineconfigurationv1.MachineConfigPool
	for i := range 2000 {
		pool := conditions(paused(fmt.Sprintf("pool-%d", i)))
		if i == 1999 {
			conditions(pool, machineconfigurationv1.MachineConfigPoolDegraded)
		}
		pool.APIVersion, pool.Kind = "machineconfiguration.openshift.io/v1", "MachineConfigPool"
		pools = append(pools, pool)
	}
	many := server.Answering(map[string]checktest.Answer{poolsPath: checktest.Pages(t, "machineconfiguration.openshift.io/v1", "MachineConfigPoolList", pools)})
	findings := checktest.Run(t, gate.MachineConfigPools(), many.Snapshot(t), parse(t, "", ""))
	first, last := findings[0], findings[len(findings)-1]
	if len(findings) != 51 || first.Name != "MachineConfigPool-pool-1999" || last.Outcome != preflight.Warn || !strings.Contains(last.Message, "1950 more") {
		t.Errorf("%d findings, from %s to %q; want 50 with the degraded one first, and the count of the others", len(findings), first.Name, last.Message)
	}
}
