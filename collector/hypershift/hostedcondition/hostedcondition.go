// Package hostedcondition answers: which conditions of a HostedCluster or a NodePool report a problem?
//
// [Unmet] and [UnmetOfPool] return the conditions of an object. They share their tables with the checks before an
// update.
package hostedcondition

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/hypershift"
)

// Unmet returns the conditions of a HostedCluster that differ from a working cluster's. A missing condition that
// every HostedCluster has is returned without status. A pause is a decision, and is not returned.
func Unmet(of *hypershift.HostedCluster) []metav1.Condition {
	wanted := OfControlPlane()
	for _, name := range append([]string{"DataPlaneConnectionAvailable", "ControlPlaneConnectionAvailable"}, Stops()...) {
		if name != "ReconciliationActive" {
			wanted = append(wanted, Expectation{Condition: name, Want: metav1.ConditionTrue})
		}
	}
	var unmet []metav1.Condition
	for _, each := range wanted {
		condition := meta.FindStatusCondition(of.Status.Conditions, each.Condition)
		switch {
		case condition == nil && each.Required:
			unmet = append(unmet, metav1.Condition{Type: each.Condition})
		case condition == nil || condition.Status == each.Want || condition.Status == metav1.ConditionUnknown && !each.Required:
		default:
			unmet = append(unmet, *condition)
		}
	}
	return unmet
}

// UnmetOfPool returns the conditions of a NodePool that report a problem, except the ones that only advise.
func UnmetOfPool(pool *hypershift.NodePool) []metav1.Condition {
	wrong := slices.DeleteFunc(OfPools(), func(each Pool) bool { return each.Continues })
	wrong = append(wrong, Pool{Name: "SupportedVersionSkew", Status: metav1.ConditionFalse})
	var unmet []metav1.Condition
	for _, each := range wrong {
		if condition := meta.FindStatusCondition(pool.Status.Conditions, each.Name); each.Meets(condition) {
			unmet = append(unmet, *condition)
		}
	}
	return unmet
}

// Expectation is the status of a condition on which an update rests.
type Expectation struct {
	Condition string
	Want      metav1.ConditionStatus
	// Required is true for a condition that every HostedCluster has.
	Required bool
}

// OfControlPlane are the expectations of the control plane of a HostedCluster.
func OfControlPlane() []Expectation {
	return []Expectation{
		{"Available", metav1.ConditionTrue, true},
		{"EtcdAvailable", metav1.ConditionTrue, false},
		{"UnmanagedEtcdAvailable", metav1.ConditionTrue, false},
		{"EtcdRecoveryActive", metav1.ConditionFalse, false},
		{"KubeAPIServerAvailable", metav1.ConditionTrue, true},
		{"InfrastructureReady", metav1.ConditionTrue, true},
		{"IgnitionEndpointAvailable", metav1.ConditionTrue, false},
		{"Degraded", metav1.ConditionFalse, false},
		{"ReconciliationSucceeded", metav1.ConditionTrue, false},
	}
}

// Stops are the conditions that are False while HyperShift does not reconcile a HostedCluster, or its control
// plane (hypershift at 3ee9615: hypershift-operator hostedcluster_controller.go, reconcile, and
// control-plane-operator hostedcontrolplane_controller.go). The gate of a request, which is the last stop, is
// hypershift.Evaluate. An error that stops a reconciliation is in ReconciliationSucceeded, which [OfControlPlane]
// has. ValidReleaseImage False with the reason SecretNotFound stops only a part of it, as does
// PlatformCredentialsFound False: the control-plane-operator of the release is not deployed.
// ValidProxyConfiguration, ValidOIDCConfiguration, ValidAWSIdentityProvider, ValidIDPConfiguration,
// ValidReleaseInfo and the conditions about KMS stop nothing.
func Stops() []string {
	return []string{
		"ReconciliationActive", "ValidConfiguration", "SupportedHostedCluster", "ValidReleaseImage", "PlatformCredentialsFound",
		"ValidHostedControlPlaneConfiguration",
	}
}

// InPlaceFailed is the reason of a NodePool's condition UpdatingVersion or UpdatingConfig whose update in place has failed.
const InPlaceFailed = "InplaceUpgradeFailed"

// Pool is a condition of a NodePool as it is where something is wrong.
type Pool struct {
	Name   string
	Status metav1.ConditionStatus
	// Reason is the reason of the condition; empty for any.
	Reason string
	// Continues is true where HyperShift updates the pool nevertheless.
	Continues bool
}

// OfPools returns the conditions of a NodePool while HyperShift stops before it updates the nodes, the conditions
// about unhealthy nodes, and the conditions by which a component advises against an update (hypershift at 3ee9615:
// hypershift-operator controllers/nodepool, nodepool_controller.go, reconcile, with conditions.go, capi.go, nto.go
// and the file of each platform). AWSSecurityGroupAvailable stops a pool whose control-plane-operator creates the
// default security group, as every supported release does (aws.go, buildAWSSecurityGroups). ValidPlatformConfig
// stops nothing (conditions.go, validPlatformConfigCondition). An update in place does not continue beside a
// degraded node (hostedclusterconfigoperator/controllers/inplaceupgrader, reconcileInPlaceUpgrade). Not here are
// SupportedVersionSkew, which NodePoolSkew computes for the target, and AutoscalingEnabled, AutorepairEnabled,
// ReachedIgnitionEndpoint, Ready, ClusterNetworkCIDRConflict, KubeVirtNodesLiveMigratable and
// AWSResourceTagConflict, which stop nothing. Other stops have findings of their own: the pause,
// ValidArchPlatform, the deletion, and the conditions of the HostedCluster. If a Secret or a ConfigMap of the
// HostedCluster cannot be read, only conditions of the HostedCluster report it. If these conditions are absent,
// HyperShift has nothing to report.
func OfPools() []Pool {
	var all []Pool
	for _, name := range []string{
		"UpdateManagementEnabled", "ValidReleaseImage", "IgnitionEndpointAvailable", "ValidMachineConfig", "ValidTuningConfig",
		"ValidPlatformImage", "ValidMachineTemplate", "AWSSecurityGroupAvailable",
		"ValidGeneratedPayload", "AllMachinesReady", "AllNodesHealthy",
	} {
		all = append(all, Pool{Name: name, Status: metav1.ConditionFalse})
	}
	return append(all,
		Pool{Name: "UpdatingVersion", Status: metav1.ConditionFalse, Reason: InPlaceFailed},
		Pool{Name: "UpdatingConfig", Status: metav1.ConditionFalse, Reason: InPlaceFailed},
		Pool{Name: "ValidPlatformConfig", Status: metav1.ConditionFalse, Continues: true},
		Pool{Name: "performance.operator.openshift.io/Upgradeable", Status: metav1.ConditionFalse, Continues: true},
		Pool{Name: "performance.operator.openshift.io/Degraded", Status: metav1.ConditionTrue, Continues: true},
	)
}

// Meets reports whether a condition reports a problem. HyperShift leaves the status of ValidGeneratedPayload empty
// if the payload is invalid, and reports AsExpected for a pool without replicas.
func (w *Pool) Meets(condition *metav1.Condition) bool {
	switch {
	case condition == nil || condition.Reason == "AsExpected" || w.Reason != "" && condition.Reason != w.Reason:
		return false
	case condition.Status == "":
		return w.Status == metav1.ConditionFalse
	}
	return condition.Status == w.Status
}
