package draining

import (
	"context"
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// Rehearsal is the rehearsal of the drains of an update, at a time by the cluster's clock. An error
// is about what could not be read; the rehearsal is nil if there is none without it.
func Rehearsal(ctx context.Context, cluster *snapshot.Cluster, now time.Time) (*drain.Rehearsal, error) {
	of, err := rehearsalOf(ctx, cluster, now, nil, nil)
	if err != nil {
		return nil, err
	}
	return &of.rehearsal, of.unread()
}

// Prolonging are the drains of an update that take long, a clause for each pool and for each long
// grace period: drains that do not end first, those that wait for budgets, then grace periods.
func Prolonging(of *drain.Rehearsal) []string {
	var endless, slow, graces []string
	for i := range of.Pools {
		pool := &of.Pools[i]
		if text := endlessDrain(pool); text != "" {
			endless = append(endless, text)
		}
		if text := slowDrains(pool); text != "" {
			slow = append(slow, text)
		}
	}
	for _, each := range of.Graces {
		graces = append(graces, fmt.Sprintf("pod %s on node %s may take %s to end", each.Pod, each.Node, each.Period()))
	}
	return append(append(endless, slow...), graces...)
}

// endlessDrain is where the drains of a pool do not end, or may not; empty if they end.
func endlessDrain(pool *drain.Pool) string {
	if len(pool.Stuck) == 0 {
		return ""
	}
	verb := "does not end"
	if pool.Outcome != drain.Sticks {
		verb = "may not end"
	}
	node := &pool.Stuck[0]
	text := fmt.Sprintf("the drain of node %s of MachineConfigPool %q %s", node.Name, pool.Name, verb)
	if len(node.Obstacles) > 0 {
		first := node.Obstacles[0]
		text += fmt.Sprintf(" (pod %s: %s)", first.Pod, first.Cause)
	}
	return text
}

// slowDrains is how often the drains of a pool wait until replacements are ready; empty if they do not.
func slowDrains(pool *drain.Pool) string {
	waits, nodes := 0, 0
	for i := range pool.Nodes {
		if pool.Nodes[i].Waits > 0 {
			waits, nodes = waits+pool.Nodes[i].Waits, nodes+1
		}
	}
	if waits == 0 {
		return ""
	}
	return fmt.Sprintf("the drains of %s of MachineConfigPool %q wait %s until pods that were evicted are ready again, since their PodDisruptionBudgets allow no other eviction before",
		words.Count(nodes, "node"), pool.Name, words.Count(waits, "time"))
}
