package sample

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/hypershift/hostedcondition"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = finding.Explain("A HostedCluster or a NodePool has a problem after the update that it did not have before.", `
NotConnected | DataPlaneConnectionAvailable or ControlPlaneConnectionAvailable is False: control plane and nodes do not reach each other. | Check the
	konnectivity pods on both sides. | oc get pods -A
NotReconciled | HyperShift does not reconcile it: a condition such as ValidReleaseImage states why. | Fix what the condition names. | oc describe KIND NAME -n NAMESPACE
VersionSkew | Its version is further behind the control plane than HyperShift supports, or after it. | Update the NodePool: set its spec.release.`)

// errManagement is why a guest that is read without its management cluster has neither HostedCluster nor NodePools.
var errManagement = errors.New("it is in the management cluster of this guest: use the kubeconfig of that cluster, with --hosted-cluster")

// pools reads what the nodes belong to: MachineConfigPools and MachineSets, or the NodePools of a guest with their
// HostedCluster, which its management cluster has; of is nil for none.
func (s *sampler) pools(ctx context.Context, of *hypershift.State) {
	topology, err := s.cluster.Topology(ctx)
	switch isGuest := err == nil && topology == snapshot.HyperShift; {
	case of != nil:
		s.hosted(of)
	case isGuest:
		s.unread(errManagement, baseline.HostedCluster, baseline.NodePool)
	default:
		s.machines(ctx)
	}
}

func (s *sampler) hosted(of *hypershift.State) {
	s.keep(baseline.Key{Kind: baseline.HostedCluster, Namespace: of.Cluster.Namespace, Name: of.Cluster.Name}, hostedClusterOf(of))
	if of.PoolsError != nil {
		s.unread(of.PoolsError, baseline.NodePool)
	}
	for i := range of.Pools {
		pool := &of.Pools[i]
		s.keep(baseline.Key{Kind: baseline.NodePool, Namespace: pool.Namespace, Name: pool.Name}, nodePoolOf(pool, s.now))
	}
}

// hostedClusterOf is a HostedCluster. Its condition Progressing compares spec.release with the release of the control plane,
// so it stays True where spec.controlPlaneRelease replaces that one; with the reason Blocked it is False because of another condition
// (hypershift at 3ee9615: hostedcluster_controller.go, isProgressing).
func hostedClusterOf(of *hypershift.State) baseline.Object {
	var object baseline.Object
	for _, stated := range hostedcondition.Unmet(of.Cluster) {
		reason := "Unavailable"
		switch stated.Type {
		case "Degraded":
			reason = "Degraded"
		case "DataPlaneConnectionAvailable", "ControlPlaneConnectionAvailable":
			reason = "NotConnected"
		case "ReconciliationSucceeded", "ValidConfiguration", "SupportedHostedCluster", "ValidReleaseImage", "PlatformCredentialsFound", "ValidHostedControlPlaneConfiguration":
			reason = "NotReconciled"
		}
		object.Add(unmet(stated, reason))
	}
	if progressing := meta.FindStatusCondition(of.Cluster.Status.Conditions, "Progressing"); progressing != nil && of.Cluster.Spec.ControlPlaneRelease == nil {
		switch {
		case progressing.Status == metav1.ConditionTrue:
			object.Add(unmet(*progressing, "NotUpdated"))
		case progressing.Reason == "Blocked":
			object.Add(unmet(*progressing, "NotReconciled"))
		}
	}
	return object
}

// nodePoolOf is a NodePool. Machines of one that is being updated are replaced, and those are not ready yet.
func nodePoolOf(pool *hypershift.NodePool, now time.Time) baseline.Object {
	object := baseline.Object{Ready: pool.Status.Replicas}
	if pool.Spec.Replicas != nil {
		object.Desired = *pool.Spec.Replicas
	}
	updating := pool.Updating()
	for _, stated := range hostedcondition.UnmetOfPool(pool) {
		reason := "NotReconciled"
		switch stated.Type {
		case "AllMachinesReady", "AllNodesHealthy":
			if updating != nil {
				continue
			}
			reason = "MachinesNotReady"
		case "UpdatingVersion", "UpdatingConfig":
			reason = "Degraded"
		case "SupportedVersionSkew":
			reason = "VersionSkew"
		}
		object.Add(unmet(stated, reason))
	}
	pause, err := hypershift.PausedUntil(pool.Spec.PausedUntil, now)
	switch {
	case err == nil && pause.Active:
		object.Detail = paused
	case updating != nil:
		object.Add(unmet(*updating, "NotUpdated"))
	}
	return object
}

// unmet is a condition as a problem, by its type, since its reason often repeats no word of it.
func unmet(of metav1.Condition, reason string) baseline.Problem {
	message := of.Type + " is " + cmp.Or(words.External(string(of.Status)), "absent")
	if stated := clause(of.Reason, of.Message); stated != "" {
		message += ": " + stated
	}
	return baseline.Problem{Reason: reason, Since: at(of.LastTransitionTime), Message: message}
}
