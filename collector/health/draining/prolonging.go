package draining

import (
	"context"
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// Prolonging are the drains of an update that take long, a clause for each pool and for each long
// grace period: drains that do not end first, those that wait for budgets, then grace periods. An
// error is about what could not be read.
func Prolonging(ctx context.Context, cluster *snapshot.Cluster, now time.Time) ([]string, error) {
	of, err := rehearsalOf(ctx, cluster, now, nil)
	if err != nil {
		return nil, err
	}
	return prolonging(&of.rehearsal, poolsOf(of.read.Order.Pools)), of.unread()
}

func prolonging(of *drain.Rehearsal, pools pools) []string {
	var endless, slow, graces []string
	for i := range of.Pools {
		pool := &of.Pools[i]
		if text := endlessDrain(pool, pools.kind(pool.Name)); text != "" {
			endless = append(endless, text)
		}
		if text := slowDrains(pool, pools.kind(pool.Name)); text != "" {
			slow = append(slow, text)
		}
	}
	for _, each := range of.Graces {
		graces = append(graces, fmt.Sprintf("pod %s on node %s may take %s to end", each.Pod, each.Node, each.Period()))
	}
	return append(append(endless, slow...), graces...)
}

// endlessDrain is where the drains of a pool do not end, or may not; empty if they end.
func endlessDrain(pool *drain.Pool, kind string) string {
	if len(pool.Stuck) == 0 {
		return ""
	}
	verb := "does not end"
	if pool.Outcome != drain.Sticks {
		verb = "may not end"
	}
	node := &pool.Stuck[0]
	text := fmt.Sprintf("the drain of node %s of %s %q %s", node.Name, kind, pool.Name, verb)
	if len(node.Obstacles) > 0 {
		first := node.Obstacles[0]
		text += fmt.Sprintf(" (pod %s: %s)", first.Pod, first.Cause)
	}
	return text
}

// slowDrains is how often the drains of a pool wait until replacements are ready; empty if they do
// not.
func slowDrains(pool *drain.Pool, kind string) string {
	waits, nodes := 0, 0
	for i := range pool.Nodes {
		if pool.Nodes[i].Waits > 0 {
			waits, nodes = waits+pool.Nodes[i].Waits, nodes+1
		}
	}
	if waits == 0 {
		return ""
	}
	return fmt.Sprintf("the drains of %s of %s %q wait %s until pods that were evicted are ready again, since their PodDisruptionBudgets allow no other eviction before",
		words.Count(nodes, "node"), kind, pool.Name, words.Count(waits, "time"))
}
