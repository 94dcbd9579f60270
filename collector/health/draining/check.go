package draining

import (
	"context"
	"fmt"
	"slices"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/survey"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
)

// Check is the check Drain.
func Check() check.Check {
	return check.Check{
		Name: nameDrain, Kind: finding.SourceHealth, Reads: survey.Reads(),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if s.Hosted && len(s.NodePools) == 0 {
				return []finding.Finding{finding.Pass(gap.Proven("the selection of NodePools"), check.ReasonAsExpected, "no node is drained by the update of the control plane alone; with --nodepool NAME the drains of a NodePool are rehearsed")}, nil
			}
			of, err := rehearsalOf(ctx, s.Cluster, s.Now, s.NodePools, s.Asks)
			if err != nil {
				return nil, err
			}
			switch {
			case of.skips(order.SingleReplica):
				return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), reasonSingleNode, "the control plane is a single node, and such a cluster is updated without a drain")}, nil
			case !of.pooled():
				return s.WithoutAPI(ctx, "MachineConfigPools", machineconfigurationv1.GroupName)
			}
			findings := judge(gap.ExtentOf(ctx), of.rehearsal, of.read.Order.Pools)
			if len(of.gaps) > 0 {
				findings = finding.WithoutPasses(findings)
			}
			if !s.Hosted {
				findings = append(findings, of.unreached(reportedPools(s.Update)...)...)
			}
			return append(findings, of.besides(ctx, s.Cluster)...), of.unread()
		},
	}
}

// reportedPools are the reasons for nodes that are not reached which the check MachineConfigPool reports, of an
// update to another minor version.
func reportedPools(of update.Update) []order.Skip {
	if of.LeavesMinor() {
		return []order.Skip{order.Paused}
	}
	return nil
}

type rehearsed struct {
	read      drain.Input
	gaps      []survey.Gap
	rehearsal drain.Rehearsal
	missing   *gap.Log
}

// forget drops what is concluded from the absence of objects of which an archive has a part: that Services and workloads have no
// other ready pod, that pods find no other node, also for a time, that no other node can have an address, and that a drain
// waits for ever for that. The check is inconclusive then.
func (r *rehearsed) forget(ctx context.Context, cluster *snapshot.Cluster) {
	if r.missing.Lacks("pods") {
		r.rehearsal.Interrupted = slices.DeleteFunc(r.rehearsal.Interrupted, func(each drain.Interruption) bool {
			return cluster.Listed(ctx, each.Service.Namespace, pods()) != nil
		})
		r.rehearsal.Together = slices.DeleteFunc(r.rehearsal.Together, func(each drain.Together) bool {
			return cluster.Listed(ctx, each.Workload.Namespace, pods()) != nil
		})
	}
	if !r.missing.Lacks("nodes") {
		return
	}
	r.rehearsal.Pending, r.rehearsal.Delayed, r.rehearsal.Expanded, r.rehearsal.Addresses = nil, nil, nil, nil
	doubt(r.rehearsal.Behind)
	for i := range r.rehearsal.Pools {
		pool := &r.rehearsal.Pools[i]
		sticks := false
		for j := range pool.Stuck {
			sticks = doubt(pool.Stuck[j].Obstacles) || sticks
		}
		if pool.Outcome == drain.Sticks && !sticks {
			pool.Outcome, pool.Why = drain.Undetermined, "not all nodes could be read"
		}
	}
}

// doubt makes the obstacles unknown that another node would remove, and reports whether others stay.
func doubt(obstacles []drain.Obstacle) bool {
	stay := false
	for i := range obstacles {
		obstacles[i].Behind = nil
		if reasonOf(obstacles[i].Cause) == reasonNotSatisfied {
			obstacles[i].Outcome = eviction.Unknown
		}
		stay = stay || obstacles[i].Outcome != eviction.Unknown
	}
	return stay
}

func pods() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("pods") }

// rehearsalOf is the rehearsal of a cluster, which is made once for all updates: they drain the
// same nodes. NodePools are as survey.Read takes them.
func rehearsalOf(
	ctx context.Context, cluster *snapshot.Cluster, now time.Time, nodePools []order.NodePool, asks *recreation.Asks,
) (rehearsed, error) {
	key := "draining"
	if nodePools != nil {
		key = "draining of NodePools"
	}
	if asks != nil {
		key += ", asked"
	}
	return snapshot.Derived(ctx, cluster, key, func(ctx context.Context) (rehearsed, error) {
		ctx, missing := gap.Watch(ctx)
		read, gaps, err := survey.Read(ctx, cluster, now, nodePools, asks)
		if err != nil {
			return rehearsed{}, err
		}
		made := rehearsed{read: read, gaps: gaps, rehearsal: drain.Rehearse(read), missing: missing}
		made.forget(ctx, cluster)
		return made, nil
	})
}

func (r *rehearsed) skips(why order.Skip) bool {
	return slices.ContainsFunc(r.read.Order.Skipped, func(each order.Skipped) bool { return each.Why == why })
}

// pooled reports whether the cluster has no nodes, or one of them is, or may be, in a pool.
func (r *rehearsed) pooled() bool {
	of := &r.read.Order
	return r.missing.Lacks("machineconfigpools") || len(of.Pools) > 0 || len(of.Skipped) == 0 || slices.ContainsFunc(of.Skipped, func(each order.Skipped) bool { return each.Why != order.NoPool })
}

// unread is the first resource that could not be read, and how many more there are; nil if all were.
func (r *rehearsed) unread() error {
	switch more := len(r.gaps) - 1; more {
	case -1:
		return nil
	case 0:
		return r.gaps[0]
	default:
		return fmt.Errorf("%w, and %d more resources of which a drain depends could not be read", r.gaps[0], more)
	}
}
