// Package planview answers: how is a plan of updates shown to people?
//
// [Plan] is the document of the value of package updateplan, whose JSON it has.
package planview

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Plan is the document of a plan.
type Plan struct{ updateplan.Plan }

// Document lists the decision, the path, the durations, then each update, and what the plan does not cover.
func (p Plan) Document(view document.View) document.Document {
	decision, meaning, _ := strings.Cut(p.headline(), ": ")
	blocks := []document.Block{
		document.Verdict{Mark: document.Mark{Level: p.level(), Word: decision}, Meaning: meaning}, p.comparison(),
	}
	if len(p.Updates) > 0 {
		blocks = append(blocks, p.path()...)
		blocks = append(blocks, p.duration(view), document.List{Lead: "What prolongs the updates:", Entries: p.Duration.ProlongedBy})
	}
	blocks = append(blocks, p.steps()...)
	for i, each := range p.Updates {
		blocks = append(blocks, section(each, i+1))
	}
	blocks = append(blocks, document.List{Lead: "Not part of this plan:", Entries: p.Missing},
		document.List{Lead: "Notices:", Entries: p.Notices})
	if view.Full {
		blocks = append(blocks, p.about())
	}
	verdict := p.headline()
	if p.NoPath != nil { // the remedy is the next step
		verdict = decision + ": " + words.Sentence(p.NoPath.Message)
	}
	return document.Document{
		Title: fmt.Sprintf("Update plan from %s to %s", p.From, p.To), Cluster: p.Cluster, Time: p.Time, Blocks: blocks,
		Ticket: document.Ticket{Verdict: "Plan: " + verdict, By: "oc-preflight " + p.ToolVersion, Next: p.next()},
		Source: fmt.Sprintf("Written by oc preflight %s. The JSON document of the plan has all data.", p.ToolVersion),
	}
}

// next is the next step where no item has it; empty where one does.
func (p Plan) next() string {
	switch {
	case p.NoPath != nil:
		return p.NoPath.Remedy
	case len(p.Updates) > 0 && (p.Decision == updateplan.Clear || p.Decision == updateplan.LaterFindings):
		return fmt.Sprintf("Run the preflight of the first update, to %s.", p.Updates[0].To)
	}
	return ""
}

func (p Plan) headline() string {
	path := fmt.Sprintf("%s from %s to %s", words.Count(len(p.Updates), "update"), p.From, p.To)
	switch {
	case p.NoPath != nil:
		return fmt.Sprintf("NoPath: %s. %s", p.NoPath.Message, p.NoPath.Remedy)
	case len(p.Updates) == 0:
		return "Complete: the cluster has " + p.To + "."
	case p.Decision == updateplan.Clear:
		return "Clear: " + path + ", without open risks."
	case p.Decision == updateplan.Blocked:
		return fmt.Sprintf("Blocked: %s, with %s; the blockers of the "+
			"first update are listed with it.", path, words.Count(p.openRisks(), "open risk"))
	case p.Decision == updateplan.Undecided:
		return fmt.Sprintf("Undecided: %s, with %s; the inconclusive findings of the first update are listed with it.", path,
			words.Count(p.openRisks(), "open risk"))
	case p.Decision == updateplan.LaterFindings:
		return "LaterFindings: " + path + ", without open risks; the findings against a later update, based on the current cluster, " +
			"are listed with it."
	case p.Decision == updateplan.OpenRisks:
		return fmt.Sprintf("OpenRisks: %s, with %s; no path has fewer.", path, words.Count(p.openRisks(), "open risk"))
	}
	return fmt.Sprintf("Inconclusive: %s, with %s, and whether they apply is unknown.", path, words.Count(p.openRisks(), "open risk"))
}

func (p Plan) level() document.Level {
	switch p.Decision {
	case updateplan.Clear:
		return document.Good
	case updateplan.LaterFindings:
		return document.Caution
	case updateplan.Blocked, updateplan.OpenRisks, updateplan.NoPath:
		return document.Bad
	case updateplan.Inconclusive, updateplan.Undecided:
	}
	return document.Unclear
}

func (p Plan) openRisks() int {
	open := 0
	for _, each := range p.Updates {
		for _, risk := range each.Risks {
			if risk.Open {
				open++
			}
		}
	}
	return open
}

// steps are the updates of a hosted cluster with their commands; none for another cluster.
func (p Plan) steps() []document.Block {
	if len(p.Steps) == 0 {
		return nil
	}
	list := document.List{Lead: "In the management cluster, one after the other, each when the previous one is complete:"}
	var commands []string
	for i, each := range p.Steps {
		list.Entries = append(list.Entries, fmt.Sprintf("%d. %s %s/%s: %s to %s", i+1, each.Object.Kind, each.Object.Namespace, each.Object.Name,
			each.From, each.To))
		if each.Command != "" {
			commands = append(commands, each.Command)
		}
	}
	blocks := []document.Block{list}
	if len(commands) > 0 {
		blocks = append(blocks, document.Command{
			Lead: "Run the commands in this order, each after \"run --hosted-cluster\" of its release:",
			Text: strings.Join(commands, "\n"),
		})
	}
	return blocks
}

// comparison with the stored plan; empty without one.
func (p Plan) comparison() document.Block {
	switch {
	case p.Comparison == nil:
		return document.List{}
	case p.Comparison.Holds:
		return document.Paragraph{Text: fmt.Sprintf("The stored plan of %s still holds.", p.Comparison.Time)}
	}
	list := document.List{Lead: fmt.Sprintf("The stored plan of %s no longer holds:", p.Comparison.Time)}
	for _, each := range p.Comparison.Changes {
		list.Entries = append(list.Entries, fmt.Sprintf("%s (%s)", each.Message, each.Reason))
	}
	return list
}

func (p Plan) about() document.Table {
	table := document.Table{Title: "About this plan"}
	table.Row("Made", p.Time)
	table.Row("Architecture", p.Architecture)
	table.Row("Graphs", words.List(p.Graphs, mostPools))
	return table
}

func (p Plan) duration(view document.View) document.Block {
	table := document.Table{Title: "Estimated durations"}
	text := "control plane " + p.Duration.ControlPlane.String()
	if len(p.Pools) > 0 {
		text += "\nall nodes " + p.Duration.AllNodes()
	}
	table.Row("Duration", strings.Join(append([]string{text}, p.Duration.Basis...), "\n"))
	for _, pool := range p.Pools {
		table.Row("Pool", poolText(pool))
	}
	if !view.Full {
		return table
	}
	ranges := picture.Ranges{Title: table.Title, Table: table}
	start := time.Duration(0)
	for _, each := range p.Updates {
		ranges.Rows = append(ranges.Rows, rangeRow(each.From+" to "+each.To, start, each.ControlPlane, each.ControlPlane))
		start += minutes(each.ControlPlane.Expected)
	}
	if len(p.Pools) > 0 {
		ranges.Rows = append(ranges.Rows, rangeRow("All updates and nodes", 0, p.Duration.ControlPlane, p.Duration.Total))
	}
	return ranges.Picture()
}

func poolText(pool updateplan.Pool) string {
	state := ""
	if pool.Paused {
		state = ", currently paused"
	}
	return fmt.Sprintf("%s: %s, %d at a time, %s each%s", pool.Name, words.Count(pool.Nodes, "node"), pool.Parallel,
		words.Count(pool.Reboots, "reboot"), state)
}

// rangeRow is a row of the control plane, and of what all nodes take beyond it.
func rangeRow(title string, start time.Duration, controlPlane, all report.Range) picture.RangeRow {
	solid := minutes(controlPlane.Expected)
	return picture.RangeRow{
		Name: title + ": " + all.String(), Start: start, Solid: solid, Striped: max(0, minutes(all.Expected)-solid),
		Low: minutes(all.Low), High: minutes(all.High),
	}
}

// maxMinutes bounds one duration in a picture.
const maxMinutes = 1_000_000

// minutes is a duration within the bounds of a picture.
func minutes(number int) time.Duration {
	return time.Duration(min(max(number, 0), maxMinutes)) * time.Minute
}

// Images returns the pull specs of the releases of the path, without the current one.
func (p Plan) Images() []string {
	var images []string
	for _, each := range p.Updates {
		images = append(images, each.Image)
	}
	return images
}

// ImageSet returns the configurations of oc-mirror. A plan that was read from a file has none, which is an error.
func (p Plan) ImageSet() ([]imageset.File, error) {
	if len(p.Mirror()) == 0 && len(p.Updates) > 0 {
		return nil, errors.New("a stored plan does not have the configurations of oc-mirror: plan again")
	}
	return p.Mirror(), nil
}

func section(update updateplan.Update, number int) document.Section {
	title := fmt.Sprintf("Update %d: %s to %s", number, update.From, update.To)
	if update.Provisional {
		title += " (provisional: based on the current cluster)"
	}
	table := document.Table{Title: fmt.Sprintf("Update %d", number)}
	table.Row("Image", update.Image)
	table.Row("Errata", update.URL)
	table.Row("Channels", words.List(update.Channels, mostNames))
	if len(update.Unpause) > 0 {
		table.Row("Unpause", words.List(update.Unpause, mostNames)+" before this update")
	}
	var items document.Items
	for _, risk := range update.Risks {
		items.Entries = append(items.Entries, riskItem(risk))
	}
	for _, f := range update.Findings {
		if f.Outcome != preflight.Pass && f.Outcome != preflight.Skipped {
			items.Entries = append(items.Entries, findingview.Item(f))
		}
	}
	return document.Section{Title: title, Blocks: []document.Block{table, items}}
}

func riskItem(risk updateplan.Risk) document.Item {
	item := document.Item{Mark: markOf(risk), Names: []string{risk.Name}, Counts: risk.Open, Message: risk.Message}
	if text := explanation(risk); text != "" {
		item.Message += "\n" + text
	}
	item.Fact("See:", risk.URL)
	return item
}

func markOf(risk updateplan.Risk) document.Mark {
	switch {
	case risk.Accepted != "":
		return document.Mark{Level: document.Neutral, Word: "accepted"}
	case risk.Applies == updateplan.False:
		return document.Mark{Level: document.Neutral, Word: "does not apply"}
	case risk.Applies == updateplan.True:
		return document.Mark{Level: document.Bad, Word: "OPEN, applies"}
	}
	return document.Mark{Level: document.Unclear, Word: "OPEN, unknown"}
}

func label(risk updateplan.Risk) string {
	word := markOf(risk).Word
	if strings.HasPrefix(word, "OPEN") {
		word += ":"
	}
	return word
}

// explanation is by what the risk was accepted or evaluated, or why it is unknown whether it applies.
func explanation(risk updateplan.Risk) string {
	switch {
	case risk.Accepted != "":
		return "Accepted: " + risk.Accepted
	case risk.Applies == updateplan.Unknown && risk.Detail != "":
		return fmt.Sprintf("Unknown (%s): %s", risk.Reason, risk.Detail)
	case risk.EvaluatedBy == updateplan.CVO:
		return "Evaluated by CVO (conditionalUpdates of ClusterVersion)."
	case risk.EvaluatedBy == updateplan.Preflight:
		return "Evaluated by oc-preflight."
	}
	return ""
}
