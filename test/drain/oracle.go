// Package drain answers: is the rehearsal of an update's drains right?
//
// [Trial] makes a random cluster of simulated nodes from a seed, rehearses its drains
// (collector/drain), and then drains the nodes in the order of the machine-config-operator:
// kubectl evicts the pods, under the real API server, controllers and scheduler. The nodes of
// several clusters are those of one control plane, apart by a label. Operators that move their
// pods do not run here: collector/drain has their objects in a table.
package drain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	product "github.com/openshift/update-preflight/collector/drain"
)

// Oracle drains the nodes of a control plane.
type Oracle struct {
	Clients kubernetes.Interface
	// Kubectl and Kubeconfig are the paths of the program and of its configuration.
	Kubectl, Kubeconfig string
}

// Verdict is how the rehearsal of a cluster compares with its drains.
type Verdict struct {
	Seed uint64
	// Pools, Clear, Sticks and Unknown count the pools by what was predicted.
	Pools, Clear, Sticks, Unknown int
	// Wrong are the disagreements, in words.
	Wrong []string
	// Unsafe is true if a pool that was predicted to be clear got stuck.
	Unsafe bool
	// State is where the pods are in the end, if something is wrong.
	State string
}

// String is a line of the table.
func (v Verdict) String() string {
	line := fmt.Sprintf("seed %d: %d pools, predicted %d clear, %d sticking, %d unknown", v.Seed, v.Pools, v.Clear, v.Sticks, v.Unknown)
	if len(v.Wrong) > 0 {
		line += "; wrong: " + strings.Join(v.Wrong, "; ")
	}
	return line
}

// Trial compares one random cluster, and removes it. The name is that of the trial, unique for the seed.
func (o *Oracle) Trial(ctx context.Context, seed uint64, name string) (Verdict, error) {
	t := &trial{Oracle: o, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), namespace: fmt.Sprintf("cluster-%d-%s", seed, name)} //nolint:gosec // reproducible
	if err := t.create(ctx); err != nil {
		return Verdict{}, fmt.Errorf("create the cluster of seed %d: %w", seed, err)
	}
	input, err := t.read(ctx)
	if err != nil {
		return Verdict{}, fmt.Errorf("read the cluster of seed %d: %w", seed, err)
	}
	predicted := product.Rehearse(input)
	actual, err := t.drain(ctx, input.Order)
	if err != nil {
		return Verdict{}, fmt.Errorf("drain the cluster of seed %d: %w", seed, err)
	}
	return compare(seed, input, predicted, actual), t.remove(ctx)
}

// trial is one cluster.
type trial struct {
	*Oracle

	seed      uint64
	random    *rand.Rand
	namespace string
	nodes     []string
}

// actual is how the drains of a cluster ended.
type actual struct {
	// stuck are the nodes whose drain did not end, by pool, sorted.
	stuck map[string][]string
	// absent counts the pods without a node, or that do not exist, by controller.
	absent map[string]int
	// state is where the pods are, in words.
	state string
}

func compare(seed uint64, input product.Input, predicted product.Rehearsal, drained actual) Verdict {
	found := Verdict{Seed: seed}
	wrong := func(format string, arguments ...any) {
		found.Wrong = append(found.Wrong, fmt.Sprintf(format, arguments...))
	}
	for _, pool := range predicted.Pools {
		found.Pools++
		stuck := drained.stuck[pool.Name]
		switch pool.Outcome {
		case product.Undetermined:
			found.Unknown++
		case product.Clear:
			found.Clear++
			if len(stuck) > 0 {
				found.Unsafe = true
				wrong("pool %s was predicted to be clear, and sticks at %v", pool.Name, stuck)
			}
		case product.Blocked:
			found.Sticks++
		case product.Sticks:
			found.Sticks++
			if len(stuck) == 0 {
				wrong("pool %s was predicted to stick at %s (%s), and is drained", pool.Name, names(pool.Stuck), obstacles(pool.Stuck))
			} else if !between(stuck, certain(pool.Stuck), pool.Stuck) {
				wrong("pool %s was predicted to stick at %s (%s), and sticks at %v", pool.Name, names(pool.Stuck), obstacles(pool.Stuck), stuck)
			}
		}
	}
	comparePending(input, predicted, drained, wrong)
	if len(found.Wrong) > 0 {
		found.State = drained.state
	}
	return found
}

// comparePending compares the pods without a node, by controller, where no outcome is unknown.
func comparePending(input product.Input, predicted product.Rehearsal, drained actual, wrong func(string, ...any)) {
	owners := ownersOf(input.Cluster.Pods)
	least, most := map[string]int{}, map[string]int{}
	for _, pending := range predicted.Pending {
		most[owners[pending.Pod.Name]]++
		if !pending.Uncertain {
			least[owners[pending.Pod.Name]]++
		}
	}
	for _, pool := range predicted.Pools {
		if pool.Outcome == product.Undetermined {
			return // what is pending depends on where a pool sticks
		}
	}
	all := map[string]bool{}
	for owner := range most {
		all[owner] = true
	}
	for owner := range drained.absent {
		all[owner] = true
	}
	for owner := range all {
		if got := drained.absent[owner]; got < least[owner] || got > most[owner] {
			wrong("%d pods of %s are without a node, predicted %d to %d", got, owner, least[owner], most[owner])
		}
	}
}

func names(nodes []product.Node) string {
	found := make([]string, 0, len(nodes))
	for _, node := range nodes {
		found = append(found, node.Name)
	}
	return strings.Join(found, ", ")
}

// between reports whether nodes have all of least, and are all among most.
func between(nodes, least []string, most []product.Node) bool {
	for _, node := range least {
		if !slices.Contains(nodes, node) {
			return false
		}
	}
	for _, node := range nodes {
		if !slices.ContainsFunc(most, func(other product.Node) bool { return other.Name == node }) {
			return false
		}
	}
	return true
}

// certain are the nodes at which a pool sticks in every rehearsal, sorted.
func certain(nodes []product.Node) []string {
	var found []string
	for _, node := range nodes {
		if !node.Uncertain {
			found = append(found, node.Name)
		}
	}
	slices.Sort(found)
	return found
}

func obstacles(nodes []product.Node) string {
	var found []string
	for _, node := range nodes {
		for _, obstacle := range node.Obstacles {
			found = append(found, fmt.Sprintf("%s %s %s behind %v", obstacle.Pod, obstacle.Outcome, obstacle.Cause, obstacle.Behind))
		}
	}
	return strings.Join(found, ", ")
}
