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
	"github.com/openshift/update-preflight/collector/words"
)

// Check is the check Drain.
func Check() check.Check {
	return check.Check{
		Name: nameDrain, Kind: finding.SourceHealth, Reads: survey.Reads(),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if s.Hosted && len(s.NodePools) == 0 {
				return []finding.Finding{finding.Pass(gap.Proven("the selection of NodePools"), check.ReasonAsExpected,
					"the update of the control plane alone drains no node; with "+
						"--nodepool NAME the drains of a NodePool are rehearsed")}, nil
			}
			of, err := rehearsalOf(ctx, s.Cluster, s.Now, s.NodePools, s.Asks)
			if err != nil {
				return nil, err
			}
			switch {
			case of.skips(order.SingleReplica):
				return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), reasonSingleNode,
					"the control plane is a single node, and such a cluster is updated without a drain")}, nil
			case !of.pooled():
				return s.WithoutAPI(ctx, "MachineConfigPools", machineconfigurationv1.GroupName)
			}
			findings := evaluate(gap.ExtentOf(ctx), of.rehearsal, of.read.Order.Pools)
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
	return r.missing.Lacks("machineconfigpools") || len(of.Pools) > 0 || len(of.Skipped) == 0 ||
		slices.ContainsFunc(of.Skipped, func(each order.Skipped) bool { return each.Why != order.NoPool })
}

// unread is the first resource that could not be read, and how many more there are; nil if all were.
func (r *rehearsed) unread() error {
	switch more := len(r.gaps) - 1; more {
	case -1:
		return nil
	case 0:
		return r.gaps[0]
	default:
		return fmt.Errorf("%w, and %d more resources that a drain depends on could not be read", r.gaps[0], more)
	}
}

// pools are the pools that are drained. For a hosted cluster they are NodePools.
type pools struct {
	all []order.Pool
	// limits are the times after which the nodes of NodePools are deleted, by node.
	limits map[string]time.Duration
}

func poolsOf(all []order.Pool) pools {
	found := pools{all: all, limits: map[string]time.Duration{}}
	for i := range all {
		for _, node := range all[i].Nodes {
			if all[i].Timeout > 0 {
				found.limits[node] = all[i].Timeout
			}
		}
	}
	return found
}

// limit is after what time a node is deleted although its drain has not ended; 0 for never.
func (p pools) limit(node string) time.Duration { return p.limits[node] }

func (p pools) kind(name string) string {
	if slices.ContainsFunc(p.all, func(pool order.Pool) bool { return pool.Name == name && pool.Unordered }) {
		return "NodePool"
	}
	return "MachineConfigPool"
}

// about names the pool in a finding, with the command to look at one that is in the cluster.
func (p pools) about(name string, f finding.Finding) finding.Finding {
	if p.kind(name) == "NodePool" {
		return f.About(finding.Object{APIVersion: "hypershift.openshift.io/v1beta1", Kind: "NodePool", Name: name})
	}
	return f.About(finding.Object{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: name}).
		Do(finding.Read("oc get machineconfigpool %s", name))
}

// daemonState is the state that the machine-config-daemon reports for its node (machine-config-operator
// pkg/daemon/constants). The check NodeHealth reports every state except this one.
const (
	daemonState = "machineconfiguration.openshift.io/state"
	stateDone   = "Done"
)

// unreached warns of nodes that this update does not reach: nodes of a paused pool, of several pools and of none,
// and nodes that first get another configuration. Reported are the reasons that another check reports.
func (r *rehearsed) unreached(reported ...order.Skip) []finding.Finding {
	type group struct {
		why  order.Skip
		pool string
	}
	nodes := map[group][]string{}
	var groups []group
	var objects []finding.Object
	for _, each := range r.read.Order.Skipped {
		key := group{why: each.Why, pool: each.Pool}
		if slices.Contains(reported, each.Why) || !r.concerns(each) {
			continue
		}
		if nodes[key] == nil {
			groups = append(groups, key)
		}
		nodes[key] = append(nodes[key], each.Node)
		objects = append(objects, finding.Object{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: each.Node})
	}
	if len(groups) == 0 {
		return nil
	}
	var texts []string
	for _, each := range groups {
		texts = append(texts, fmt.Sprintf("%s: %s", unreachedSince(each.why, each.pool), words.List(nodes[each], maxNamed)))
	}
	f := finding.Warn(reasonUnreached, "currently, this update does not reach %s; %s", words.Count(len(objects), "node"),
		words.List(texts, maxNamed))
	if by := r.heldBy(objects); by != "" {
		f = f.Remedy("Wait until %s, which holds the nodes, has finished. If it does not, read its log.", by)
	}
	return []finding.Finding{f.Named(nameUnreached).
		Do(finding.Read("oc get machineconfigpools"), finding.Read("oc get nodes --show-labels")).
		About(objects...)}
}

// heldBy is the program that drains or reboots one of the nodes; empty for none.
func (r *rehearsed) heldBy(nodes []finding.Object) string {
	for i := range r.read.Cluster.Nodes {
		node := &r.read.Cluster.Nodes[i]
		if by, _ := snapshot.HeldBy(node); by != "" && slices.ContainsFunc(nodes, func(of finding.Object) bool { return of.Name == node.Name }) {
			return by
		}
	}
	return ""
}

// concerns reports whether the reason of a node is none that the check NodeHealth reports.
func (r *rehearsed) concerns(skipped order.Skipped) bool {
	at := slices.IndexFunc(r.read.Cluster.Nodes, func(node corev1.Node) bool { return node.Name == skipped.Node })
	if at < 0 {
		return false
	}
	node := &r.read.Cluster.Nodes[at]
	state := node.Annotations[daemonState]
	switch skipped.Why { //nolint:exhaustive // other checks report the others, or clusters without pools have them
	case order.Paused, order.SeveralPools:
		return true
	case order.NoPool:
		return !r.missing.Lacks("machineconfigpools") && state != "" && node.Labels[corev1.LabelOSStable] != string(corev1.Windows)
	case order.Unavailable:
		return skipped.State == order.Configuring && state == stateDone && !r.waits(skipped.Pool)
	}
	return false
}

// waits reports whether the rehearsal of a pool waits for nodes that are being updated, which the finding of
// the pool names.
func (r *rehearsed) waits(pool string) bool {
	return slices.ContainsFunc(r.read.Order.Pools, func(each order.Pool) bool { return each.Name == pool && each.Waits() })
}

func unreachedSince(why order.Skip, pool string) string {
	switch why { //nolint:exhaustive // the update reaches the others, or other checks report them
	case order.Paused:
		return fmt.Sprintf("MachineConfigPool %q is paused", pool)
	case order.SeveralPools:
		return "several custom MachineConfigPools select the node, and none updates it"
	case order.NoPool:
		return "no MachineConfigPool selects the node"
	}
	return "the node first gets another configuration, with a drain that was not rehearsed"
}
