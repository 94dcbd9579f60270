package hosted

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
)

// poolCondition is a condition of a NodePool as it is where something is wrong.
type poolCondition struct {
	name   string
	status metav1.ConditionStatus
	// reason is the reason of the condition; empty for any.
	reason string
	// continues is true where HyperShift updates the pool nevertheless.
	continues bool
}

// poolConditions are the conditions of a NodePool while HyperShift stops before it updates the nodes, those of nodes
// that are not in order, and those by which a component advises against an update (hypershift at 3ee9615:
// hypershift-operator controllers/nodepool, nodepool_controller.go, reconcile, with conditions.go, capi.go, nto.go and
// the file of each platform). AWSSecurityGroupAvailable stops a pool whose control-plane-operator creates the
// default security group, as that of each supported release does (aws.go, buildAWSSecurityGroups). ValidPlatformConfig
// stops nothing (conditions.go, validPlatformConfigCondition). An update in place does not continue beside a degraded
// node (hostedclusterconfigoperator/controllers/inplaceupgrader, reconcileInPlaceUpgrade). Not here are
// SupportedVersionSkew, which NodePoolSkew computes for the target, and AutoscalingEnabled, AutorepairEnabled,
// ReachedIgnitionEndpoint, Ready, ClusterNetworkCIDRConflict, KubeVirtNodesLiveMigratable and AWSResourceTagConflict,
// which stop nothing. Other stops have findings of their own: the pause, ValidArchPlatform, the deletion, and those
// of the HostedCluster. An error to read a Secret or a ConfigMap of the HostedCluster has no condition of the
// pool: those of the HostedCluster report it. The absence of these means that HyperShift has nothing to report.
func poolConditions() []poolCondition {
	var all []poolCondition
	for _, name := range []string{
		"UpdateManagementEnabled", "ValidReleaseImage", "IgnitionEndpointAvailable", "ValidMachineConfig", "ValidTuningConfig",
		"ValidPlatformImage", "ValidMachineTemplate", "AWSSecurityGroupAvailable",
		"ValidGeneratedPayload", "AllMachinesReady", "AllNodesHealthy",
	} {
		all = append(all, poolCondition{name: name, status: metav1.ConditionFalse})
	}
	return append(all,
		poolCondition{name: "UpdatingVersion", status: metav1.ConditionFalse, reason: "InplaceUpgradeFailed"},
		poolCondition{name: "UpdatingConfig", status: metav1.ConditionFalse, reason: "InplaceUpgradeFailed"},
		poolCondition{name: "ValidPlatformConfig", status: metav1.ConditionFalse, continues: true},
		poolCondition{name: "performance.operator.openshift.io/Upgradeable", status: metav1.ConditionFalse, continues: true},
		poolCondition{name: "performance.operator.openshift.io/Degraded", status: metav1.ConditionTrue, continues: true},
	)
}

// meets reports whether a condition is as it is where something is wrong. HyperShift leaves the status of
// ValidGeneratedPayload empty where the payload is not valid, and reports AsExpected of a pool without replicas.
func (w *poolCondition) meets(condition *metav1.Condition) bool {
	switch {
	case condition == nil || condition.Reason == "AsExpected" || w.reason != "" && condition.Reason != w.reason:
		return false
	case condition.Status == "":
		return w.status == metav1.ConditionFalse
	}
	return condition.Status == w.status
}

// judgePoolConditions is about the conditions of a pool that is updated to a version.
func judgePoolConditions(c *ControlPlane, pool *hypershift.NodePool, version string) []finding.Finding {
	var found []finding.Finding
	for _, each := range poolConditions() {
		condition := meta.FindStatusCondition(pool.Status.Conditions, each.name)
		switch {
		case !each.meets(condition):
		case each.continues:
			found = append(found, finding.Warn(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition)))
		case each.name == "ValidReleaseImage" && replaced(condition.Message, version):
			found = append(found, finding.Warn(reasonReplaced, "HyperShift does not reconcile NodePool %s until the request for %s replaces the release of it: %s", nameOf(pool), version, inWords(condition)))
		case each.name == "ValidPlatformImage" && aboutOther(c, pool, condition.Message, version):
			found = append(found, finding.Unknown(reasonPoolImage, "HyperShift finds no image of the platform for the present release of NodePool %s, and whether it finds one for %s is unknown: %s", nameOf(pool), version, inWords(condition)))
		default:
			found = append(found, finding.Fail(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition)))
		}
	}
	return found
}

// aboutOther reports whether a message is about the present release of a pool, which is another one than that of a
// version. The message quotes the image.
func aboutOther(c *ControlPlane, pool *hypershift.NodePool, message, version string) bool {
	present := pool.Spec.Release.Image
	image, known := c.Cluster.ImageOf(version)
	return strings.Contains(message, strconv.Quote(present)) && c.Cluster.VersionOf(present) != version && (!known || !hypershift.SameImage(present, image))
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
	return []finding.Finding{finding.Fail(reasonPoolOwner, "HyperShift does not reconcile NodePool %s until it has reconciled HostedCluster %s: %s", nameOf(pool), c.name(), cause)}
}

// judgeArchitecture is about a pool of an architecture that the release lacks. HyperShift takes that of spec.release
// (hostedcluster_controller.go, DetermineHostedClusterPayloadArch); spec.platform.aws.multiArch has no effect any more.
// HyperShift also reports ValidArchPlatform False of an architecture that it does not support on the platform,
// and continues.
func judgeArchitecture(c *ControlPlane, pool *hypershift.NodePool, version string) []finding.Finding {
	condition := meta.FindStatusCondition(pool.Status.Conditions, "ValidArchPlatform")
	invalid := condition != nil && condition.Status == metav1.ConditionFalse
	other := c.Cluster.VersionOf(c.Cluster.Spec.Release.Image) != version
	switch {
	case !c.Cluster.PayloadHas(pool) && other && c.Cluster.IsMulti(version):
		return []finding.Finding{finding.Warn(reasonPoolArchitecture, "NodePool %s has the architecture %s, which the release of HostedCluster %s lacks (status.payloadArch is %s), so HyperShift does not reconcile the pool until the request for %s, a multi-architecture release, replaces it",
			nameOf(pool), words.External(pool.Architecture()), c.name(), words.External(c.Cluster.Status.PayloadArch), version)}
	case !c.Cluster.PayloadHas(pool):
		return []finding.Finding{finding.Fail(reasonPoolArchitecture, "NodePool %s has the architecture %s, which the release of HostedCluster %s lacks (status.payloadArch is %s), so HyperShift does not reconcile the pool",
			nameOf(pool), words.External(pool.Architecture()), c.name(), words.External(c.Cluster.Status.PayloadArch))}
	case invalid && c.Cluster.Status.PayloadArch != "":
		return []finding.Finding{finding.Warn(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	case invalid:
		return []finding.Finding{finding.Fail(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	case c.mixed && c.Cluster.Status.PayloadArch == hypershift.Multi && other && !c.Cluster.IsMulti(version):
		return []finding.Finding{finding.Unknown(reasonPoolArchitectureUnknown, "whether %s has the architecture %s of NodePool %s is unknown: the pools of HostedCluster %s have several architectures, and its status does not list %s as a multi-architecture release",
			version, words.External(pool.Architecture()), nameOf(pool), c.name(), version)}
	}
	return nil
}
