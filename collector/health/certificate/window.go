package certificate

import (
	"context"
	"time"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/update"
)

const (
	// margin is the time after an update for which certificates have to be valid.
	margin = 7 * 24 * time.Hour
	// unknownDuration is the duration of an update where the pools are not known.
	unknownDuration = 24 * time.Hour
	// controlPlane is the number of nodes of most control planes, and master the pool of them.
	controlPlane, master = 3, "master"
)

// window is the time for which certificates have to be valid. Without the pools it is that of most clusters, and what
// depends on it is no pass.
func window(ctx context.Context, s check.Subject) time.Duration {
	found, err := s.Cluster.MachineConfigPools(ctx)
	if err != nil || len(found) == 0 {
		return margin + unknownDuration
	}
	var pools []rollout.Pool
	for _, pool := range found {
		nodes := int(pool.Status.MachineCount)
		parallel, err := rollout.Parallel(pool.Spec.MaxUnavailable, nodes)
		if err != nil {
			parallel = 1
		}
		if pool.Name != master && !pool.Spec.Paused {
			pools = append(pools, rollout.Pool{Name: pool.Name, Nodes: nodes, Parallel: parallel})
		}
	}
	return margin + rollout.Documented(controlPlane, "").Estimate([]update.Kind{s.Update.Kind()}, pools).Total.High
}
