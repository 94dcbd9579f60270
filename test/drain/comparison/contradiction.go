package comparison

import (
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/draining"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Contradictions are what a plan says against itself, in words.
func Contradictions(of *draining.Plan) []string {
	found := contradictions(&of.Rehearsal)
	has := func(outcomes ...preflight.Outcome) bool {
		return slices.ContainsFunc(of.Findings, func(f finding.Finding) bool { return slices.Contains(outcomes, f.Outcome) })
	}
	outcome := func(wanted drain.Outcome) bool {
		return slices.ContainsFunc(of.Rehearsal.Pools, func(pool drain.Pool) bool { return pool.Outcome == wanted })
	}
	switch {
	case of.Outcome == drain.Clear && (outcome(drain.Sticks) || outcome(drain.Blocked) || outcome(drain.Undetermined)):
		found = append(found, "the plan is clear, and a pool is not")
	case of.Outcome == drain.Clear && has(preflight.Fail, preflight.Unknown):
		found = append(found, "the plan is clear, and a finding is against it")
	case outcome(drain.Sticks) && !has(preflight.Fail):
		found = append(found, "a pool sticks, and no finding fails")
	case outcome(drain.Undetermined) && !has(preflight.Fail, preflight.Unknown):
		found = append(found, "a pool is unknown, and no finding is")
	}
	return found
}

// contradictions are what a rehearsal says against itself.
func contradictions(of *drain.Rehearsal) []string {
	var found []string
	clear := map[string]bool{}
	for i := range of.Pools {
		pool := &of.Pools[i]
		for j := range pool.Nodes {
			clear[pool.Nodes[j].Name] = pool.Outcome == drain.Clear
		}
		obstacles := 0
		for j := range pool.Stuck {
			obstacles += len(pool.Stuck[j].Obstacles)
		}
		if sticks := pool.Outcome == drain.Sticks; sticks != (obstacles > 0) && pool.Outcome != drain.Undetermined {
			found = append(found, fmt.Sprintf("pool %s is %s with %d pods that stay", pool.Name, pool.Outcome, obstacles))
		}
	}
	for i := range of.Never {
		if each := &of.Never[i]; clear[each.Node] && each.Outcome != eviction.Unknown {
			found = append(found, fmt.Sprintf("the eviction of pod %s is refused for ever, and node %s is drained", each.Pod, each.Node))
		}
	}
	return append(found, again(of)...)
}

// again are the pods that are created again and are not. One that waits for a node at an obstacle may be lost behind it:
// a pod of a Job is created again and evicted again, until its backoffLimit is exceeded.
func again(of *drain.Rehearsal) []string {
	var found []string
	lost := map[drain.Reference]drain.Lost{}
	for _, each := range of.Lost {
		lost[each.Pod] = each
	}
	for i := range of.Pending {
		each := &of.Pending[i]
		gone, isLost := lost[each.Pod]
		later := gone.Behind && !each.Behind
		if isLost && !gone.Uncertain && !each.Uncertain && !later {
			found = append(found, fmt.Sprintf("pod %s is created again, and is not", each.Pod))
		}
	}
	return found
}
