// Package rollout answers: when are the nodes of a pool rebooted on the way to a release, and how long does that
// way take?
//
// A paused pool is not rebooted. It must be unpaused before an update whose API server would no longer support its
// kubelets, and at the end.
package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// UnknownError is the error for a release whose Kubernetes version is unknown: it is newer than this program.
type UnknownError struct{ Release semver.Version }

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("the Kubernetes version of %s, or its oldest supported kubelet, is unknown", e.Release)
}

// Unpause returns the versions at which a pool must be unpaused, as indexes of the path, which starts with the
// current version: as late as the kubelets permit, so that its nodes are rebooted as rarely as possible. The last
// is the end of the path. The oldest kubelet of the pool has the version 1.kubelet. The error is an *UnknownError.
func Unpause(path []semver.Version, kubelet uint64) ([]int, error) {
	var at []int
	for i, release := range path {
		oldest, known := update.OldestKubelet(release)
		if !known {
			return nil, &UnknownError{release}
		}
		if kubelet >= oldest || i == 0 {
			continue
		}
		at = append(at, i-1)
		kubelet, _ = update.Kubernetes(path[i-1])
	}
	return append(at, len(path)-1), nil
}

// waiting is how long a drain waits until a pod that was evicted is ready again. A drain repeats
// refused evictions every five seconds for 90 seconds, and is repeated after a minute
// (machine-config-operator pkg/controller/drain).
func waiting() Range { return Range{10 * time.Second, 2 * time.Minute, 6 * time.Minute} }

// defaultGrace is the grace period of most pods, which the times of nodes have.
const defaultGrace = 30 * time.Second

// Drains returns, for each pool, how much longer its drains take than quick ones because they wait for
// PodDisruptionBudgets or for pods with long grace periods, according to a rehearsal. Pods may terminate before
// their grace periods end: these count only for the upper limit. Nodes after one whose drain hangs do not count.
func Drains(of *drain.Rehearsal) map[string]Range {
	found := map[string]Range{}
	for i := range of.Pools {
		pool := &of.Pools[i]
		steps := map[int]Range{}
		for n := range pool.Nodes {
			node := &pool.Nodes[n]
			takes := waiting().times(node.Waits)
			takes.High += max(0, node.Grace()-defaultGrace)
			steps[node.Step] = steps[node.Step].atLeast(takes)
		}
		var sum Range
		for _, step := range steps {
			sum = sum.plus(step)
		}
		if sum != (Range{}) {
			found[pool.Name] = sum
		}
	}
	return found
}

// Range is an estimate of a duration.
type Range struct {
	Low, Expected, High time.Duration
}

func minutes(low, expected, high int) Range {
	return Range{time.Duration(low) * time.Minute, time.Duration(expected) * time.Minute, time.Duration(high) * time.Minute}
}

func (r Range) plus(other Range) Range {
	return Range{r.Low + other.Low, r.Expected + other.Expected, r.High + other.High}
}

func (r Range) minus(other Range) Range {
	return Range{max(0, r.Low-other.Low), max(0, r.Expected-other.Expected), max(0, r.High-other.High)}
}

func (r Range) times(count int) Range {
	each := func(duration time.Duration) time.Duration { return time.Duration(int64(duration) * int64(count)) }
	return Range{each(r.Low), each(r.Expected), each(r.High)}
}

func (r Range) atLeast(other Range) Range {
	return Range{max(r.Low, other.Low), max(r.Expected, other.Expected), max(r.High, other.High)}
}

// Rounded is the range to 5 minutes, and from two hours on to 15.
func (r Range) Rounded() Range { return Range{rounded(r.Low), rounded(r.Expected), rounded(r.High)} }

func rounded(duration time.Duration) time.Duration {
	if duration < 2*time.Hour {
		return duration.Round(5 * time.Minute)
	}
	return duration.Round(15 * time.Minute)
}

// Model has the parameters of the estimates.
type Model struct {
	// Operators is how long the operators take for an update of each kind, without nodes.
	Operators map[update.Kind]Range
	// Node is how long one node takes to drain, update and reboot. Measured is true for times
	// of the last roll-out of this cluster, which have its drains.
	Node     Range
	Measured bool
	// Drains is how much longer than quick ones the drains of a pool take, by the pool; nil
	// where they were not rehearsed.
	Drains map[string]Range
	// Masters is the number of control plane nodes, which are updated one after the other;
	// 0 for a control plane that is not in the cluster.
	Masters int
	// History are the durations of past updates of this cluster, control plane nodes
	// included, by kind. They replace the operators and the masters.
	History map[update.Kind][]time.Duration
}

// Documented is the model by the documentation of OpenShift (Update duration: 60 to 120
// minutes for a minor update, 5 minutes for a node, more than 15 on bare metal). It has no
// numbers of its own for a patch update, which takes about two thirds. The platform is that
// of Infrastructure.
func Documented(masters int, platform configv1.PlatformType) Model {
	model := Model{
		Operators: map[update.Kind]Range{
			update.Patch: minutes(40, 60, 90), update.Minor: minutes(60, 75, 120), update.Major: minutes(60, 75, 120),
		},
		Node: minutes(5, 10, 20), Masters: masters,
	}
	if platform == configv1.BareMetalPlatformType || platform == configv1.NonePlatformType {
		model.Node = minutes(15, 20, 40)
	}
	return model
}

// Pool is a pool of nodes outside the control plane.
type Pool struct {
	Name string
	// Nodes is their number, and Parallel how many are updated at a time, at least 1.
	Nodes, Parallel int
	// Unpause are the indexes of the versions at which the pool is unpaused; empty for a pool that is not paused.
	Unpause []int
}

// roll is how long the nodes of a pool take.
func (m Model) roll(pool Pool) Range {
	parallel := max(1, pool.Parallel)
	return m.nodes(pool.Name, (pool.Nodes+parallel-1)/parallel)
}

// nodes is how long that many nodes of a pool take, one after the other. What was measured may
// have been quick because pods ended before their grace periods did.
func (m Model) nodes(pool string, count int) Range {
	quick, drains := m.Node.times(count), m.Drains[pool]
	if m.Measured {
		quick.High = max(quick.High, quick.Low+drains.High)
		return quick
	}
	return quick.plus(drains)
}

func (m Model) masters() Range {
	if m.Masters == 0 {
		return Range{}
	}
	return m.nodes("master", m.Masters)
}

// controlPlane is how long an update of that kind takes without other pools.
func (m Model) controlPlane(kind update.Kind) Range {
	if past := m.History[kind]; len(past) > 0 {
		return ofHistory(past)
	}
	return m.Operators[kind].plus(m.masters())
}

// ofHistory is the median, from the minimum to the maximum; what took more than three
// times the median was interrupted, and does not count.
func ofHistory(past []time.Duration) Range {
	sorted := slices.Sorted(slices.Values(past))
	median := sorted[(len(sorted)-1)/2]
	last := len(sorted) - 1
	for sorted[last] > 3*median {
		last--
	}
	return Range{sorted[0], median, sorted[last]}
}

// Estimate is how long a path takes.
type Estimate struct {
	// ControlPlane is the time of each update, without other pools.
	ControlPlane []Range
	// Total has the other pools as well. Drains that do not end are not in it.
	Total Range
}

// Estimate estimates a path of updates of these kinds. Pools that are not paused are
// updated at the same time as the control plane nodes; others after the version at which
// they are unpaused has been reached.
func (m Model) Estimate(kinds []update.Kind, pools []Pool) Estimate {
	var estimate Estimate
	masters := m.masters()
	for i := 0; i <= len(kinds); i++ {
		var unpaused Range
		for _, pool := range pools {
			if slices.Contains(pool.Unpause, i) {
				unpaused = unpaused.atLeast(m.roll(pool))
			}
		}
		estimate.Total = estimate.Total.plus(unpaused)
		if i == len(kinds) {
			break
		}
		control := m.controlPlane(kinds[i])
		estimate.ControlPlane = append(estimate.ControlPlane, control)
		var parallel Range
		for _, pool := range pools {
			if len(pool.Unpause) == 0 {
				parallel = parallel.atLeast(m.roll(pool))
			}
		}
		estimate.Total = estimate.Total.plus(control).plus(parallel.minus(masters))
	}
	return estimate
}

// Parallel is how many of a pool's nodes are updated at a time, by its maxUnavailable; nil
// is the default. Percentages are rounded down, and at least one node is updated
// (machine-config-operator pkg/controller/node, maxUnavailable).
func Parallel(maxUnavailable *intstr.IntOrString, nodes int) (int, error) {
	if maxUnavailable == nil {
		return 1, nil
	}
	number, err := intstr.GetScaledValueFromIntOrPercent(maxUnavailable, nodes, false)
	if err != nil {
		return 0, fmt.Errorf("maxUnavailable %.64q is neither a number nor a percentage such as 10%%", maxUnavailable.String())
	}
	return max(1, number), nil
}

const (
	// podTime is how long a DaemonSet takes to replace the pod of one node: 250 nodes took
	// 80 minutes (enhancement eus-upgrades-mvp).
	podTime = 19 * time.Second
	// slow is the time from which a DaemonSet prolongs an update.
	slow = 10 * time.Minute
)

// Sequential is a DaemonSet that replaces the pod of one node at a time.
type Sequential struct {
	Namespace, Name string
	Nodes           int
	// Takes is the estimated time of an update.
	Takes time.Duration
}

// String says what prolongs an update, and by how much.
func (s Sequential) String() string {
	return fmt.Sprintf("DaemonSet %s/%s replaces one pod at a time (maxUnavailable 1) on %s: about %.0f minutes",
		s.Namespace, s.Name, words.Count(s.Nodes, "node"), s.Takes.Round(5*time.Minute).Minutes())
}

// SlowDaemonSets are the DaemonSets of the release, in namespaces openshift-*, that replace
// one pod at a time and take longer than ten minutes, the slowest first.
func SlowDaemonSets(all []appsv1.DaemonSet) []Sequential {
	var found []Sequential
	for i := range all {
		nodes := int(all[i].Status.DesiredNumberScheduled)
		takes := time.Duration(nodes) * podTime
		if takes > slow && strings.HasPrefix(all[i].Namespace, "openshift-") && oneAtATime(all[i].Spec.UpdateStrategy, nodes) {
			found = append(found, Sequential{Namespace: all[i].Namespace, Name: all[i].Name, Nodes: nodes, Takes: takes})
		}
	}
	slices.SortFunc(found, func(a, b Sequential) int {
		return cmp.Or(cmp.Compare(b.Takes, a.Takes), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// oneAtATime reports whether an update replaces one pod after the other. Percentages are
// rounded up (kubernetes pkg/controller/daemon/update.go).
func oneAtATime(strategy appsv1.DaemonSetUpdateStrategy, nodes int) bool {
	if strategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return false
	}
	rolling := strategy.RollingUpdate
	if rolling == nil {
		return true
	}
	at := 0
	for _, each := range []*intstr.IntOrString{rolling.MaxUnavailable, rolling.MaxSurge} {
		if each == nil {
			continue
		}
		number, err := intstr.GetScaledValueFromIntOrPercent(each, nodes, true)
		if err != nil {
			return false
		}
		at += number
	}
	return at <= 1
}

const (
	// minSamples is the smallest number of node times that replaces the documented one.
	minSamples = 2
	// sameTime bounds the time between conditions that are set together.
	sameTime = time.Minute
	// minNode and maxNode bound the time of a node that is plausible: less is two nodes at
	// the same time, more is a roll-out that was interrupted.
	minNode, maxNode = 2 * time.Minute, 4 * time.Hour
)

// NodeTimes returns how long the nodes took in the last roll-out of each pool, sorted, according to their
// MachineConfigNodes. Parallel is how many nodes of a pool are updated at a time.
//
// Of a roll-out, MachineConfigNodes keep the time at which each node was completed: MCO then resets all other
// conditions (machine-config-operator pkg/upgrademonitor). A node starts when the node before it in its place is
// completed, so the time between both belongs to the node. Nodes that were not rebooted, such as new ones, do not
// count.
func NodeTimes(nodes []machineconfigurationv1.MachineConfigNode, parallel func(pool string) int) []time.Duration {
	type rollout struct{ pool, config string }
	completed := map[rollout][]time.Time{}
	for i := range nodes {
		if at, ok := rebooted(nodes[i].Status.Conditions); ok && nodes[i].Status.ConfigVersion != nil {
			of := rollout{nodes[i].Spec.Pool.Name, nodes[i].Status.ConfigVersion.Current}
			completed[of] = append(completed[of], at)
		}
	}
	last := map[string][]time.Time{}
	for of, times := range completed {
		slices.SortFunc(times, time.Time.Compare)
		if newest := last[of.pool]; len(newest) == 0 || times[len(times)-1].After(newest[len(newest)-1]) {
			last[of.pool] = times
		}
	}
	var took []time.Duration
	for _, pool := range slices.Sorted(maps.Keys(last)) {
		places := max(1, parallel(pool))
		for i := places; i < len(last[pool]); i++ {
			if each := last[pool][i].Sub(last[pool][i-places]); each >= minNode && each <= maxNode {
				took = append(took, each)
			}
		}
	}
	slices.Sort(took)
	return took
}

// rebooted is when the last update of a node was completed, if it rebooted the node.
func rebooted(conditions []metav1.Condition) (time.Time, bool) {
	updated := meta.FindStatusCondition(conditions, string(machineconfigurationv1.MachineConfigNodeUpdated))
	reboot := meta.FindStatusCondition(conditions, string(machineconfigurationv1.MachineConfigNodeUpdateRebooted))
	if updated == nil || updated.Status != metav1.ConditionTrue || reboot == nil || reboot.Reason == "NotYetOccurred" {
		return time.Time{}, false
	}
	return updated.LastTransitionTime.Time, updated.LastTransitionTime.Sub(reboot.LastTransitionTime.Time).Abs() <= sameTime
}

// Calibrated is the model with the times of nodes of this cluster: the median, from the
// minimum to the maximum. The result is false for too few times.
func (m Model) Calibrated(nodes []time.Duration) (Model, bool) {
	if len(nodes) < minSamples {
		return m, false
	}
	m.Node, m.Measured = ofHistory(nodes), true
	return m, true
}

// History are the durations of the past updates of a cluster by kind, from the history of
// its ClusterVersion, the newest entry first. An update starts from the last release that
// was completed before. The installation, updates that were not completed, and those
// whose times are missing or contradictory are ignored.
func History(entries []configv1.UpdateHistory) map[update.Kind][]time.Duration {
	past := map[update.Kind][]time.Duration{}
	for i, entry := range entries {
		if entry.State != configv1.CompletedUpdate || entry.CompletionTime == nil {
			continue
		}
		took := entry.CompletionTime.Sub(entry.StartedTime.Time)
		before := completedBefore(entries[i+1:])
		if took <= 0 || before == "" {
			continue
		}
		if kind := update.Kind(update.KindOf(before, entry.Version)); kind == update.Patch || kind == update.Minor || kind == update.Major {
			past[kind] = append(past[kind], took)
		}
	}
	return past
}

// completedBefore is the version of the newest completed entry; empty if there is none.
func completedBefore(older []configv1.UpdateHistory) string {
	for _, entry := range older {
		if entry.State == configv1.CompletedUpdate {
			return entry.Version
		}
	}
	return ""
}
