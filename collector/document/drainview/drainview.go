// Package drainview answers: how is a rehearsal of drains shown to people?
//
// [Plan] is its document, with the JSON of its fields.
package drainview

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/words"
)

// entries is the default limit of lists.
const entries = 20

// Plan is the document of a rehearsal.
type Plan struct {
	draining.Plan

	// ToolVersion is the version of the program.
	ToolVersion string `json:"-"`
}

// Document is how each pool ends, its nodes in order, then what becomes of the pods.
func (p Plan) Document(view document.View) document.Document {
	verdict := p.verdict()
	blocks := append([]document.Block{verdict}, p.picture()...)
	for i := range p.Rehearsal.Pools {
		blocks = append(blocks, pool(&p.Rehearsal.Pools[i], view))
	}
	blocks = append(blocks, p.findings())
	blocks = append(blocks,
		document.List{Most: entries, Lead: "Pods that cannot be scheduled:", Entries: p.pending()},
		document.List{Most: entries, Lead: "Pods that no controller recreates:", Entries: p.lost()},
		document.List{Most: entries, Lead: "Services without a ready pod for a time:", Entries: p.interrupted(view)},
		document.List{Most: entries, Lead: "Pods that may take long to terminate:", Entries: p.graces()},
		document.List{Most: entries, Lead: "Nodes that are not drained:", Entries: p.skipped()},
		document.List{Lead: "Could not be read, so whatever depends on it is unknown:", Entries: p.Unread},
	)
	return document.Document{
		Title: "Rehearsal of the drains", Source: "The JSON document " +
			"has all data.", Cluster: p.Cluster, Time: p.Time, Blocks: blocks,
		Ticket: document.Ticket{
			Verdict: fmt.Sprintf("Drains: %s: %s", verdict.Word, verdict.Meaning),
			By:      strings.TrimSpace("oc-preflight " + p.ToolVersion),
		},
	}
}

// Wide is the document with all entries of its lists.
func (p Plan) Wide(document.View) document.Document { return p.Document(document.View{Full: true}) }

func (p Plan) findings() document.Block {
	var items document.Items
	for _, each := range p.Causes() {
		items.Entries = append(items.Entries, findingview.Item(each))
	}
	return items
}

func (p Plan) verdict() document.Verdict {
	pools := p.Rehearsal.Pools
	count := map[drain.Outcome]int{}
	for _, each := range pools {
		count[each.Outcome]++
	}
	for _, each := range []struct {
		outcome drain.Outcome
		level   document.Level
		meaning string
	}{
		{drain.Sticks, document.Bad, "the drain of a node hangs"},
		{drain.Blocked, document.Bad, "a pool drains no node"},
		{drain.Undetermined, document.Unclear, "a drain may hang"},
	} {
		if count[each.outcome] > 0 {
			return document.Verdict{
				Mark:    document.Mark{Level: each.level, Word: string(each.outcome)},
				Meaning: fmt.Sprintf("%s: %d of %s.", each.meaning, count[each.outcome], words.Count(len(pools), "pool")),
			}
		}
	}
	switch {
	case p.Outcome == drain.Undetermined && len(p.Unread) == 0:
		return document.Verdict{
			Mark:    document.Mark{Level: document.Unclear, Word: string(p.Outcome)},
			Meaning: "all drains complete, except as the findings report.",
		}
	case p.Outcome == drain.Undetermined:
		return document.Verdict{Mark: document.Mark{Level: document.Unclear, Word: string(p.Outcome)}, Meaning: "some objects could " +
			"not be read."}
	case len(pools) == 0:
		return document.Verdict{Mark: document.Mark{Level: document.Good, Word: string(drain.Clear)}, Meaning: "no node is drained."}
	}
	return document.Verdict{
		Mark:    document.Mark{Level: document.Good, Word: string(drain.Clear)},
		Meaning: fmt.Sprintf("all drains of %s complete.", words.Count(len(pools), "pool")),
	}
}

func pool(of *drain.Pool, view document.View) document.Section {
	section := document.Section{Title: "Pool " + of.Name, Mark: mark(of.Outcome)}
	if of.Why != "" {
		section.Blocks = append(section.Blocks, document.Paragraph{Text: words.Sentence(of.Why)})
	}
	table := document.Table{Columns: []string{"Node", "Step", "Evicted", "Kept", "Waits", "Drain"}}
	row := func(node *drain.Node, result string) {
		table.Rows = append(table.Rows, []string{
			node.Name, strconv.Itoa(node.Step + 1), strconv.Itoa(node.Evicted), strconv.Itoa(node.Kept), strconv.Itoa(node.Waits), result,
		})
	}
	_, result := before(of)
	for i := range of.Nodes[:view.Entries(len(of.Nodes), entries)] {
		row(&of.Nodes[i], result)
	}
	table.More = len(of.Nodes) - len(table.Rows)
	for i := range of.Stuck {
		row(&of.Stuck[i], drainResult(of, &of.Stuck[i]))
	}
	section.Blocks = append(section.Blocks, table)
	for i := range of.Stuck {
		section.Blocks = append(section.Blocks, document.List{
			Most: entries, Lead: "What holds up " + of.Stuck[i].Name + ":",
			Entries: obstacles(&of.Stuck[i]),
		})
	}
	if of.Waiting > 0 {
		lead := "Not drained: "
		if len(table.Rows) > 0 {
			lead = "Not drained after that: "
		}
		section.Blocks = append(section.Blocks, document.Paragraph{Text: lead + words.Count(of.Waiting, "node") + "."})
	}
	return section
}

func mark(outcome drain.Outcome) document.Mark {
	level := document.Bad
	switch outcome {
	case drain.Clear:
		level = document.Good
	case drain.Undetermined:
		level = document.Unclear
	case drain.Sticks, drain.Blocked:
	}
	return document.Mark{Level: level, Word: string(outcome)}
}

func obstacles(node *drain.Node) []string {
	var found []string
	for _, each := range node.Obstacles {
		text := fmt.Sprintf("pod %s: %s (%s)", each.Pod, each.Outcome, each.Cause)
		var budgets []string
		for _, budget := range each.Budgets {
			budgets = append(budgets, budget.String())
		}
		if len(budgets) > 0 {
			text += ", PodDisruptionBudget " + strings.Join(budgets, ", ")
		}
		if each.By != "" {
			text += ", " + each.By
		}
		clauses := []string{text}
		for _, pending := range each.Behind {
			clauses = append(clauses, fmt.Sprintf("it waits for pod %s, which has no node: %s", pending.Pod, pending.Why))
		}
		found = append(found, strings.Join(clauses, "; "))
	}
	return found
}

func (p Plan) pending() []string {
	var found []string
	for _, each := range p.Rehearsal.Pending {
		text := fmt.Sprintf("%s: %s", each.Pod, each.Why)
		if each.Missing {
			text = fmt.Sprintf("a pod of %s that does not exist now: %s", each.Pod, each.Why)
		}
		if each.Uncertain {
			text += " (it may get a node)"
		}
		found = append(found, text)
	}
	return found
}

func (p Plan) lost() []string {
	var found []string
	for _, each := range p.Rehearsal.Lost {
		text := fmt.Sprintf("%s on %s: it %s", each.Pod, each.Node, each.Why)
		if each.Uncertain {
			text += " (it may stay)"
		}
		found = append(found, text)
	}
	return found
}

// interrupted are Services. Services of OpenShift itself, most of which have one replica by design, are only
// counted unless all are requested.
func (p Plan) interrupted(view document.View) []string {
	var found []string
	platform := 0
	for _, each := range p.Rehearsal.Interrupted {
		if !view.Full && check.OfCluster(each.Service.Namespace) {
			platform++
			continue
		}
		found = append(found, fmt.Sprintf("%s with %s, while these nodes are drained: %s", each.Service, words.Count(each.Replicas, "ready pod"),
			words.List(each.Nodes, entries)))
	}
	if platform > 0 {
		found = append(found, words.Count(platform, "Service")+" of OpenShift itself")
	}
	return found
}

func (p Plan) graces() []string {
	var found []string
	for _, each := range p.Rehearsal.Graces {
		found = append(found, fmt.Sprintf("%s on %s: up to %s", each.Pod, each.Node, each.Period()))
	}
	return found
}

func (p Plan) skipped() []string {
	var found []string
	for _, each := range p.Skipped {
		text := each.Node + ": " + reasons()[each.Why]
		if each.State != "" {
			text += " (" + string(each.State) + ")"
		}
		found = append(found, text)
	}
	return found
}

func reasons() map[order.Skip]string {
	return map[order.Skip]string{
		order.SingleReplica: "the control plane is a single node, and such a cluster is updated without a drain",
		order.Paused:        "its pool is paused",
		order.OnDelete:      "its NodePool replaces a machine only when the machine is deleted",
		order.AtTarget:      "it has the configuration of the target",
		order.NoPool:        "no MachineConfigPool that was read selects it",
		order.NoDaemon:      "the machine-config-daemon does not manage it",
		order.SeveralPools:  "several custom MachineConfigPools select it, and none updates it",
		order.Unavailable:   "it is unavailable, and is not updated while it is",
	}
}

// picture is when each node is drained, and when a Service has no ready pod; nothing without a
// node that is drained.
func (p Plan) picture() []document.Block {
	var rows []picture.StepRow
	var lines []string
	steps := map[string]int{}
	for i := range p.Rehearsal.Pools {
		pool := &p.Rehearsal.Pools[i]
		var names []string
		add := func(node *drain.Node, level document.Level, result string) {
			steps[node.Name] = node.Step + 1
			rows = append(rows, picture.StepRow{Name: pool.Name + " " + node.Name, Result: result, Level: level, At: []int{node.Step + 1}})
		}
		for at := range pool.Nodes {
			level, result := before(pool)
			add(&pool.Nodes[at], level, "the drain "+result)
			names = append(names, pool.Nodes[at].Name)
		}
		for at := range pool.Stuck {
			result := drainResult(pool, &pool.Stuck[at])
			add(&pool.Stuck[at], mark(pool.Outcome).Level, "the drain "+result)
			names = append(names, fmt.Sprintf("%s (%s)", pool.Stuck[at].Name, result))
		}
		if len(names) > 0 {
			lines = append(lines, chain(pool.Name+":", shorten(names)))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return []document.Block{picture.Steps{
		Title: "Nodes in the order of their drains", Rows: append(rows, p.services(steps)...), Text: strings.Join(lines, "\n"),
		Legend: "Pools are drained in parallel. A step ends when its nodes are updated.",
	}.Picture()}
}

// services are the Services of the administrator without a ready pod at some steps.
func (p Plan) services(steps map[string]int) []picture.StepRow {
	var rows []picture.StepRow
	for _, each := range p.Rehearsal.Interrupted {
		if check.OfCluster(each.Service.Namespace) {
			continue
		}
		row := picture.StepRow{Name: "Service " + each.Service.String(), Result: "no ready pod for a time", Level: document.Caution}
		for _, node := range each.Nodes {
			if step := steps[node]; step > 0 {
				row.At = append(row.At, step)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// mostDrawn bounds the nodes of a line.
const mostDrawn = 12

// shorten leaves out names in the middle.
func shorten(names []string) []string {
	if len(names) <= mostDrawn {
		return names
	}
	const ends = mostDrawn / 2
	middle := fmt.Sprintf("(%d more)", len(names)-mostDrawn)
	return append(append(append([]string{}, names[:ends]...), middle), names[len(names)-ends:]...)
}

// lineWidth is how many columns a line of nodes has, unless one node needs more.
const lineWidth = 78

// chain is names in their order, in as many lines as they need.
func chain(lead string, names []string) string {
	var text strings.Builder
	line := "  " + lead
	for i, name := range names {
		if i > 0 {
			name = "> " + name
		}
		if i > 0 && len(line)+1+len(name) > lineWidth {
			text.WriteString(line + "\n")
			line = "   "
		}
		line += " " + name
	}
	return text.String() + line
}

// before is how the drains of a pool end before the first one that may not end.
func before(pool *drain.Pool) (level document.Level, result string) {
	if pool.Outcome == drain.Undetermined && len(pool.Stuck) == 0 {
		return document.Unclear, "completes, as far as could be read"
	}
	return document.Good, "ends"
}

func drainResult(pool *drain.Pool, node *drain.Node) string {
	if node.Uncertain || pool.Outcome == drain.Undetermined {
		return "may not end"
	}
	return "does not end"
}
