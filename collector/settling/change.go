// Package settling answers: has the rollout of an update settled?
//
// [ChangeOf] finds the update in the history of ClusterVersion, and [Of] reports what its rollout waits for. The
// cluster-version operator (CVO) reports the end of an update hours before the nodes of all pools are updated.
package settling

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
)

// Change is an update of a cluster.
type Change struct {
	// From was completed before, and To is the last release that was requested since.
	From, To configv1.UpdateHistory
	// Retargeted are the versions that were requested before To and were not completed, the oldest first.
	Retargeted []string
	// Started is when the first of them, or To, was requested; zero if the history does not show that.
	Started time.Time
	// Completed is when CVO completed To; zero while it has not.
	Completed time.Time
	// RolledBack is true where From was requested again after To.
	RolledBack bool
}

// ChangeOf returns the last update in a history, newest entry first; false for a cluster that was only installed.
//
// An update that is interrupted, and continued with another release, is one change: it starts from the release
// that was completed, so the state before its first start counts.
func ChangeOf(history []configv1.UpdateHistory) (Change, bool) {
	change, older, found := chain(history)
	if !found {
		return Change{}, false
	}
	if sameRelease(change.To, change.From) && len(change.Retargeted) > 0 { // the update was given up before its end
		back := history[1]
		change.To, change.Retargeted, change.Completed, change.RolledBack = back, change.Retargeted[:len(change.Retargeted)-1], time.Time{}, true
		return change, true
	}
	if !lower(change.To.Version, change.From.Version) {
		return change, true
	}
	if undone, _, ok := chain(older); ok && sameRelease(undone.From, change.To) { // the update was undone after its end
		undone.RolledBack = true
		return undone, true
	}
	return change, true
}

// chain is the newest entry with the incomplete ones before it, and the history from the release that it starts from.
func chain(history []configv1.UpdateHistory) (change Change, older []configv1.UpdateHistory, found bool) {
	if len(history) == 0 {
		return Change{}, nil, false
	}
	at := slices.IndexFunc(history[1:], func(past configv1.UpdateHistory) bool { return past.State == configv1.CompletedUpdate })
	if at < 0 {
		return Change{}, nil, false
	}
	change = Change{From: history[at+1], To: history[0], Started: history[at].StartedTime.Time}
	for _, past := range history[1 : at+1] {
		change.Retargeted = slices.Insert(change.Retargeted, 0, past.Version)
	}
	if history[0].State == configv1.CompletedUpdate && history[0].CompletionTime != nil {
		change.Completed = history[0].CompletionTime.Time
	}
	return change, history[at+1:], true
}

func sameRelease(a, b configv1.UpdateHistory) bool {
	if a.Image != "" && b.Image != "" {
		return a.Image == b.Image
	}
	return a.Version != "" && a.Version == b.Version
}

func lower(a, b string) bool {
	first, err := semver.Parse(a)
	second, err2 := semver.Parse(b)
	return err == nil && err2 == nil && first.LT(second)
}

// How long a rollout rests before it counts as settled. A node may be NotReady for 20 minutes during an update, and
// alerts about its pods follow it by 15 (openshift/oc, pkg/cli/admin/upgrade/status).
const (
	restOperators = 5 * time.Minute
	restNodes     = 20 * time.Minute
)

// maxNames bounds the names in a message.
const maxNames = 5

// Cluster contains the objects of a rollout.
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
	// Waiting lists what the rollout waits for, as clauses; none if all is rolled out.
	Waiting []string
	// Settled is since when the rollout has settled, or when it will have, if nothing else happens; zero while it
	// waits for something.
	Settled time.Time
	// Draining is true while nodes are being updated, or may be: the update is not complete, or a pool is not.
	Draining bool
	// Steps are sorted by time.
	Steps []Step
	// Paused are the MachineConfigPools that are paused: the rollout is evaluated without them.
	Paused []string
	// LeftOut are the NodePools, and the MachineConfigPools, that no part of the rollout updates, with the cause: the
	// rollout is evaluated without them.
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

// Behind reports whether an operator reports another version than the release. The preflight's own ClusterOperator
// belongs to no release.
func Behind(operator *configv1.ClusterOperator, version string) bool {
	return operator.Name != ownsignal.ClusterOperator &&
		slices.ContainsFunc(operator.Status.Versions, func(each configv1.OperandVersion) bool {
			return each.Name == "operator" && each.Version != version
		})
}

// Progressing reports whether an operator is rolling out. The preflight's own ClusterOperator belongs to no
// release.
func Progressing(operator *configv1.ClusterOperator) bool {
	return operator.Name != ownsignal.ClusterOperator &&
		slices.ContainsFunc(operator.Status.Conditions, func(each configv1.ClusterOperatorStatusCondition) bool {
			return each.Type == configv1.OperatorProgressing && each.Status == configv1.ConditionTrue
		})
}

// Outdated describes a pool that is not updated, such as "worker (1 of 3 nodes)"; empty for an updated pool. If
// the controller of a pool has not observed its last change, its status describes the former configuration.
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

// NodePools are the NodePools of a hosted cluster by how far they are in the rollout of a release.
type NodePools struct {
	// Updated have the release, and Outdated, by name, do not have it yet. LeftOut are the NodePools that no part of
	// the rollout updates, with the cause, such as "workers (paused)".
	Updated           []*hypershift.NodePool
	Outdated, LeftOut []string
}

// NodePoolsOf are the NodePools in the rollout of a release, at a time. The update of a control plane updates none of them: a
// pool is a part of the rollout if it requests the same release, or is being updated. Without a hosted cluster there are none.
func NodePoolsOf(of *hypershift.State, to configv1.Release, now time.Time) NodePools {
	var made NodePools
	if of == nil {
		return made
	}
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
	change := cluster.Change
	pools := NodePoolsOf(cluster.Hosted, configv1.Release{Version: change.To.Version, Image: change.To.Image}, cluster.Now)
	p.LeftOut = append(p.LeftOut, pools.LeftOut...)
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
		return "it replaces a machine only when the machine is deleted"
	case !pool.Automated():
		return "its nodes are updated by hand"
	case pool.Updating() == nil && !requests(of, pool, to):
		return "it requests another release, but runs " + words.External(pool.Status.Version)
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

// UpdateEnd returns when the last update of a pool ended that is not being updated; zero if no condition shows
// that.
func UpdateEnd(pool *hypershift.NodePool) time.Time {
	var ended time.Time
	for _, name := range hypershift.UpdatingConditions() {
		if condition := meta.FindStatusCondition(pool.Status.Conditions, name); condition != nil {
			ended = later(ended, condition.LastTransitionTime.Time)
		}
	}
	return ended
}
