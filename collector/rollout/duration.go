package rollout

import (
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/update"
)

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

// Pool is a pool of nodes beside the control plane.
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
