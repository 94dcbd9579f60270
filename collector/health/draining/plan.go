package draining

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/survey"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/health/deadlock"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Kind is the kind of the JSON document of a Plan.
const Kind = "PreflightDrainPlan"

// Selection is the part of a cluster that a plan shows. Pool and Node may be empty, for all.
type Selection struct {
	Pool, Node string
	// NodePools are the pools of a hosted cluster that are updated; nil for any other cluster.
	NodePools []order.NodePool
	// Asks says how to ask the API server about the next pods; nil if it is not asked.
	Asks *recreation.Asks
}

// Plan is a rehearsal of the drains of the next update, with its findings.
type Plan struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Cluster is the ID of the cluster, or of the guest of a hosted cluster; empty if it has none.
	Cluster string `json:"cluster,omitempty"`
	// Time is when the cluster was read, in UTC (RFC 3339).
	Time string `json:"time"`
	// Outcome is the worst outcome of the pools that are shown; Unknown if no worse outcome is known and something
	// could not be read.
	Outcome   drain.Outcome   `json:"outcome"`
	Rehearsal drain.Rehearsal `json:"rehearsal"`
	// Skipped are the nodes that are not drained.
	Skipped []order.Skipped `json:"skipped"`
	// Unread are the objects that could not be read: results that depend on it are unknown.
	Unread []string `json:"unread"`
	// Findings are the results of the drains, one for each cause.
	Findings []finding.Finding `json:"findings"`
}

// Needs are the permissions for Rehearse. What cannot be read of others than the nodes, the pods
// and the PodDisruptionBudgets makes what depends on it unknown.
func Needs() access.Needs {
	return access.Needs{
		Required: []access.Request{{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"}},
		Optional: slices.Concat(survey.Reads(), deadlock.Webhooks().Reads),
	}
}

// Rehearse rehearses the drains of an update of all nodes, at a time of the cluster's clock. All pools are
// rehearsed, since they are drained in parallel; the plan contains the selected part. An *input.Error means that
// the selection does not exist.
func Rehearse(ctx context.Context, cluster *snapshot.Cluster, now time.Time, selected Selection) (Plan, error) {
	ctx, missing := gap.Track(ctx)
	of, err := rehearsalOf(ctx, cluster, now, selected.NodePools, selected.Asks)
	if err != nil {
		return Plan{}, err
	}
	read := &of.read
	made := Plan{
		APIVersion: report.APIVersion, Kind: Kind, Time: now.UTC().Format(time.RFC3339), Skipped: []order.Skipped{},
		Unread: []string{},
	}
	made.Unread = append(made.Unread, unread(of.gaps, missing.All())...)
	if err := selected.check(read.Order); err != nil {
		return Plan{}, err
	}
	for _, each := range read.Order.Skipped {
		if (selected.Pool == "" || each.Pool == selected.Pool) && (selected.Node == "" || each.Node == selected.Node) {
			made.Skipped = append(made.Skipped, each)
		}
	}
	made.Rehearsal = selected.of(of.rehearsal, read.Order)
	made.Findings = append(evaluate(missing.Extent(), made.Rehearsal, read.Order.Pools), of.besides(ctx, cluster)...)
	if selected.NodePools == nil {
		made.Findings = append(made.Findings, of.unreached()...)
	}
	made.review(ctx, cluster, now)
	for i, f := range made.Findings {
		made.Findings[i] = f.Named(cmp.Or(f.Name, nameDrain)).From(finding.SourceHealth)
	}
	if len(made.Unread) > 0 {
		made.doubt()
	}
	made.Outcome = worst(made.Rehearsal.Pools)
	against := func(f finding.Finding) bool { return f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown }
	if made.Outcome == drain.Clear && (len(made.Unread) > 0 || slices.ContainsFunc(made.Findings, against)) {
		made.Outcome = drain.Undetermined // also without a pool
	}
	return made, nil
}

// review adds what the check of webhooks that the update itself stops says.
func (p *Plan) review(ctx context.Context, cluster *snapshot.Cluster, now time.Time) {
	refused, err := deadlock.Webhooks().Run(ctx, check.Subject{Cluster: cluster, Now: now})
	if err != nil && len(p.Unread) == 0 {
		p.Unread = append(p.Unread, err.Error())
	}
	p.Findings = append(p.Findings, finding.WithoutPasses(refused)...)
}

// doubt makes what is in favor of the drains unknown: what was not read may be against them.
func (p *Plan) doubt() {
	p.Rehearsal.Pools = slices.Clone(p.Rehearsal.Pools)
	for i := range p.Rehearsal.Pools {
		if pool := &p.Rehearsal.Pools[i]; pool.Outcome == drain.Clear {
			pool.Outcome, pool.Why = drain.Undetermined, "some objects that its drains depend on could not be read"
		}
	}
	p.Findings = keep(p.Findings, func(f finding.Finding) bool { return f.Outcome != preflight.Pass })
}

// unread lists what could not be read or was not gathered.
func unread(errs []survey.Gap, missing []gap.Gap) []string {
	var all []string
	for _, each := range errs {
		if !gap.Is(each) {
			all = append(all, each.Error())
		}
	}
	for _, each := range missing {
		all = append(all, each.String())
	}
	return all
}

// Causes returns the findings that are not in the lists of the rehearsal: why drains hang, and which budgets are
// unused.
func (p *Plan) Causes() []finding.Finding {
	listed := []string{namePending, nameLost, nameGraces, nameInterrupted, nameUnreached}
	return keep(p.Findings, func(f finding.Finding) bool { return f.Outcome != preflight.Pass && !slices.Contains(listed, f.Name) })
}

func worst(pools []drain.Pool) drain.Outcome {
	for _, outcome := range []drain.Outcome{drain.Sticks, drain.Blocked, drain.Undetermined} {
		if slices.ContainsFunc(pools, func(pool drain.Pool) bool { return pool.Outcome == outcome }) {
			return outcome
		}
	}
	return drain.Clear
}

// mostNamed bounds the names in an error.
const mostNamed = 20

// check rejects a pool or a node that the cluster does not have.
func (s Selection) check(of order.Order) error {
	var pools, nodes []string
	for i := range of.Pools {
		pools, nodes = append(pools, of.Pools[i].Name), append(nodes, of.Pools[i].Nodes...)
	}
	for _, each := range of.Skipped {
		nodes = append(nodes, each.Node)
		if each.Pool != "" && !slices.Contains(pools, each.Pool) {
			pools = append(pools, each.Pool)
		}
	}
	if s.Pool != "" && !slices.Contains(pools, s.Pool) {
		return input.Errorf("there is no pool with nodes named %q; the pools are %s", s.Pool, words.List(pools, mostNamed))
	}
	if s.Node != "" && !slices.Contains(nodes, s.Node) {
		return input.Errorf("there is no node named %q; the nodes are %s", s.Node, words.List(nodes, mostNamed))
	}
	return nil
}

// of returns the part of a rehearsal that is about the selection: its pools, and what happens to the pods on its
// nodes. Pods without a node belong to the whole cluster.
func (s Selection) of(all drain.Rehearsal, from order.Order) drain.Rehearsal {
	if s.Pool == "" && s.Node == "" {
		return all
	}
	nodes := map[string]bool{}
	var pools []drain.Pool
	for i := range from.Pools {
		pool := &from.Pools[i]
		if s.Pool != "" && pool.Name != s.Pool || s.Node != "" && !slices.Contains(pool.Nodes, s.Node) {
			continue
		}
		for _, node := range pool.Nodes {
			nodes[node] = s.Node == "" || node == s.Node
		}
		pools = append(pools, s.pool(all.Pools[i]))
	}
	all.Pools = pools
	all.Never = keep(all.Never, func(o drain.Obstacle) bool { return nodes[o.Node] })
	all.Behind = keep(all.Behind, func(o drain.Obstacle) bool { return nodes[o.Node] })
	all.Lost = keep(all.Lost, func(l drain.Lost) bool { return nodes[l.Node] })
	all.Graces = keep(all.Graces, func(g drain.Grace) bool { return nodes[g.Node] })
	all.Delayed = keep(all.Delayed, func(p drain.Pending) bool { return nodes[p.Node] })
	all.Addresses = keep(all.Addresses, func(a drain.Address) bool { return nodes[a.Nodes[0]] })
	all.Together = keep(all.Together, func(t drain.Together) bool {
		return slices.ContainsFunc(t.Nodes, func(node string) bool { return nodes[node] })
	})
	all.Interrupted = keep(all.Interrupted, func(i drain.Interruption) bool {
		return slices.ContainsFunc(i.Nodes, func(node string) bool { return nodes[node] })
	})
	return all
}

// pool is a pool with the selected node alone. Where the drains do not come to the node, it has
// those at which they stick.
func (s Selection) pool(of drain.Pool) drain.Pool {
	isNode := func(node drain.Node) bool { return node.Name == s.Node }
	switch {
	case s.Node == "":
	case slices.ContainsFunc(of.Stuck, isNode):
		of.Nodes, of.Stuck, of.Waiting = nil, keep(of.Stuck, isNode), 0
	case slices.ContainsFunc(of.Nodes, isNode):
		return drain.Pool{Name: of.Name, Outcome: drain.Clear, Nodes: keep(of.Nodes, isNode)}
	default:
		of.Nodes = nil
	}
	return of
}

func keep[T any](all []T, wanted func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(each T) bool { return !wanted(each) })
}

// Rehearsal returns the rehearsal of the drains of an update, at a time of the cluster's clock. An error is about
// objects that could not be read; the rehearsal is nil if it is impossible without them.
func Rehearsal(ctx context.Context, cluster *snapshot.Cluster, now time.Time) (*drain.Rehearsal, error) {
	of, err := rehearsalOf(ctx, cluster, now, nil, nil)
	if err != nil {
		return nil, err
	}
	return &of.rehearsal, of.unread()
}

// Prolonging returns the drains of an update that take long, a clause for each pool and for each long grace
// period: first drains that hang, then drains that wait for budgets, then grace periods.
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
		graces = append(graces, fmt.Sprintf("pod %s on node %s may take %s to terminate", each.Pod, each.Node, each.Period()))
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
	return fmt.Sprintf("the drains of %s of MachineConfigPool %q wait %s until pods that were evicted are ready again, since their "+
		"PodDisruptionBudgets allow no other eviction before",
		words.Count(nodes, "node"), pool.Name, words.Count(waits, "time"))
}
