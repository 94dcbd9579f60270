package hosted

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	namePools = finding.NewName("NodePools",
		"The NodePools that would not be updated when their release is requested. The update of a control plane does not update "+
			"them, so the findings are warnings, unless the pools are named for this update.")

	reasonPoolsUpdatable = finding.NewReason("NodePoolsUpdatable", finding.Explanation{
		Meaning: "Reported when nothing keeps the NodePools from being updated.",
		Cause:   "None is paused, and their conditions are as expected.",
	})
	reasonPoolOnDelete = finding.NewReason("NodePoolOnDelete", finding.Explanation{
		Meaning: "Reported when a NodePool replaces its machines only when they are deleted by hand.",
		Cause:   "Its spec.management.replace.strategy is OnDelete.",
		Remedy:  "Delete the machines one after the other after the update was requested, or set the strategy RollingUpdate.",
	})
	reasonPoolDeadlock = finding.NewReason("NodePoolDeadlock", finding.Explanation{
		Meaning: "Reported when a NodePool may neither add a machine nor remove one during its update.",
		Cause:   "MaxSurge and maxUnavailable of its rolling update are 0.",
		Remedy:  "Set maxSurge or maxUnavailable of the NodePool to at least 1.",
	})
	reasonPoolCondition = finding.NewReason("NodePoolCondition", finding.Explanation{
		Meaning: "Reported when a condition of a NodePool states that it is not updated, or that its nodes are not healthy.",
		Cause:   "The message has the condition.",
		Remedy:  "Fix what the condition names: oc get nodepool -o yaml.",
	})
	reasonPoolArchitecture = finding.NewReason("NodePoolArchitecture", finding.Explanation{
		Meaning: "Reported when the release of the HostedCluster lacks the architecture of a NodePool, of which HyperShift then reconciles nothing (condition ValidArchPlatform).",
		Cause:   "The release is of another architecture, and not a multi-architecture one.",
		Remedy:  "Request a multi-architecture release, or replace the NodePool by one of the architecture of the release.",
	})
	reasonPoolUpdating = finding.NewReason("NodePoolUpdating", finding.Explanation{
		Meaning: "Reported when a NodePool is being updated.",
		Cause:   "Its condition UpdatingVersion or UpdatingConfig is True.",
		Remedy:  "Wait until the update of the NodePool is complete.",
	})
	reasonPoolSurge = finding.NewReason("NodePoolSurge", finding.Explanation{
		Meaning: "Reported when a NodePool that is named for the update adds machines before it removes others.",
		Cause:   "The maxSurge of its rolling update is not 0, and whether the infrastructure has room and quota for them is not known.",
		Remedy:  "Check the quota of the infrastructure for the machines of the pool.",
	})
	reasonPoolNodesDiffer = finding.NewReason("NodePoolNodesDiffer", finding.Explanation{
		Meaning: "Reported when nodes of a NodePool have another version than the NodePool states.",
		Cause:   "HyperShift does not update the nodes of this pool itself, or the update is not complete.",
		Remedy:  "Update the nodes.",
	})
)

// poolsCheck is the check NodePools.
func poolsCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: namePools, Kind: finding.SourceHealth, Side: check.Management,
		Run: func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
			if c.poolsError != nil {
				return nil, c.poolsError
			}
			var found []finding.Finding
			for i := range c.pools {
				judged := judgePool(c, &c.pools[i], s)
				if !c.named {
					judged = asWarnings(judged)
				}
				for _, f := range judged {
					found = append(found, aboutPool(&c.pools[i], f))
				}
			}
			if len(found) == 0 {
				found = append(found, c.about(finding.Pass(gap.Proven("the list of the NodePools"), reasonPoolsUpdatable, "nothing keeps the %s from being updated", words.Count(len(c.pools), "NodePool"))))
			}
			return found, nil
		},
	}
}

// asWarnings are the findings about a pool that is not updated: none of them blocks, and no machine is added.
func asWarnings(judged []finding.Finding) []finding.Finding {
	judged = slices.DeleteFunc(judged, func(f finding.Finding) bool { return f.Reason == reasonPoolSurge.String() })
	for i, f := range judged {
		if f.Outcome == preflight.Fail {
			judged[i] = f.Judged(preflight.Warn)
		}
	}
	return judged
}

// NodePools are the pools that are named for this update, as their nodes are drained at a time; empty
// where none is, since the update of a control plane drains no node.
func (c *ControlPlane) NodePools(now time.Time) []order.NodePool {
	if !c.named {
		return []order.NodePool{}
	}
	return Drains(c.pools, now)
}

// Drains are pools as their nodes are drained when each of them is updated, at a time.
func Drains(pools []hypershift.NodePool, now time.Time) []order.NodePool {
	drained := make([]order.NodePool, 0, len(pools))
	for i := range pools {
		spec := &pools[i].Spec
		pool := order.NodePool{Name: pools[i].Name, Replicas: spec.Replicas, InPlace: spec.Management.UpgradeType == "InPlace"}
		if in := spec.Management.InPlace; pool.InPlace && in != nil {
			pool.MaxUnavailable = in.MaxUnavailable
		}
		if replace := spec.Management.Replace; !pool.InPlace && replace != nil && replace.RollingUpdate != nil {
			pool.MaxUnavailable, pool.MaxSurge = replace.RollingUpdate.MaxUnavailable, replace.RollingUpdate.MaxSurge
		}
		if spec.NodeDrainTimeout != nil {
			pool.Timeout = spec.NodeDrainTimeout.Duration
		}
		switch paused, f := pause("", spec.PausedUntil, now); {
		case paused && f.Outcome == preflight.Fail:
			pool.Skip = order.Paused
		case onDelete(&pools[i]):
			pool.Skip = order.OnDelete
		}
		drained = append(drained, pool)
	}
	return drained
}

// poolConditions are the conditions of a NodePool that are not True while HyperShift stops before it updates the nodes
// (hypershift at 3ee9615: hypershift-operator controllers/nodepool, nodepool_controller.go, reconcile, with conditions.go,
// nto.go and the file of each platform), and those of nodes that are not in order. Other stops have
// findings of their own: the pause, ValidArchPlatform, and the deletion. An error to read a Secret or a ConfigMap of the
// HostedCluster has no condition of the pool: those of the HostedCluster report it. The absence of these means
// that HyperShift has nothing to report.
func poolConditions() []string {
	return []string{
		"UpdateManagementEnabled", "ValidReleaseImage", "IgnitionEndpointAvailable", "ValidMachineConfig", "ValidTuningConfig",
		"ValidPlatformImage", "ValidMachineTemplate", "AWSSecurityGroupAvailable",
		"ValidGeneratedPayload", "ValidPlatformConfig", "AllMachinesReady", "AllNodesHealthy",
	}
}

// judgePool is what keeps a pool from being updated to a release.
func judgePool(c *ControlPlane, pool *hypershift.NodePool, s check.Subject) []finding.Finding {
	found := judgePause(pool, s.Now)
	if pool.DeletionTimestamp != nil {
		found = append(found, finding.Fail(reasonDeleted, "NodePool %s is being deleted, so it is not updated", nameOf(pool)))
	}
	found = append(found, judgeArchitecture(c, pool)...)
	found = append(found, judgeStrategy(pool)...)
	if replaces(pool) {
		found = append(found, finding.Warn(reasonPoolSurge, "NodePool %s adds machines (maxSurge %s) before it removes others, and whether the infrastructure has room for them is unknown", nameOf(pool), surgeOf(pool)))
	}
	found = append(found, judgePoolConditions(pool, s.Update.To.String())...)
	for _, name := range []string{"UpdatingVersion", "UpdatingConfig"} {
		if meta.IsStatusConditionTrue(pool.Status.Conditions, name) {
			return append(found, finding.Warn(reasonPoolUpdating, "NodePool %s is being updated (%s)", nameOf(pool), name))
		}
	}
	for _, version := range pool.Versions() {
		if pool.Status.Version != "" && version != pool.Status.Version {
			found = append(found, finding.Warn(reasonPoolNodesDiffer, "nodes of NodePool %s are of %s, and the NodePool states %s", nameOf(pool), words.External(version), words.External(pool.Status.Version)))
		}
	}
	return found
}

// judgePoolConditions is about the conditions of a pool that is updated to a version. HyperShift leaves the status of
// ValidGeneratedPayload empty where the payload is not valid, and reports AsExpected of a pool without replicas.
func judgePoolConditions(pool *hypershift.NodePool, version string) []finding.Finding {
	var found []finding.Finding
	for _, name := range poolConditions() {
		condition := meta.FindStatusCondition(pool.Status.Conditions, name)
		switch {
		case condition == nil || condition.Status != metav1.ConditionFalse && condition.Status != "" || condition.Reason == "AsExpected":
		case name == "ValidReleaseImage" && replaced(condition.Message, version):
			found = append(found, finding.Warn(reasonReplaced, "HyperShift does not reconcile NodePool %s until the request for %s replaces the release of it: %s", nameOf(pool), version, inWords(condition)))
		default:
			found = append(found, finding.Fail(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition)))
		}
	}
	return found
}

// judgeArchitecture is about a pool of an architecture that the release lacks. HyperShift also reports
// ValidArchPlatform False of an architecture that it does not support on the platform, and continues.
func judgeArchitecture(c *ControlPlane, pool *hypershift.NodePool) []finding.Finding {
	condition := meta.FindStatusCondition(pool.Status.Conditions, "ValidArchPlatform")
	invalid := condition != nil && condition.Status == metav1.ConditionFalse
	switch {
	case !c.Cluster.PayloadHas(pool):
		return []finding.Finding{finding.Fail(reasonPoolArchitecture, "NodePool %s has the architecture %s, which the release of HostedCluster %s lacks (status.payloadArch is %s), so HyperShift does not reconcile the pool",
			nameOf(pool), words.External(pool.Architecture()), c.name(), words.External(c.Cluster.Status.PayloadArch))}
	case invalid && c.Cluster.Status.PayloadArch != "":
		return []finding.Finding{finding.Warn(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	case invalid:
		return []finding.Finding{finding.Fail(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	}
	return nil
}

// judgePause is about a pool that is paused. HyperShift reports the pause in the condition
// ReconciliationActive, which may outlast it until the pool is reconciled again.
func judgePause(pool *hypershift.NodePool, now time.Time) []finding.Finding {
	if noted, f := pause("NodePool "+nameOf(pool), pool.Spec.PausedUntil, now); noted && f.Outcome == preflight.Fail {
		return []finding.Finding{f}
	} else if condition := meta.FindStatusCondition(pool.Status.Conditions, "ReconciliationActive"); condition != nil && condition.Status == metav1.ConditionFalse {
		return []finding.Finding{finding.Fail(reasonPoolCondition, "NodePool %s is not reconciled: %s", nameOf(pool), inWords(condition))}
	} else if noted {
		return []finding.Finding{f}
	}
	return nil
}

// judgeStrategy is why the machines of a pool would not be replaced.
func judgeStrategy(pool *hypershift.NodePool) []finding.Finding {
	if onDelete(pool) {
		return []finding.Finding{finding.Fail(reasonPoolOnDelete, "NodePool %s replaces its machines only when they are deleted", nameOf(pool))}
	}
	replace := pool.Spec.Management.Replace
	if replace == nil || pool.Spec.Management.UpgradeType != "Replace" {
		return nil
	}
	if rolling := replace.RollingUpdate; rolling != nil && isZero(rolling.MaxSurge, false) && isZero(rolling.MaxUnavailable, true) {
		return []finding.Finding{finding.Fail(reasonPoolDeadlock, "NodePool %s has maxSurge 0 and maxUnavailable 0, so no machine is replaced", nameOf(pool))}
	}
	return nil
}

// onDelete reports whether a pool replaces a machine only when it is deleted.
func onDelete(pool *hypershift.NodePool) bool {
	replace := pool.Spec.Management.Replace
	return pool.Spec.Management.UpgradeType == "Replace" && replace != nil && replace.Strategy == "OnDelete"
}

// replaces reports whether a pool adds machines before it removes others.
func replaces(pool *hypershift.NodePool) bool {
	return pool.Spec.Management.UpgradeType == "Replace" && !onDelete(pool) && surgeOf(pool) != "0" && surgeOf(pool) != "0%"
}

// surgeOf is maxSurge of a pool, by default 1.
func surgeOf(pool *hypershift.NodePool) string {
	replace := pool.Spec.Management.Replace
	if replace == nil || replace.RollingUpdate == nil || replace.RollingUpdate.MaxSurge == nil {
		return "1"
	}
	return words.External(replace.RollingUpdate.MaxSurge.String())
}

// isZero reports whether a number or percentage is 0, or absent where the default is 0.
func isZero(count *intstr.IntOrString, absent bool) bool {
	if count == nil {
		return absent
	}
	scaled, err := intstr.GetScaledValueFromIntOrPercent(count, 100, true)
	return err == nil && scaled == 0
}
