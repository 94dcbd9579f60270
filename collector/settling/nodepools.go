package settling

import (
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
)

// NodePools are the NodePools of a hosted cluster by how far they are in the rollout of a release.
type NodePools struct {
	// Updated have the release, and Outdated, by name, do not have it yet. LeftOut are those that no part of the rollout
	// updates, with why, such as "workers (paused)".
	Updated           []*hypershift.NodePool
	Outdated, LeftOut []string
}

// NodePoolsOf are the NodePools in the rollout of a release, at a time. The update of a control plane updates none of them: a
// pool is a part of the rollout if it requests the same release, or is being updated.
func NodePoolsOf(of *hypershift.State, to configv1.Release, now time.Time) NodePools {
	var made NodePools
	for i := range of.Pools {
		pool := &of.Pools[i]
		switch cause := leftOut(of.Cluster, pool, to, now); {
		case hasVersion(pool, to.Version):
			made.Updated = append(made.Updated, pool)
		case cause != "":
			made.LeftOut = append(made.LeftOut, fmt.Sprintf("%s (%s)", pool.Name, cause))
		default:
			made.Outdated = append(made.Outdated, pool.Name)
		}
	}
	return made
}

// nodePools returns when the NodePools have rested.
func (p *Progress) nodePools(cluster Cluster) time.Time {
	if cluster.Hosted == nil {
		return time.Time{}
	}
	change := cluster.Change
	pools := NodePoolsOf(cluster.Hosted, configv1.Release{Version: change.To.Version, Image: change.To.Image}, cluster.Now)
	p.LeftOut = pools.LeftOut
	p.waits("NodePools that are not updated: ", pools.Outdated)
	var last time.Time
	for _, pool := range pools.Updated {
		if ended := UpdateEnd(pool); ended.After(change.Started) {
			p.step(ended, "the update of NodePool "+pool.Name, "")
			last = later(last, ended.Add(restNodes))
		}
	}
	return last
}

// hasVersion reports whether the pool and all its nodes have a version, and are not being updated.
func hasVersion(pool *hypershift.NodePool, version string) bool {
	return pool.Updating() == nil && pool.Status.Version == version && slices.Equal(pool.Versions(), []string{version})
}

// leftOut is why no part of the rollout updates a pool; empty for a pool that it does.
func leftOut(of *hypershift.HostedCluster, pool *hypershift.NodePool, to configv1.Release, now time.Time) string {
	pause, err := hypershift.PausedUntil(pool.Spec.PausedUntil, now)
	switch {
	case err == nil && pause.Active:
		return "paused"
	case pool.OnDelete():
		return "it replaces a machine only when that is deleted"
	case !pool.Automated():
		return "its nodes are updated by hand"
	case pool.Updating() == nil && !requests(of, pool, to):
		return "it requests another release, and has " + words.External(pool.Status.Version)
	}
	return ""
}

// requests reports whether a pool requests the release of the control plane.
func requests(of *hypershift.HostedCluster, pool *hypershift.NodePool, to configv1.Release) bool {
	for _, image := range []string{of.Wanted(), of.Spec.Release.Image, to.Image} {
		if image != "" && hypershift.SameImage(pool.Spec.Release.Image, image) {
			return true
		}
	}
	return pool.Status.Version == to.Version
}

// UpdateEnd is when the last update of a pool ended that is not being updated; zero where no condition states that.
func UpdateEnd(pool *hypershift.NodePool) time.Time {
	var ended time.Time
	for _, name := range hypershift.UpdatingConditions() {
		if condition := meta.FindStatusCondition(pool.Status.Conditions, name); condition != nil {
			ended = later(ended, condition.LastTransitionTime.Time)
		}
	}
	return ended
}
