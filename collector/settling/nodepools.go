package settling

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
)

// nodePools returns when the NodePools have rested. The update of a control plane updates none of them: a pool is a part of
// the rollout if it requests the same release, or is being updated.
func (p *Progress) nodePools(cluster Cluster) time.Time {
	if cluster.Hosted == nil {
		return time.Time{}
	}
	var updating []string
	var last time.Time
	for i := range cluster.Hosted.Pools {
		pool := &cluster.Hosted.Pools[i]
		switch cause := leftOut(cluster, pool); {
		case hasVersion(pool, cluster.Change.To.Version):
			last = later(last, p.nodePool(pool, cluster.Change))
		case cause != "":
			p.LeftOut = append(p.LeftOut, fmt.Sprintf("%s (%s)", pool.Name, cause))
		default:
			updating = append(updating, pool.Name)
		}
	}
	p.waits("NodePools that are not updated: ", updating)
	return last
}

// hasVersion reports whether the pool and all its nodes have a version, and are not being updated.
func hasVersion(pool *hypershift.NodePool, version string) bool {
	return pool.Updating() == nil && pool.Status.Version == version && slices.Equal(pool.Versions(), []string{version})
}

// leftOut is why no part of the rollout updates a pool; empty for a pool that it does.
func leftOut(cluster Cluster, pool *hypershift.NodePool) string {
	pause, err := hypershift.PausedUntil(pool.Spec.PausedUntil, cluster.Now)
	switch {
	case err == nil && pause.Active:
		return "paused"
	case pool.OnDelete():
		return "it replaces a machine only when that is deleted"
	case !pool.Automated():
		return "its nodes are updated by hand"
	case pool.Updating() == nil && !requests(cluster, pool):
		return "it requests another release, and has " + words.External(pool.Status.Version)
	}
	return ""
}

// requests reports whether a pool requests the release of the control plane.
func requests(cluster Cluster, pool *hypershift.NodePool) bool {
	of := cluster.Hosted.Cluster
	for _, image := range []string{of.Wanted(), of.Spec.Release.Image, cluster.Change.To.Image} {
		if image != "" && hypershift.SameImage(pool.Spec.Release.Image, image) {
			return true
		}
	}
	return pool.Status.Version == cluster.Change.To.Version
}

// nodePool returns when a pool that was updated has rested.
func (p *Progress) nodePool(pool *hypershift.NodePool, change Change) time.Time {
	var ended time.Time
	for _, name := range []string{"UpdatingVersion", "UpdatingConfig", "UpdatingPlatformMachineTemplate"} {
		if condition := meta.FindStatusCondition(pool.Status.Conditions, name); condition != nil {
			ended = later(ended, condition.LastTransitionTime.Time)
		}
	}
	if !ended.After(change.Started) {
		return time.Time{}
	}
	p.step(ended, "the update of NodePool "+pool.Name, "")
	return ended.Add(restNodes)
}
