package drainview

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/drain"
)

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
		Legend: "Pools are drained at the same time. A step ends when its nodes are updated.",
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
		return document.Unclear, "ends, as far as was read"
	}
	return document.Good, "ends"
}

func drainResult(pool *drain.Pool, node *drain.Node) string {
	if node.Uncertain || pool.Outcome == drain.Undetermined {
		return "may not end"
	}
	return "does not end"
}
