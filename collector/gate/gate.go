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

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
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

// Later returns the gates that can be evaluated for a later update of a path, which starts from a release that the
// cluster does not run yet. before are the admin gates of that release, by key; nil if it could not be read. fixed
// is passed to [removedapi.Check]. A subject of these checks has Later set.
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
	return fmt.Sprintf("The nodes must be updated while the cluster runs %s, before the update to %s.", u.From, u.To)
}

// WithCauses returns folded findings; a finding that only repeats others names these as its causes. The condition
// Upgradeable of ClusterVersion repeats ClusterOperators and admin gates, and the machine-config-operator's
// condition repeats its pools. The input is not changed.
//
// Source: syncUpgradeableStatus in pkg/operator/status.go of the machine-config-operator, which uses the reasons
// of the findings about pools; see also [clusterversion.Repeats].
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

var (
	nameMachineConfigPool = finding.NewName("MachineConfigPool",
		"Blocks updates to another minor or major version while a MachineConfigPool is degraded or the build of its image was "+
			"interrupted (machine-config-operator pkg/operator/status.go). Each pool that blocks or warns has a finding "+
			"MachineConfigPool-<name>. An updating or paused pool does not block this update; KubeletSkew reports when it will.")

	reasonPoolsUpdated = finding.NewReason("PoolsUpdated", finding.Explanation{
		Meaning: "No MachineConfigPool is degraded, updating or paused.",
		Cause:   "All pools are up to date.",
	})
	reasonDegradedPool = finding.NewReason("DegradedPool", finding.Explanation{
		Meaning: "A MachineConfigPool is degraded, so its nodes cannot be updated. This blocks updates to another minor version.",
		Cause: "The machine-config-operator could not apply a configuration to a node of the pool; the message contains the pool's " +
			"conditions.",
		Remedy:  "Fix the causes that the pool's conditions report.",
		Command: "oc describe machineconfigpool NAME",
	})
	reasonInterruptedBuild = finding.NewReason("InterruptedBuild", finding.Explanation{
		Meaning: "The build of the operating system image of a MachineConfigPool was interrupted. This blocks updates to another minor " +
			"version.",
		Cause:   "The build was canceled, or its pod was deleted.",
		Remedy:  "Check what interrupted the build, and start it again.",
		Command: "oc get machineosbuilds",
	})
	reasonNoDegradedCondition = finding.NewReason("NoDegradedCondition", finding.Explanation{
		Meaning: "The condition Degraded of a MachineConfigPool is absent, or neither True nor False, so the check is inconclusive.",
		Cause:   "The machine-config-controller has not evaluated the pool yet, or is not running.",
		Remedy:  "Wait until the controller has evaluated the pool.",
		Command: "oc describe machineconfigpool NAME",
	})
	reasonPoolUpdating = finding.NewReason("PoolUpdating", finding.Explanation{
		Meaning: "The nodes of a MachineConfigPool are being updated.",
		Cause:   "An earlier update or a configuration change is rolling out.",
		Remedy:  "Wait until the pool is updated.",
		Command: "oc wait machineconfigpool NAME --for condition=Updated --timeout=-1s",
	})
)

// maxPoolMessage bounds a pool's conditions in a message, in bytes.
const maxPoolMessage = 1024

// MachineConfigPools is the check MachineConfigPool.
func MachineConfigPools() check.Check {
	return check.Check{
		Name: nameMachineConfigPool, Kind: finding.SourceGate,
		Reads: append(check.ReadsClusterVersion(), check.List(machineconfigurationv1.GroupName, "machineconfigpools"), check.List("", "nodes")),
		Run: measure.Run(measure.ByUpgradeable, func(ctx context.Context, s check.Subject, _ measure.Measure) ([]finding.Finding, error) {
			if skipped, err := withoutPools(ctx, s); skipped != nil || err != nil {
				return skipped, err
			}
			pools, err := s.Cluster.MachineConfigPools(ctx)
			if apierrors.IsNotFound(err) {
				return []finding.Finding{check.APIMissing("MachineConfigPools", machineconfigurationv1.GroupName)}, nil
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the MachineConfigPools: %w", err)
			}
			read := gap.ExtentOf(ctx)
			return judgePools(read, pools, func(pool *machineconfigurationv1.MachineConfigPool) string { return s.PausedBy(ctx, pool) }), nil
		}),
	}
}

func judgePools(read gap.Extent, pools []machineconfigurationv1.MachineConfigPool,
	by func(*machineconfigurationv1.MachineConfigPool) string,
) []finding.Finding {
	var findings []finding.Finding
	for i := range pools {
		if f, ok := judgePool(&pools[i], by); ok {
			findings = append(findings, f.Named(nameMachineConfigPool+"-"+pools[i].Name).About(poolObject(pools[i].Name)))
		}
	}
	if len(findings) == 0 {
		return []finding.Finding{finding.Pass(read, reasonPoolsUpdated, "none of the %d MachineConfigPools is degraded, updating or paused",
			len(pools))}
	}
	return finding.Bounded(finding.Drafts(findings...))
}

// judgePool returns the worst finding of a pool; false for a pool without one.
func judgePool(pool *machineconfigurationv1.MachineConfigPool,
	by func(*machineconfigurationv1.MachineConfigPool) string,
) (finding.Finding, bool) {
	degraded := poolCondition(pool, machineconfigurationv1.MachineConfigPoolDegraded)
	interrupted := poolCondition(pool, machineconfigurationv1.MachineConfigPoolBuildInterrupted)
	updating := poolCondition(pool, machineconfigurationv1.MachineConfigPoolUpdating)
	describe := finding.Read("oc describe machineconfigpool %s", pool.Name)
	if stale, ok := check.Stale(poolObject(pool.Name), pool.Status.ObservedGeneration, pool.Generation); ok {
		return stale.Do(finding.Read("oc -n openshift-machine-config-operator get pods -l k8s-app=machine-config-controller")), true
	}
	switch {
	case degraded.Status == corev1.ConditionTrue:
		return finding.Fail(reasonDegradedPool,
				"MachineConfigPool %q is degraded%s; this does not block patch updates", pool.Name, explain(degraded, degradedBy(pool))).Do(describe),
			true
	case interrupted.Status == corev1.ConditionTrue:
		return finding.Fail(reasonInterruptedBuild,
			"the image build of MachineConfigPool %q was interrupted%s; this does not block patch updates", pool.Name, explain(interrupted, nil)).
			Do(finding.Read("oc get machineosbuilds"), describe), true
	case degraded.Status != corev1.ConditionFalse:
		return finding.Unknown(reasonNoDegradedCondition,
			"MachineConfigPool %q does not report whether it is degraded%s", pool.Name, explain(degraded, nil)).Do(describe), true
	case pool.Spec.Paused && pool.Status.MachineCount > 0: // a pool without nodes keeps none from an update
		return check.Unpause(finding.Warn(reasonPoolPaused,
			"MachineConfigPool %q is paused: %d of its %s are up to date, and the others are not updated until it is unpaused; %s "+
				"reports by when they must be",
			pool.Name, pool.Status.UpdatedMachineCount, words.Count(int(pool.Status.MachineCount), "node"), kubeletSkewName),
			pool.Name, by(pool), "Unpause the pool when its nodes may be updated."), true
	case updating.Status == corev1.ConditionTrue:
		return finding.Warn(reasonPoolUpdating,
			"MachineConfigPool %q is updating: %d of %s are up to date", pool.Name, pool.Status.UpdatedMachineCount,
			words.Count(int(pool.Status.MachineCount), "node")).
			Do(finding.Read(waitForPool, pool.Name)), true
	}
	return finding.Finding{}, false
}

// poolCondition returns a condition; its status is empty where there is none.
func poolCondition(
	pool *machineconfigurationv1.MachineConfigPool, kind machineconfigurationv1.MachineConfigPoolConditionType,
) machineconfigurationv1.MachineConfigPoolCondition {
	for _, condition := range pool.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return machineconfigurationv1.MachineConfigPoolCondition{}
}

// degradedBy are the conditions that Degraded summarizes: they name the node and the cause.
func degradedBy(pool *machineconfigurationv1.MachineConfigPool) []machineconfigurationv1.MachineConfigPoolCondition {
	return slices.DeleteFunc(slices.Clone(pool.Status.Conditions), func(condition machineconfigurationv1.MachineConfigPoolCondition) bool {
		return condition.Status != corev1.ConditionTrue || condition.Type == machineconfigurationv1.MachineConfigPoolDegraded ||
			!strings.HasSuffix(string(condition.Type), "Degraded")
	})
}

// explain joins the message of a condition with the messages of the conditions that it summarizes.
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
	return ": " + words.Lines(strings.Join(texts, "; "), maxPoolMessage)
}

var reasonPoolPaused = finding.NewReason("PoolPaused", finding.Explanation{
	Meaning: "A MachineConfigPool is paused, so its nodes keep their kubelet version. A later update is blocked once that version is " +
		"too old.",
	Cause: "An administrator paused the pool, for example to avoid a reboot.",
	Remedy: "Unpause the pool before the update to the release in the message: `oc patch machineconfigpool NAME --type merge --patch " +
		"'{\"spec\":{\"paused\":false}}'`.",
})

// waitForPool is a command that ends when a pool is up to date.
const waitForPool = "oc wait machineconfigpool %s --for condition=Updated --timeout=-1s"

// withoutPools is the result of a check of MachineConfigPools on a cluster whose
// nodes they do not update; it is nil for other clusters.
func withoutPools(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	topology, err := s.Topology(ctx)
	if err != nil {
		return nil, err
	}
	switch topology {
	case snapshot.HyperShift:
		return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), check.ReasonHyperShift,
			"the control plane of this cluster is hosted; NodePools of the management cluster update its nodes by their own rules")}, nil
	case snapshot.Kubernetes:
		return []finding.Finding{check.PlainKubernetes("MachineConfigPools")}, nil
	case snapshot.SelfManaged:
	}
	return nil, nil
}

func poolObject(name string) finding.Object {
	return finding.Object{APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: "MachineConfigPool", Name: name}
}
