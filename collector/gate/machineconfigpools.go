package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxPoolMessage bounds what is quoted of a pool's condition, in bytes.
const maxPoolMessage = 1024

// MachineConfigPools is the gate that is shut while a pool of nodes is
// degraded, or the build of its image was interrupted
// (machine-config-operator pkg/operator/status.go): a finding
// MachineConfigPool-<name> for each pool of which there is something to say. It
// concerns updates that leave the current minor version. A pool that is
// updating or paused does not stand in the way of this update; KubeletSkew says
// when it will.
func MachineConfigPools(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: "MachineConfigPool", Kind: preflight.SourceGate, Update: u, Concerns: update.Update.LeavesMinor,
		Look: func(ctx context.Context) ([]preflight.Finding, error) {
			if skipped, err := noPools(ctx, cluster); skipped != nil || err != nil {
				return skipped, err
			}
			pools, err := cluster.MachineConfigPools(ctx)
			if apierrors.IsNotFound(err) {
				return apiMissing("MachineConfigPools", machineconfigurationv1.GroupName), nil
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the MachineConfigPools: %w", err)
			}
			return judgePools(pools), nil
		},
	}
}

func judgePools(pools []machineconfigurationv1.MachineConfigPool) []preflight.Finding {
	var findings []preflight.Finding
	for i := range pools {
		if finding := judgePool(&pools[i]); finding.Outcome != preflight.Pass {
			finding.Name = "MachineConfigPool-" + pools[i].Name
			finding.Objects = []preflight.Object{{
				APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: "MachineConfigPool", Name: pools[i].Name,
			}}
			findings = append(findings, finding)
		}
	}
	if len(findings) == 0 {
		return []preflight.Finding{{
			Outcome: preflight.Pass, Reason: "PoolsUpdated",
			Message: fmt.Sprintf("none of the %d MachineConfigPools is degraded, updating or paused", len(pools)),
		}}
	}
	return bounded(findings)
}

// judgePool says the worst of a pool.
func judgePool(pool *machineconfigurationv1.MachineConfigPool) preflight.Finding {
	const wait = "oc wait machineconfigpool %s --for condition=Updated --timeout=-1s"
	degraded, told := poolCondition(pool, machineconfigurationv1.MachineConfigPoolDegraded)
	interrupted, _ := poolCondition(pool, machineconfigurationv1.MachineConfigPoolBuildInterrupted)
	updating, _ := poolCondition(pool, machineconfigurationv1.MachineConfigPoolUpdating)
	describe := "oc describe machineconfigpool " + pool.Name
	switch {
	case pool.Status.ObservedGeneration < pool.Generation:
		return preflight.Finding{
			Outcome: preflight.Unknown, Reason: "StaleStatus",
			Message: fmt.Sprintf("the status of MachineConfigPool %q is of generation %d, and the pool is at %d: it may be degraded since",
				pool.Name, pool.Status.ObservedGeneration, pool.Generation),
			Remediation: "See whether the controller runs: oc -n openshift-machine-config-operator get pods -l k8s-app=machine-config-controller",
		}
	case degraded.Status == corev1.ConditionTrue:
		return preflight.Finding{
			Outcome: preflight.Fail, Reason: "DegradedPool",
			Message: fmt.Sprintf("MachineConfigPool %q is degraded%s; this does not block patch updates",
				pool.Name, explain(degraded, degradedBy(pool))),
			Remediation: "Put right what the pool complains about: " + describe,
		}
	case interrupted.Status == corev1.ConditionTrue:
		return preflight.Finding{
			Outcome: preflight.Fail, Reason: "InterruptedBuild",
			Message: fmt.Sprintf("the image build of MachineConfigPool %q was interrupted%s; this does not block patch updates",
				pool.Name, explain(interrupted, nil)),
			Remediation: "See what interrupted it, and let it be built again: oc get machineosbuilds; " + describe,
		}
	case !told || degraded.Status != corev1.ConditionFalse:
		return preflight.Finding{
			Outcome: preflight.Unknown, Reason: "NoDegradedCondition",
			Message:     fmt.Sprintf("MachineConfigPool %q does not say whether it is degraded%s", pool.Name, explain(degraded, nil)),
			Remediation: "Wait until its controller has looked at it: " + describe,
		}
	case pool.Spec.Paused:
		return preflight.Finding{
			Outcome: preflight.Warn, Reason: "PoolPaused",
			Message: fmt.Sprintf("MachineConfigPool %q is paused: its %d nodes stay as they are, %d of them up to date; see %s for how long that may last",
				pool.Name, pool.Status.MachineCount, pool.Status.UpdatedMachineCount, kubeletSkewTitle),
			Remediation: fmt.Sprintf("Unpause it when its nodes may be updated: oc patch machineconfigpool %s --type merge --patch '{\"spec\":{\"paused\":false}}'", pool.Name),
		}
	case updating.Status == corev1.ConditionTrue:
		return preflight.Finding{
			Outcome: preflight.Warn, Reason: "PoolUpdating",
			Message: fmt.Sprintf("MachineConfigPool %q is updating: %d of %d nodes are up to date",
				pool.Name, pool.Status.UpdatedMachineCount, pool.Status.MachineCount),
			Remediation: "Wait until it is done: " + fmt.Sprintf(wait, pool.Name),
		}
	}
	return preflight.Finding{Outcome: preflight.Pass}
}

func poolCondition(
	pool *machineconfigurationv1.MachineConfigPool, kind machineconfigurationv1.MachineConfigPoolConditionType,
) (machineconfigurationv1.MachineConfigPoolCondition, bool) {
	for _, condition := range pool.Status.Conditions {
		if condition.Type == kind {
			return condition, true
		}
	}
	return machineconfigurationv1.MachineConfigPoolCondition{}, false
}

// degradedBy are the conditions that Degraded sums up: they say of which node,
// and why.
func degradedBy(pool *machineconfigurationv1.MachineConfigPool) []machineconfigurationv1.MachineConfigPoolCondition {
	return slices.DeleteFunc(slices.Clone(pool.Status.Conditions), func(condition machineconfigurationv1.MachineConfigPoolCondition) bool {
		return condition.Status != corev1.ConditionTrue || condition.Type == machineconfigurationv1.MachineConfigPoolDegraded ||
			!strings.HasSuffix(string(condition.Type), "Degraded")
	})
}

// explain is what a condition says, and what those say that it sums up.
func explain(
	condition machineconfigurationv1.MachineConfigPoolCondition, causes []machineconfigurationv1.MachineConfigPoolCondition,
) string {
	var texts []string
	if condition.Message != "" {
		texts = append(texts, condition.Message)
	}
	for _, cause := range causes {
		texts = append(texts, fmt.Sprintf("%s: %s", cause.Type, cause.Message))
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + short(strings.Join(texts, "; "), maxPoolMessage)
}
