package completion

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/hypershift/hostedcondition"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// rollout are the NodePools in the rollout of the release that the cluster runs.
func (c Cluster) rollout() settling.NodePools {
	desired := c.Version.Status.Desired
	return settling.NodePoolsOf(c.Hosted, configv1.Release{Version: desired.Version, Image: desired.Image}, c.Now)
}

// nodePools is about the NodePools that follow the control plane.
func (c Cluster) nodePools() (reason, message string) {
	if c.Hosted == nil {
		return "", ""
	}
	var failed []string
	for i := range c.Hosted.Pools {
		pool := &c.Hosted.Pools[i]
		for _, condition := range hostedcondition.UnmetOfPool(pool) {
			if condition.Reason == hostedcondition.InPlaceFailed {
				failed = append(failed, pool.Name)
				break
			}
		}
	}
	outdated := c.rollout().Outdated
	switch {
	case len(failed) > 0:
		return v1alpha1.ReasonPoolDegraded, "NodePools whose update in place has failed: " + words.List(failed, maxNames)
	case len(outdated) > 0:
		return v1alpha1.ReasonPoolsUpdating, "NodePools that are not updated: " + words.List(outdated, maxNames)
	}
	return "", ""
}

// hosted is about the conditions of the HostedCluster and of the NodePools that were updated: the ClusterOperators of a guest do
// not have the health of its control plane.
func (c Cluster) hosted() (reason, message string) {
	if c.Hosted == nil {
		return "", ""
	}
	var failed, unsettled []string
	sort := func(object string, unmet []metav1.Condition) {
		for _, condition := range unmet {
			text := fmt.Sprintf("%s (%s)", object, condition.Type)
			if condition.Status != "" && c.Now.Sub(condition.LastTransitionTime.Time) > baseline.MaxDegraded {
				failed = append(failed, text)
			} else {
				unsettled = append(unsettled, text)
			}
		}
	}
	sort("HostedCluster "+c.Hosted.Cluster.Name, hostedcondition.Unmet(c.Hosted.Cluster))
	for _, pool := range c.rollout().Updated {
		sort("NodePool "+pool.Name, hostedcondition.UnmetOfPool(pool))
	}
	switch {
	case len(failed) > 0:
		return v1alpha1.ReasonOperatorUnhealthy, "not as they should be for more than " + baseline.MaxDegraded.String() + ": " + words.List(failed, maxNames)
	case len(unsettled) > 0:
		return v1alpha1.ReasonSettling, "not settled: " + words.List(unsettled, maxNames)
	}
	return "", ""
}

// hostedChanges are the times of the last changes of the conditions on which a hosted cluster depends.
func (c Cluster) hostedChanges() []time.Time {
	if c.Hosted == nil {
		return nil
	}
	var times []time.Time
	for _, each := range hostedcondition.OfControlPlane() {
		if found := meta.FindStatusCondition(c.Hosted.Cluster.Status.Conditions, each.Condition); found != nil {
			times = append(times, found.LastTransitionTime.Time)
		}
	}
	for _, pool := range c.rollout().Updated {
		times = append(times, settling.UpdateEnd(pool))
	}
	return times
}
