package hosted

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/hypershift/hostedcondition"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	namePools = finding.NewName("NodePools",
		"NodePools that would not be updated when their release is requested. The update of a control plane does not update them, so "+
			"the findings are warnings, unless the pools are named for this update.")

	reasonPoolsUpdatable = finding.NewReason("NodePoolsUpdatable", finding.Explanation{
		Meaning: "Nothing keeps the NodePools from being updated.",
		Cause:   "None is paused, and their conditions are as expected.",
	})
	reasonPoolOnDelete = finding.NewReason("NodePoolOnDelete", finding.Explanation{
		Meaning: "A NodePool replaces its machines only when they are deleted by hand.",
		Cause:   "Its spec.management.replace.strategy is OnDelete.",
		Remedy:  "Request the update, then delete the machines one after the other, or set the strategy RollingUpdate.",
	})
	reasonPoolDeadlock = finding.NewReason("NodePoolDeadlock", finding.Explanation{
		Meaning: "A NodePool may neither add nor remove a machine during its update, so its nodes cannot be replaced.",
		Cause:   "maxSurge and maxUnavailable of its rolling update are 0.",
		Remedy:  "Set maxSurge or maxUnavailable of the NodePool to at least 1.",
	})
	reasonPoolCondition = finding.NewReason("NodePoolCondition", finding.Explanation{
		Meaning: "According to a condition of a NodePool, it is not updated, or its nodes are not healthy.",
		Cause:   "The message contains the condition.",
		Remedy:  "Fix the cause that the condition reports: oc get nodepool -o yaml.",
	})
	reasonPoolArchitecture = finding.NewReason("NodePoolArchitecture", finding.Explanation{
		Meaning: "The release of the HostedCluster lacks the architecture of a NodePool, so HyperShift does not reconcile the pool " +
			"(condition ValidArchPlatform).",
		Cause:  "The release has another architecture, and is not a multi-architecture release.",
		Remedy: "Request a multi-architecture release, or replace the NodePool with one of the release's architecture.",
	})
	reasonPoolArchitectureUnknown = finding.NewReason("NodePoolArchitectureUnknown", finding.Explanation{
		Meaning: "Whether a release has the architecture of a NodePool is unknown. HyperShift does not reconcile a NodePool whose " +
			"architecture the release lacks.",
		Cause: "HyperShift has not reported the architecture of the current release; or the NodePools have several, and the status of " +
			"the HostedCluster does not list the target with the architecture Multi.",
		Remedy: "Request a multi-architecture release: oc adm release info prints release.openshift.io/architecture.",
	})
	reasonPoolStream = finding.NewReason("NodePoolStream", finding.Explanation{
		Meaning: "HyperShift does not accept, or may not accept, spec.osImageStream of a NodePool for the target: the condition " +
			"ValidMachineConfig becomes False, and the nodes are not updated.",
		Cause: "The stream rhel-10 requires a release from 5.0 on, and a container runtime other than runc, which ConfigMaps of the " +
			"NodePool may configure.",
		Remedy: "Choose a target that has the stream; check that no ContainerRuntimeConfig in the ConfigMaps of spec.config has the " +
			"defaultRuntime runc.",
	})
	reasonPoolOwner = finding.NewReason("NodePoolAwaitsHostedCluster", finding.Explanation{
		Meaning: "HyperShift does not reconcile a NodePool because of its HostedCluster, and no condition of the NodePool shows it.",
		Cause: "spec.infraID of the HostedCluster is empty, or its status names no kubeconfig. HyperShift sets both when it reconciles " +
			"the HostedCluster.",
		Remedy: "Check the conditions of the HostedCluster, and the log of the hypershift-operator.",
	})
	reasonPoolImage = finding.NewReason("NodePoolImageUnknown", finding.Explanation{
		Meaning: "HyperShift finds no platform image for the current release of a NodePool, and may not find one for the target " +
			"(condition ValidPlatformImage).",
		Cause:  "The current release has no image for the platform, the region or the architecture of the NodePool.",
		Remedy: "Check that the target has an image for the platform and the region of the NodePool.",
	})
	reasonPoolManual = finding.NewReason("NodePoolNotAutomated", finding.Explanation{
		Meaning: "HyperShift does not update the nodes of a NodePool that is named for the update.",
		Cause:   "Its platform is None, or IBM Cloud with user-provisioned infrastructure.",
		Remedy:  "After the release of the NodePool has changed, update the nodes by hand.",
	})
	reasonPoolUpdating = finding.NewReason("NodePoolUpdating", finding.Explanation{
		Meaning: "A NodePool is being updated.",
		Cause:   "Its condition UpdatingVersion, UpdatingConfig or UpdatingPlatformMachineTemplate is True.",
		Remedy:  "Wait until the update of the NodePool is complete.",
	})
	reasonPoolSurge = finding.NewReason("NodePoolSurge", finding.Explanation{
		Meaning: "A NodePool that is named for the update adds machines before it removes others.",
		Cause:   "The maxSurge of its rolling update is not 0, and whether the infrastructure has room and quota for them is unknown.",
		Remedy:  "Check the quota of the infrastructure for the machines of the pool.",
	})
	reasonPoolNodesDiffer = finding.NewReason("NodePoolNodesDiffer", finding.Explanation{
		Meaning: "Nodes of a NodePool have a version that differs from the one that the NodePool reports.",
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
				found = append(found, c.about(finding.Pass(gap.Proven("the list of the NodePools"), reasonPoolsUpdatable,
					"nothing keeps the %s from being updated", words.Count(len(c.pools), "NodePool"))))
			}
			return found, nil
		},
	}
}

// asWarnings returns the findings about a pool that is not updated: none of them blocks, no machine is added, and
// no node must be updated by hand.
func asWarnings(judged []finding.Finding) []finding.Finding {
	judged = slices.DeleteFunc(judged, func(f finding.Finding) bool {
		return f.Reason == reasonPoolSurge.String() || f.Reason == reasonPoolManual.String()
	})
	for i, f := range judged {
		if f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown {
			judged[i] = f.Judged(preflight.Warn)
		}
	}
	return judged
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
		case pools[i].OnDelete():
			pool.Skip = order.OnDelete
		}
		drained = append(drained, pool)
	}
	return drained
}

// judgePool returns the obstacles to updating a pool to a release.
func judgePool(c *ControlPlane, pool *hypershift.NodePool, s check.Subject) []finding.Finding {
	found := judgePause(pool, s.Now)
	if pool.DeletionTimestamp != nil {
		found = append(found, finding.Fail(reasonDeleted, "NodePool %s is being deleted, so it is not updated", nameOf(pool)))
	}
	version := s.Update.To.String()
	found = append(found, judgeOwner(c, pool)...)
	found = append(found, judgeArchitecture(c, pool, version)...)
	found = append(found, judgeStream(pool, s.Update.To)...)
	found = append(found, judgeStrategy(pool)...)
	if replaces(pool) {
		found = append(found, finding.Warn(reasonPoolSurge,
			"NodePool %s adds machines (maxSurge %s) before it removes others, and whether the infrastructure has room for them is unknown",
			nameOf(pool), surgeOf(pool)))
	}
	found = append(found, judgePoolConditions(c, pool, s.Update.To)...)
	if updating := pool.Updating(); updating != nil {
		return append(found, finding.Warn(reasonPoolUpdating, "NodePool %s is being updated (%s)", nameOf(pool), updating.Type))
	}
	for _, version := range pool.Versions() {
		if pool.Status.Version != "" && version != pool.Status.Version {
			found = append(found, finding.Warn(reasonPoolNodesDiffer, "nodes of NodePool %s run %s, but "+
				"the NodePool reports %s", nameOf(pool),
				words.External(version), words.External(pool.Status.Version)))
		}
	}
	return found
}

// judgePause is about a pool that is paused. HyperShift reports the pause in the condition
// ReconciliationActive, which may outlast it until the pool is reconciled again.
func judgePause(pool *hypershift.NodePool, now time.Time) []finding.Finding {
	if noted, f := pause("NodePool "+nameOf(pool), pool.Spec.PausedUntil, now); noted && f.Outcome == preflight.Fail {
		return []finding.Finding{f}
	} else if condition := meta.FindStatusCondition(pool.Status.Conditions, "ReconciliationActive"); condition != nil &&
		condition.Status == metav1.ConditionFalse {
		return []finding.Finding{finding.Fail(reasonPoolCondition, "NodePool %s is not reconciled: %s", nameOf(pool), inWords(condition))}
	} else if noted {
		return []finding.Finding{f}
	}
	return nil
}

// judgeStrategy is why the machines of a pool would not be replaced.
func judgeStrategy(pool *hypershift.NodePool) []finding.Finding {
	if !pool.Automated() {
		return []finding.Finding{finding.Warn(reasonPoolManual,
			"HyperShift does not update the nodes of NodePool %s (platform %s): it sets status.version alone", nameOf(pool),
			words.External(pool.Spec.Platform.Type))}
	}
	if pool.OnDelete() {
		return []finding.Finding{finding.Fail(reasonPoolOnDelete, "NodePool %s replaces its machines only when they are deleted", nameOf(pool))}
	}
	replace := pool.Spec.Management.Replace
	if replace == nil || pool.Spec.Management.UpgradeType != "Replace" {
		return nil
	}
	if rolling := replace.RollingUpdate; rolling != nil && isZero(rolling.MaxSurge, false) && isZero(rolling.MaxUnavailable, true) {
		return []finding.Finding{finding.Fail(reasonPoolDeadlock, "NodePool %s has maxSurge 0 and maxUnavailable 0, so no machine is replaced",
			nameOf(pool))}
	}
	return nil
}

// replaces reports whether a pool adds machines before it removes others.
func replaces(pool *hypershift.NodePool) bool {
	return pool.Automated() && pool.Spec.Management.UpgradeType == "Replace" && !pool.OnDelete() && surgeOf(pool) != "0" &&
		surgeOf(pool) != "0%"
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

var _ = catalog.Reasons("HyperShift reports it for a NodePool that updates its nodes in place.", `
InplaceUpgradeFailed | The in-place update of a node failed. | Read the conditions of the NodePool. | oc describe nodepool NAME -n NAMESPACE`)

// judgePoolConditions is about the conditions of a pool that is updated to a version.
func judgePoolConditions(c *ControlPlane, pool *hypershift.NodePool, to semver.Version) []finding.Finding {
	version := to.String()
	var found []finding.Finding
	for _, each := range hostedcondition.OfPools() {
		stated := meta.FindStatusCondition(pool.Status.Conditions, each.Name)
		switch {
		case !each.Meets(stated):
		case each.Continues:
			found = append(found, finding.Warn(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(stated)))
		case each.Name == "ValidReleaseImage" && replaced(stated.Message, version):
			found = append(found, finding.Warn(reasonReplaced,
				"HyperShift does not reconcile NodePool %s until the request for %s replaces its release: %s", nameOf(pool), version,
				inWords(stated)))
		case each.Name == "ValidMachineConfig" && pool.RefusesStream(semver.Version{Major: 4}) != "" && to.Major >= 5 &&
			strings.Contains(stated.Message, "requires OCP >= 5.0"):
			found = append(found, finding.Warn(reasonReplaced,
				"HyperShift does not update NodePool %s until the request for %s, "+
					"which has its stream, replaces its release: %s", nameOf(pool),
				version, inWords(stated)))
		case each.Name == "ValidPlatformImage" && aboutOther(c, pool, stated.Message, version):
			found = append(found, finding.Unknown(reasonPoolImage,
				"HyperShift finds no platform image for the current release of NodePool %s, and whether it finds one for %s is "+
					"unknown: %s",
				nameOf(pool), version, inWords(stated)))
		default:
			found = append(found, finding.Fail(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(stated)))
		}
	}
	return found
}

// aboutOther reports whether a message is about the current release of a pool, and that release differs from the
// version. The message quotes the image.
func aboutOther(c *ControlPlane, pool *hypershift.NodePool, message, version string) bool {
	present := pool.Spec.Release.Image
	image, known := c.Cluster.ImageOf(version)
	return strings.Contains(message, strconv.Quote(present)) && c.Cluster.VersionOf(present) != version &&
		(!known || !hypershift.SameImage(present, image))
}

// judgeStream is about the operating system of a pool that is updated to a version.
func judgeStream(pool *hypershift.NodePool, to semver.Version) []finding.Finding {
	switch refused := pool.RefusesStream(to); {
	case refused != "":
		return []finding.Finding{finding.Fail(reasonPoolStream, "HyperShift does not update NodePool %s to %s: %s", nameOf(pool), to,
			words.External(refused))}
	case pool.MayHaveRunc():
		return []finding.Finding{finding.Unknown(reasonPoolStream,
			"whether HyperShift accepts the stream %s of NodePool %s is unknown: the ConfigMaps of spec.config may configure runc",
			hypershift.RHEL10, nameOf(pool))}
	}
	return nil
}

// judgeOwner is about the HostedCluster of a pool: HyperShift returns before it updates the nodes, without a
// condition (nodepool_controller.go, validateInfraID, and conditions.go, validMachineConfigCondition).
func judgeOwner(c *ControlPlane, pool *hypershift.NodePool) []finding.Finding {
	var cause string
	switch {
	case c.Cluster.Spec.InfraID == "":
		cause = "spec.infraID is empty"
	case c.Cluster.Status.KubeConfig == nil:
		cause = "its status names no kubeconfig"
	default:
		return nil
	}
	return []finding.Finding{finding.Fail(reasonPoolOwner,
		"HyperShift does not reconcile NodePool %s until it has reconciled HostedCluster %s: %s", nameOf(pool), c.name(), cause)}
}

// judgeArchitecture evaluates a pool whose architecture the release lacks. HyperShift uses the architecture of
// spec.release (hostedcluster_controller.go, DetermineHostedClusterPayloadArch); spec.platform.aws.multiArch no
// longer has an effect. HyperShift also reports ValidArchPlatform False for an architecture that it does not
// support on the platform, and continues.
func judgeArchitecture(c *ControlPlane, pool *hypershift.NodePool, version string) []finding.Finding {
	condition := meta.FindStatusCondition(pool.Status.Conditions, "ValidArchPlatform")
	invalid := condition != nil && condition.Status == metav1.ConditionFalse
	other := c.Cluster.VersionOf(c.Cluster.Spec.Release.Image) != version
	replaced := other && c.Cluster.IsMulti(version)
	checks, known := pool.ChecksArchitecture()
	switch {
	case known && !checks, invalid && strings.Contains(condition.Message, "is not supported for platform"):
		if !invalid {
			return nil
		}
		return []finding.Finding{finding.Warn(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	case !c.Cluster.PayloadHas(pool) && replaced:
		return []finding.Finding{finding.Warn(reasonPoolArchitecture,
			"NodePool %s has the architecture %s, which the release of HostedCluster %s lacks (status.payloadArch is %s), so HyperShift "+
				"does not reconcile the pool until the request for %s, a multi-architecture release, replaces it",
			nameOf(pool), words.External(pool.Architecture()), c.name(), words.External(c.Cluster.Status.PayloadArch), version)}
	case !c.Cluster.PayloadHas(pool) && !known && !invalid:
		return []finding.Finding{finding.Unknown(reasonPoolArchitectureUnknown,
			"the release of HostedCluster %s lacks the architecture %s of NodePool %s (status.payloadArch is %s), and whether HyperShift "+
				"compares them on the platform %q is unknown",
			c.name(), words.External(pool.Architecture()), nameOf(pool), words.External(c.Cluster.Status.PayloadArch),
			words.External(pool.Spec.Platform.Type))}
	case !c.Cluster.PayloadHas(pool):
		return []finding.Finding{finding.Fail(reasonPoolArchitecture,
			"NodePool %s has the architecture %s, which the release of HostedCluster %s lacks (status.payloadArch is %s), so HyperShift "+
				"does not reconcile the pool",
			nameOf(pool), words.External(pool.Architecture()), c.name(), words.External(c.Cluster.Status.PayloadArch))}
	case invalid && c.Cluster.Status.PayloadArch != "":
		return []finding.Finding{finding.Warn(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	case invalid:
		return []finding.Finding{finding.Fail(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	case c.Cluster.Status.PayloadArch == "" && condition == nil && !replaced:
		return []finding.Finding{finding.Unknown(reasonPoolArchitectureUnknown,
			"whether the release of HostedCluster %s has the architecture %s of NodePool %s is unknown: HyperShift reports neither "+
				"status.payloadArch nor the condition ValidArchPlatform",
			c.name(), words.External(pool.Architecture()), nameOf(pool))}
	case c.mixed && c.Cluster.Status.PayloadArch == hypershift.Multi && other && !c.Cluster.IsMulti(version):
		return []finding.Finding{finding.Unknown(reasonPoolArchitectureUnknown,
			"whether %s has the architecture %s of NodePool %s is unknown: the pools of HostedCluster %s have several architectures, and "+
				"its status does not list %s as a multi-architecture release",
			version, words.External(pool.Architecture()), nameOf(pool), c.name(), version)}
	}
	return nil
}
