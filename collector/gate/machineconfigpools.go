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
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
)

const (
	ReasonPoolsUpdated        finding.Reason = "PoolsUpdated"
	ReasonDegradedPool        finding.Reason = "DegradedPool"
	ReasonInterruptedBuild    finding.Reason = "InterruptedBuild"
	ReasonNoDegradedCondition finding.Reason = "NoDegradedCondition"
	ReasonPoolPaused          finding.Reason = "PoolPaused"
	ReasonPoolUpdating        finding.Reason = "PoolUpdating"
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
func MachineConfigPools() check.Check {
	return check.Check{
		Name: "MachineConfigPool", Kind: finding.SourceGate, Concerns: update.Update.LeavesMinor,
		Reads: append(clusterVersionReads(), check.List(machineconfigurationv1.GroupName, "machineconfigpools")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if skipped, err := noPools(ctx, s.Cluster); skipped != nil || err != nil {
				return skipped, err
			}
			pools, err := s.Cluster.MachineConfigPools(ctx)
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

func judgePools(pools []machineconfigurationv1.MachineConfigPool) []finding.Finding {
	var findings []finding.Finding
	for i := range pools {
		if f, ok := judgePool(&pools[i]); ok {
			findings = append(findings, f.Named("MachineConfigPool-"+pools[i].Name).About(finding.Object{
				APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: "MachineConfigPool", Name: pools[i].Name,
			}))
		}
	}
	if len(findings) == 0 {
		return []finding.Finding{finding.Pass(ReasonPoolsUpdated, "none of the %d MachineConfigPools is degraded, updating or paused", len(pools))}
	}
	return bounded(findings)
}

// judgePool returns the worst finding of a pool; false for a pool without one.
func judgePool(pool *machineconfigurationv1.MachineConfigPool) (finding.Finding, bool) {
	const wait = "oc wait machineconfigpool %s --for condition=Updated --timeout=-1s"
	degraded, told := poolCondition(pool, machineconfigurationv1.MachineConfigPoolDegraded)
	interrupted, _ := poolCondition(pool, machineconfigurationv1.MachineConfigPoolBuildInterrupted)
	updating, _ := poolCondition(pool, machineconfigurationv1.MachineConfigPoolUpdating)
	describe := "oc describe machineconfigpool " + pool.Name
	switch {
	case pool.Status.ObservedGeneration < pool.Generation:
		return finding.Unknown(ReasonStaleStatus,
			"the status of MachineConfigPool %q is of generation %d, and the pool is at %d: it may be degraded since", pool.Name, pool.Status.ObservedGeneration, pool.Generation).
			Remedy("See whether the controller runs: oc -n openshift-machine-config-operator get pods -l k8s-app=machine-config-controller"), true
	case degraded.Status == corev1.ConditionTrue:
		return finding.Fail(ReasonDegradedPool,
			"MachineConfigPool %q is degraded%s; this does not block patch updates", pool.Name, explain(degraded, degradedBy(pool))).
			Remedy("Put right what the pool complains about: %s", describe), true
	case interrupted.Status == corev1.ConditionTrue:
		return finding.Fail(ReasonInterruptedBuild,
			"the image build of MachineConfigPool %q was interrupted%s; this does not block patch updates", pool.Name, explain(interrupted, nil)).
			Remedy("See what interrupted it, and let it be built again: oc get machineosbuilds; %s", describe), true
	case !told || degraded.Status != corev1.ConditionFalse:
		return finding.Unknown(ReasonNoDegradedCondition,
			"MachineConfigPool %q does not say whether it is degraded%s", pool.Name, explain(degraded, nil)).
			Remedy("Wait until its controller has looked at it: %s", describe), true
	case pool.Spec.Paused:
		return finding.Warn(ReasonPoolPaused,
			"MachineConfigPool %q is paused: its %d nodes stay as they are, %d of them up to date; see %s for how long that may last", pool.Name, pool.Status.MachineCount, pool.Status.UpdatedMachineCount, kubeletSkewTitle).
			Remedy("Unpause it when its nodes may be updated: oc patch machineconfigpool %s --type merge --patch '{\"spec\":{\"paused\":false}}'", pool.Name), true
	case updating.Status == corev1.ConditionTrue:
		return finding.Warn(ReasonPoolUpdating,
			"MachineConfigPool %q is updating: %d of %d nodes are up to date", pool.Name, pool.Status.UpdatedMachineCount, pool.Status.MachineCount).
			Remedy("Wait until it is done: %s", fmt.Sprintf(wait, pool.Name)), true
	}
	return finding.Finding{}, false
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
