package updateplan

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/html"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The bounds of a page.
const (
	maxSections = 50
	maxResults  = 50
	maxItems    = 200
)

// WriteHTML writes the plan as one HTML page for approvers, archives and printing: its
// decision, diagrams of the path and of the durations, then each update. Text of the plan
// is data. A page that is too large is cut, and states that.
func (p Plan) WriteHTML(w io.Writer) error {
	decision, rest, _ := strings.Cut(p.headline(), ": ")
	title, changes := p.compared()
	blocks := list("", title, changes)
	if len(p.Updates) > 0 {
		blocks = append(blocks, p.pathSection(), p.durationSection())
	}
	for i, each := range p.Updates[:min(len(p.Updates), maxSections)] {
		blocks = append(blocks, each.section(i+1))
	}
	blocks = append(blocks, omitted(len(p.Updates)-maxSections, "updates")...)
	blocks = append(blocks, list("Not part of this plan", "", p.Missing)...)
	blocks = append(blocks, list("Notices", "", p.Notices)...)
	return html.Write(w, html.Document{
		Title:    fmt.Sprintf("Update plan from %s to %s", name(p.From), name(p.To)),
		Decision: html.Decision{Level: p.Decision.level(), Word: decision, Text: rest},
		Blocks:   append(blocks, p.about()),
		Source:   fmt.Sprintf("Written by oc preflight %s. The JSON document of the plan has all data.", p.ToolVersion),
	})
}

// level is the shape of the decision.
func (d Decision) level() html.Level {
	switch d {
	case Clear:
		return html.Good
	case OpenRisks, NoPath:
		return html.Bad
	case Inconclusive:
	}
	return html.Unclear
}

// about is what the plan was made of.
func (p Plan) about() html.Block {
	table := html.Table{Caption: "About this plan", Rows: [][]string{
		{"Made", p.Time}, {"Cluster", p.Cluster}, {"Architecture", p.Architecture}, {"Graphs", words.List(p.Graphs, 20)},
	}}
	table.Rows = slices.DeleteFunc(table.Rows, func(row []string) bool { return row[1] == "" })
	return html.Section{Title: "About", Blocks: []html.Block{table}}
}

// list is an introduction and a list, under a heading if there is one; nothing for a list
// without an introduction that is empty.
func list(heading, introduction string, all []string) []html.Block {
	var blocks []html.Block
	if introduction != "" {
		blocks = append(blocks, html.Paragraph{Text: introduction})
	}
	var steps html.Steps
	for _, item := range all[:min(len(all), maxItems)] {
		steps = append(steps, html.Step{Name: item})
	}
	if len(steps) > 0 {
		blocks = append(blocks, steps)
	}
	blocks = append(blocks, omitted(len(all)-maxItems, "entries")...)
	if heading == "" || len(blocks) == 0 {
		return blocks
	}
	return []html.Block{html.Section{Title: heading, Blocks: blocks}}
}

// omitted states how many are left out; nothing for none.
func omitted(count int, what string) []html.Block {
	if count <= 0 {
		return nil
	}
	return []html.Block{html.Paragraph{Text: fmt.Sprintf("%d more %s are left out here, since the page is bounded. The JSON document has all of them.", count, what)}}
}

// pathSection has the picture of the path, its table, and what to do about the pools.
func (p Plan) pathSection() html.Block {
	route := html.Route{Title: "Path from " + name(p.From) + " to " + name(p.To), Stops: p.versions()}
	table := html.Table{Caption: "Updates of the path", Columns: []string{"Update", "Kind", "Channel", "Control plane", "Unpause before", "Risks and gates"}}
	for _, each := range p.Updates {
		marks := each.marks()
		route.Hops = append(route.Hops, html.Hop{Text: each.Kind + ", " + each.Channel, Detail: each.ControlPlane.String(), Marks: marks})
		table.Rows = append(table.Rows, []string{
			each.From + " to " + each.To, each.Kind, each.Channel, each.ControlPlane.String(), words.List(each.Unpause, maxItems), results(marks),
		})
	}
	section := html.Section{Title: "Path"}
	var schedule []html.Block
	for _, pool := range p.Pools {
		if len(pool.Unpause) > 0 {
			route.Pauses = append(route.Pauses, html.Pause{Name: name(pool.Name), Unpaused: p.unpausedAt(pool)})
			schedule = append(schedule, html.Paragraph{Text: pool.schedule()})
		}
	}
	for _, each := range p.Alternatives {
		title := fmt.Sprintf("%s: %s, %s", each.Name, count(each.Updates, "update"), count(each.OpenRisks, "open risk"))
		route.Others = append(route.Others, html.OtherRoute{Name: title, Stops: each.Versions})
	}
	route.Table = table
	section.Blocks = append(append(section.Blocks, route), schedule...)
	if len(p.Alternatives) > 0 {
		section.Blocks = append(section.Blocks, p.alternatives())
	}
	for _, each := range p.Alternatives {
		if len(each.Risks) > 0 {
			section.Blocks = append(section.Blocks, html.Names{Lead: "Open risks of " + each.Name + ":", Names: each.Risks})
		}
	}
	return section
}

// schedule is when the nodes of a pool are updated.
func (p Pool) schedule() string {
	at := words.List(p.Unpause, maxItems)
	if p.Reboots < p.RebootsUnpaused {
		return fmt.Sprintf("Pause pool %s before the first update, and unpause it at %s until its nodes are updated: %s per node instead of %d.",
			name(p.Name), at, count(p.Reboots, "reboot"), p.RebootsUnpaused)
	}
	return fmt.Sprintf("Pool %s is paused. Unpause it at %s until its nodes are updated.", name(p.Name), at)
}

// marks are the risks of an update, then the gates that block it.
func (u Update) marks() []html.Decision {
	var marks []html.Decision
	for _, risk := range u.Risks {
		marks = append(marks, html.Decision{Level: risk.level(), Word: risk.state(), Text: risk.Name})
	}
	for _, f := range u.Findings {
		if blocks(f) {
			marks = append(marks, html.Decision{Level: html.LevelOf(f), Word: page.Label(f), Text: f.Name})
		}
	}
	return marks
}

// level is the shape of a risk.
func (r Risk) level() html.Level {
	switch {
	case r.Accepted != "", r.Applies == False:
		return html.Neutral
	case r.Applies == True:
		return html.Bad
	}
	return html.Unclear
}

// state is label without the colon.
func (r Risk) state() string { return strings.TrimSuffix(r.label(), ":") }

// results are marks in words.
func results(marks []html.Decision) string {
	var texts []string
	for _, mark := range marks {
		texts = append(texts, mark.Word+": "+mark.Text)
	}
	return strings.Join(texts, "; ")
}

func (p Plan) alternatives() html.Block {
	table := html.Table{Caption: "This plan, and other paths", Columns: []string{"Path", "Updates", "Open risks", "Through"}}
	table.Rows = append(table.Rows, []string{"this plan", strconv.Itoa(len(p.Updates)), strconv.Itoa(p.openRisks()), through(p.versions())})
	for _, each := range p.Alternatives {
		table.Rows = append(table.Rows, []string{each.Name, strconv.Itoa(each.Updates), strconv.Itoa(each.OpenRisks), through(each.Versions)})
	}
	return table
}

// durationSection has the picture of the durations: the updates one after the other, then
// all nodes.
func (p Plan) durationSection() html.Block {
	ranges := html.Ranges{Title: "Estimated durations", Table: html.Table{Caption: "Estimated durations", Columns: []string{"Part", "Duration"}}}
	add := func(title, text string) {
		ranges.Table.Rows = append(ranges.Table.Rows, []string{title, text})
	}
	start := time.Duration(0)
	for _, each := range p.Updates {
		title := each.From + " to " + each.To
		ranges.Rows = append(ranges.Rows, rangeRow(title, start, each.ControlPlane, each.ControlPlane))
		start += minutes(each.ControlPlane.Expected)
		add(title, "control plane "+each.ControlPlane.String())
	}
	add("All updates", "control plane "+p.Duration.ControlPlane.String())
	if len(p.Pools) > 0 {
		ranges.Rows = append(ranges.Rows, rangeRow("All updates and nodes", 0, p.Duration.ControlPlane, p.Duration.Total))
		add("All updates and nodes", p.Duration.Total.String()+", if every drain is quick")
	}
	for _, pool := range p.Pools {
		add("Pool", pool.String())
	}
	section := html.Section{Title: "Duration", Blocks: []html.Block{ranges}}
	for _, basis := range p.Duration.Basis[:min(len(p.Duration.Basis), maxItems)] {
		section.Blocks = append(section.Blocks, html.Paragraph{Text: basis})
	}
	if len(p.Duration.ProlongedBy) > 0 {
		section.Blocks = append(section.Blocks, list("", "What prolongs the updates:", p.Duration.ProlongedBy)...)
	}
	return section
}

// rangeRow is a row of the control plane, and of what all nodes take beyond it.
func rangeRow(title string, start time.Duration, controlPlane, all report.Range) html.RangeRow {
	solid := minutes(controlPlane.Expected)
	return html.RangeRow{
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

// section is one update with its risks and findings.
func (u Update) section(number int) html.Block {
	table := html.Table{Caption: fmt.Sprintf("Update %d", number), Rows: [][]string{
		{"Image", u.Image}, {"Errata", u.URL}, {"Channels", words.List(u.Channels, maxItems)}, {"Unpause before this update", words.List(u.Unpause, maxItems)},
	}}
	table.Rows = slices.DeleteFunc(table.Rows, func(row []string) bool { return row[1] == "" })
	section := html.Section{Title: fmt.Sprintf("Update %d: %s to %s%s", number, name(u.From), name(u.To), u.provisional()), Blocks: []html.Block{table}}
	for _, risk := range u.Risks[:min(len(u.Risks), maxResults)] {
		section.Blocks = append(section.Blocks, risk.section())
	}
	findings := u.attention()
	for _, f := range findings[:min(len(findings), maxResults)] {
		section.Blocks = append(section.Blocks, findingSection(f))
	}
	more := max(0, len(u.Risks)-maxResults) + max(0, len(findings)-maxResults)
	section.Blocks = append(section.Blocks, omitted(more, "risks and findings")...)
	return section
}

// attention are the findings that are not passed or skipped.
func (u Update) attention() []finding.Finding {
	return slices.DeleteFunc(slices.Clone(u.Findings), func(f finding.Finding) bool {
		return f.Outcome == preflight.Pass || f.Outcome == preflight.Skipped
	})
}

func (r Risk) section() html.Block {
	section := html.Section{Title: name(r.Name), Mark: html.Decision{Level: r.level(), Word: r.state()}}
	for _, paragraph := range []string{r.Message, r.explanation()} {
		if paragraph != "" {
			section.Blocks = append(section.Blocks, html.Paragraph{Text: paragraph})
		}
	}
	if r.URL != "" {
		section.Blocks = append(section.Blocks, html.Names{Lead: "See:", Names: []string{r.URL}})
	}
	return section
}

func findingSection(f finding.Finding) html.Block {
	section := html.Section{Title: f.Name, Mark: html.Decision{Level: html.LevelOf(f), Word: page.Outcome(f)}}
	if f.Message != "" {
		section.Blocks = append(section.Blocks, html.Paragraph{Text: f.Message})
	}
	section.Blocks = append(section.Blocks, html.Remedy(f)...)
	if f.URL != "" {
		section.Blocks = append(section.Blocks, html.Names{Lead: "See:", Names: []string{f.URL}})
	}
	return section
}
