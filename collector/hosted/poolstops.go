package hosted

import (
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/hypershift/hostedcondition"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = catalog.Reasons("HyperShift reports it for a NodePool that updates its nodes in place.", `
InplaceUpgradeFailed | The update of a node has failed. | Read the conditions of the NodePool. | oc describe nodepool NAME -n NAMESPACE`)

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
			found = append(found, finding.Warn(reasonReplaced, "HyperShift does not reconcile NodePool %s until the request for %s replaces the release of it: %s", nameOf(pool), version, inWords(stated)))
		case each.Name == "ValidMachineConfig" && pool.RefusesStream(semver.Version{Major: 4}) != "" && to.Major >= 5 && strings.Contains(stated.Message, "requires OCP >= 5.0"):
			found = append(found, finding.Warn(reasonReplaced, "HyperShift does not update NodePool %s until the request for %s, which has its stream, replaces the release of it: %s", nameOf(pool), version, inWords(stated)))
		case each.Name == "ValidPlatformImage" && aboutOther(c, pool, stated.Message, version):
			found = append(found, finding.Unknown(reasonPoolImage, "HyperShift finds no image of the platform for the present release of NodePool %s, and whether it finds one for %s is unknown: %s", nameOf(pool), version, inWords(stated)))
		default:
			found = append(found, finding.Fail(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(stated)))
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

// judgeStream is about the operating system of a pool that is updated to a version.
func judgeStream(pool *hypershift.NodePool, to semver.Version) []finding.Finding {
	switch refused := pool.RefusesStream(to); {
	case refused != "":
		return []finding.Finding{finding.Fail(reasonPoolStream, "HyperShift does not update NodePool %s to %s: %s", nameOf(pool), to, words.External(refused))}
	case pool.MayHaveRunc():
		return []finding.Finding{finding.Unknown(reasonPoolStream, "whether HyperShift accepts the stream %s of NodePool %s is unknown: the ConfigMaps of spec.config may configure runc", hypershift.RHEL10, nameOf(pool))}
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
	replaced := other && c.Cluster.IsMulti(version)
	checks, known := pool.ChecksArchitecture()
	switch {
	case known && !checks, invalid && strings.Contains(condition.Message, "is not supported for platform"):
		if !invalid {
			return nil
		}
		return []finding.Finding{finding.Warn(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	case !c.Cluster.PayloadHas(pool) && replaced:
		return []finding.Finding{finding.Warn(reasonPoolArchitecture, "NodePool %s has the architecture %s, which the release of HostedCluster %s lacks (status.payloadArch is %s), so HyperShift does not reconcile the pool until the request for %s, a multi-architecture release, replaces it",
			nameOf(pool), words.External(pool.Architecture()), c.name(), words.External(c.Cluster.Status.PayloadArch), version)}
	case !c.Cluster.PayloadHas(pool) && !known && !invalid:
		return []finding.Finding{finding.Unknown(reasonPoolArchitectureUnknown, "the release of HostedCluster %s lacks the architecture %s of NodePool %s (status.payloadArch is %s), and whether HyperShift compares them on the platform %q is unknown",
			c.name(), words.External(pool.Architecture()), nameOf(pool), words.External(c.Cluster.Status.PayloadArch), words.External(pool.Spec.Platform.Type))}
	case !c.Cluster.PayloadHas(pool):
		return []finding.Finding{finding.Fail(reasonPoolArchitecture, "NodePool %s has the architecture %s, which the release of HostedCluster %s lacks (status.payloadArch is %s), so HyperShift does not reconcile the pool",
			nameOf(pool), words.External(pool.Architecture()), c.name(), words.External(c.Cluster.Status.PayloadArch))}
	case invalid && c.Cluster.Status.PayloadArch != "":
		return []finding.Finding{finding.Warn(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	case invalid:
		return []finding.Finding{finding.Fail(reasonPoolCondition, "NodePool %s: %s", nameOf(pool), inWords(condition))}
	case c.Cluster.Status.PayloadArch == "" && condition == nil && !replaced:
		return []finding.Finding{finding.Unknown(reasonPoolArchitectureUnknown, "whether the release of HostedCluster %s has the architecture %s of NodePool %s is unknown: HyperShift states neither status.payloadArch nor the condition ValidArchPlatform",
			c.name(), words.External(pool.Architecture()), nameOf(pool))}
	case c.mixed && c.Cluster.Status.PayloadArch == hypershift.Multi && other && !c.Cluster.IsMulti(version):
		return []finding.Finding{finding.Unknown(reasonPoolArchitectureUnknown, "whether %s has the architecture %s of NodePool %s is unknown: the pools of HostedCluster %s have several architectures, and its status does not list %s as a multi-architecture release",
			version, words.External(pool.Architecture()), nameOf(pool), c.name(), version)}
	}
	return nil
}
