package settling

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
)

// How long a rollout rests before it counts as settled. A node may be NotReady for 20 minutes during an update, and
// alerts about its pods follow it by 15 (openshift/oc, pkg/cli/admin/upgrade/status).
const (
	restOperators = 5 * time.Minute
	restNodes     = 20 * time.Minute
)

// maxNames bounds the names in a message.
const maxNames = 5

// Cluster is what a rollout consists of.
type Cluster struct {
	Change    Change
	Operators []configv1.ClusterOperator
	Pools     []machineconfigurationv1.MachineConfigPool
	Nodes     []corev1.Node
	// Now is the time of the look.
	Now time.Time
	// Hosted is the hosted cluster of a guest, in place of Pools; nil for other clusters.
	Hosted *hypershift.State
}

// Step is one step of a rollout.
type Step struct {
	Time time.Time
	// Text names it, such as "the reboot of node worker-1".
	Text string
	// Node is its node; empty for a step of no node.
	Node string
}

// Progress is how far a rollout is.
type Progress struct {
	// Waiting are what the rollout waits for, as clauses; none if all is rolled out.
	Waiting []string
	// Settled is since when the rollout has settled, or when it will have, if nothing else happens; zero while it
	// waits for something.
	Settled time.Time
	// Draining is true while nodes are being updated, or may be: the update is not complete, or a pool is not.
	Draining bool
	// Steps are sorted by time.
	Steps []Step
	// Paused are the MachineConfigPools that are paused: the rollout is judged without them.
	Paused []string
	// LeftOut are the NodePools, and the MachineConfigPools, that no part of the rollout updates, with why: the rollout is judged
	// without them.
	LeftOut []string
}

// Of is how far the rollout of a change is. The nodes of before are compared by their boot IDs: without them, no
// reboot is known.
func Of(cluster Cluster, before baseline.State) Progress {
	var p Progress
	change := cluster.Change
	p.step(change.Started, "the start of the update", "")
	if change.Completed.IsZero() {
		p.Draining = true
		p.Waiting = append(p.Waiting, fmt.Sprintf("the cluster-version operator has not completed %s", words.External(change.To.Version)))
	}
	p.step(change.Completed, "the end of the update of the control plane", "")
	last := change.Completed.Add(restOperators)
	last = later(last, p.operators(cluster, change))
	waits := len(p.Waiting)
	updated := later(p.pools(cluster, before), p.nodePools(cluster))
	p.Draining = p.Draining || len(p.Waiting) > waits
	last = later(last, updated)
	last = later(last, p.nodes(cluster, before, updated))
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Text, b.Text)) })
	if len(p.Waiting) == 0 {
		p.Settled = last
	}
	return p
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// step adds a step of a change; one without a time is none.
func (p *Progress) step(at time.Time, text, node string) {
	if !at.IsZero() {
		p.Steps = append(p.Steps, Step{Time: at, Text: text, Node: node})
	}
}

// operators returns when the operators have rested. One may remain at the old version without an error.
func (p *Progress) operators(cluster Cluster, change Change) time.Time {
	var behind, progressing []string
	var last time.Time
	for i := range cluster.Operators {
		operator := &cluster.Operators[i]
		if operator.Name == ownsignal.ClusterOperator {
			continue
		}
		if Behind(operator, change.To.Version) {
			behind = append(behind, operator.Name)
		}
		at := slices.IndexFunc(operator.Status.Conditions, func(each configv1.ClusterOperatorStatusCondition) bool {
			return each.Type == configv1.OperatorProgressing
		})
		if at < 0 {
			continue
		}
		switch condition := operator.Status.Conditions[at]; {
		case Progressing(operator):
			progressing = append(progressing, operator.Name)
		case condition.LastTransitionTime.After(change.Started):
			p.step(condition.LastTransitionTime.Time, "the rollout of ClusterOperator "+operator.Name, "")
			last = later(last, condition.LastTransitionTime.Add(restOperators))
		}
	}
	p.waits("ClusterOperators at another version: ", behind)
	p.waits("ClusterOperators that are progressing: ", progressing)
	return last
}

// Behind reports whether an operator states another version than that of the release. That of the preflight itself is of
// no release.
func Behind(operator *configv1.ClusterOperator, version string) bool {
	return operator.Name != ownsignal.ClusterOperator && slices.ContainsFunc(operator.Status.Versions, func(each configv1.OperandVersion) bool {
		return each.Name == "operator" && each.Version != version
	})
}

// Progressing reports whether an operator states that it is rolling out. That of the preflight itself is of no release.
func Progressing(operator *configv1.ClusterOperator) bool {
	return operator.Name != ownsignal.ClusterOperator && slices.ContainsFunc(operator.Status.Conditions, func(each configv1.ClusterOperatorStatusCondition) bool {
		return each.Type == configv1.OperatorProgressing && each.Status == configv1.ConditionTrue
	})
}

// Outdated describes a pool that is not updated, such as "worker (1 of 3 nodes)"; empty for one that is. The status of a
// pool whose controller has not observed its last change is of the former configuration.
func Outdated(pool *machineconfigurationv1.MachineConfigPool) string {
	updated := slices.ContainsFunc(pool.Status.Conditions, func(each machineconfigurationv1.MachineConfigPoolCondition) bool {
		return each.Type == machineconfigurationv1.MachineConfigPoolUpdated && each.Status == corev1.ConditionTrue
	})
	if updated && pool.Status.UpdatedMachineCount >= pool.Status.MachineCount && pool.Status.ObservedGeneration >= pool.Generation {
		return ""
	}
	return fmt.Sprintf("%s (%d of %s)", pool.Name, pool.Status.UpdatedMachineCount, words.Count(int(pool.Status.MachineCount), "node"))
}

func (p *Progress) waits(lead string, names []string) {
	if len(names) > 0 {
		p.Waiting = append(p.Waiting, lead+words.List(names, maxNames))
	}
}

// pools returns when the pools have rested. A paused pool never settles.
func (p *Progress) pools(cluster Cluster, before baseline.State) time.Time {
	pools, change, dead := cluster.Pools, cluster.Change, deadBefore(cluster.Nodes, before)
	var updating []string
	var last time.Time
	for i := range pools {
		pool := &pools[i]
		if pool.Spec.Paused {
			p.Paused = append(p.Paused, pool.Name)
			continue
		}
		outdated := Outdated(pool)
		if left := pool.Status.MachineCount - pool.Status.UpdatedMachineCount; outdated != "" && left > 0 && int(left) <= dead {
			p.LeftOut = append(p.LeftOut, "MachineConfigPool "+outdated+": its other nodes were not ready before the update")
			continue
		}
		if outdated != "" {
			updating = append(updating, outdated)
			continue
		}
		at := slices.IndexFunc(pool.Status.Conditions, func(each machineconfigurationv1.MachineConfigPoolCondition) bool {
			return each.Type == machineconfigurationv1.MachineConfigPoolUpdated
		})
		if ended := pool.Status.Conditions[at].LastTransitionTime.Time; ended.After(change.Started) {
			p.step(ended, "the update of MachineConfigPool "+pool.Name, "")
			last = later(last, ended.Add(restOperators))
		}
	}
	p.waits("MachineConfigPools that are not updated: ", updating)
	return last
}

// deadBefore counts the nodes that were not ready in the baseline and are not: no update reaches them.
func deadBefore(nodes []corev1.Node, before baseline.State) int {
	count := 0
	for i := range nodes {
		was := before.Objects[baseline.Key{Kind: baseline.Node, Name: nodes[i].Name}]
		_, dead := was.Problem("NotReady")
		ready := slices.ContainsFunc(nodes[i].Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if dead && !ready {
			count++
		}
	}
	return count
}

// nodes returns when the nodes have rested that were rebooted. A boot ID that has changed proves a reboot; the node is
// Ready since then. One that is Ready only since long after its pool was updated was not ready again, which is no part of
// the rollout: a node that does so again and again would keep it from its end.
func (p *Progress) nodes(cluster Cluster, before baseline.State, updated time.Time) time.Time {
	var last time.Time
	change := cluster.Change
	for i := range cluster.Nodes {
		node := &cluster.Nodes[i]
		was, known := before.Objects[baseline.Key{Kind: baseline.Node, Name: node.Name}]
		if replaced := !known && cluster.Hosted != nil && node.CreationTimestamp.After(change.Started); replaced {
			p.step(node.CreationTimestamp.Time, "the creation of node "+node.Name, node.Name)
		}
		if !known || was.Detail == node.Status.NodeInfo.BootID {
			continue
		}
		at := slices.IndexFunc(node.Status.Conditions, func(each corev1.NodeCondition) bool { return each.Type == corev1.NodeReady })
		if at < 0 || !node.Status.Conditions[at].LastTransitionTime.After(change.Started) {
			continue
		}
		rebooted := node.Status.Conditions[at].LastTransitionTime.Time
		p.step(rebooted, "the reboot of node "+node.Name, node.Name)
		if updated.IsZero() || !rebooted.After(updated.Add(restNodes)) {
			last = later(last, rebooted.Add(restNodes))
		}
	}
	return last
}
