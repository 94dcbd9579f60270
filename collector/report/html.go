package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/html"
	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// WriteHTML writes the report as one HTML page for approvers, archives and printing: the
// verdict and what to do first, passes folded away, and a timeline of the checks. Text of
// the report is data. A page that is too large is cut after the findings that block, and
// states so.
func (r Report) WriteHTML(w io.Writer) error {
	decision, text, _ := strings.Cut(headline(r), ": ")
	made := htmlPage{}
	return html.Write(w, html.Document{
		Title:    "Update preflight: " + cmp.Or(r.from(), "unknown version") + " to " + cmp.Or(r.Target.Version, "unknown version"),
		Decision: html.Decision{Level: r.level(), Word: decision, Text: text},
		Blocks:   made.report(r),
		Source:   sourceLine(r.Run.ToolVersion, cmp.Or(r.Run.ID, "not recorded")),
	})
}

// sourceLine is the last line of a page.
func sourceLine(version, run string) string {
	return fmt.Sprintf("Written by oc preflight %s. Run: %s. The JSON document of the run has all data.", version, run)
}

// WriteHTML writes the path as one HTML page: the decision, then each update.
func (p Path) WriteHTML(w io.Writer) error {
	made := htmlPage{}
	decision, text, _ := strings.Cut(p.headline(), ": ")
	updates := html.Table{Caption: "Updates"}
	for i, each := range p.Updates {
		updates.Rows = append(updates.Rows, []string{p.position(i), p.summary(each)})
	}
	if rest := p.unreported(); len(rest) > 0 {
		updates.Rows = append(updates.Rows, []string{"No report", strings.Join(rest, ", ")})
	}
	for _, notice := range p.Notices {
		updates.Rows = append(updates.Rows, []string{"Notice", words.Line(notice, maxCommand)})
	}
	blocks := []html.Block{p.picture(updates)}
	for i, each := range p.Updates {
		blocks = append(blocks, html.Section{
			Title:  fmt.Sprintf("%s: %s to %s", p.position(i), each.from(), orUnknown(each.Target.Version)),
			Mark:   html.Decision{Level: each.level(), Word: each.standing()},
			Blocks: append([]html.Block{html.Paragraph{Text: headline(each)}}, made.report(each)...),
		})
	}
	return html.Write(w, html.Document{
		Title: "Update preflight of the path " + p.route(Style{Symbols: true}), Decision: html.Decision{Level: p.level(), Word: decision, Text: text},
		Blocks: blocks, Source: sourceLine(p.ToolVersion, "one for each update"),
	})
}

// picture has the updates with their decisions, and what they are because of.
func (p Path) picture(table html.Table) html.Block {
	route := html.Route{Title: "Path, with the decision about each update", Table: table}
	for _, version := range p.Versions {
		route.Stops = append(route.Stops, orUnknown(version))
	}
	for _, each := range p.Updates {
		hop := html.Hop{Text: each.Target.UpdateKind, Marks: []html.Decision{{Level: each.level(), Word: each.standing()}}}
		if each.Verdict.Provisional {
			hop.Marks[0].Text = "provisional"
		}
		for _, f := range each.Findings {
			if f.Open() {
				hop.Marks = append(hop.Marks, html.Decision{Level: html.LevelOf(f), Word: page.Label(f), Text: f.Name})
			}
		}
		route.Hops = append(route.Hops, hop)
	}
	return route
}

// WriteHTML writes the targets as one HTML page: a matrix of targets and findings, then
// every finding once, with the targets that it is about.
func (t Targets) WriteHTML(w io.Writer) error {
	made := htmlPage{}
	count := 0
	for _, target := range t.Targets {
		if target.Verdict.Decision == verdict.Ready {
			count++
		}
	}
	document := html.Document{
		Title: fmt.Sprintf("Updates of the cluster from %s in channel %s", t.Cluster.Version, t.Channel),
		Decision: html.Decision{
			Level: html.Neutral, Word: fmt.Sprintf("Clear: %d of %s", count, words.Count(len(t.Targets), "update")),
			Text: "no gate, risk or health check blocks them; " + notAsked + ".",
		},
		Source: fmt.Sprintf("Written by oc preflight %s from the cluster at %s. The JSON document has all data.", t.ToolVersion, t.Time),
	}
	if matrix := t.matrix(); len(matrix.Rows) > 0 {
		document.Blocks = append(document.Blocks, html.Section{Title: "Targets", Blocks: []html.Block{matrix}})
	}
	document.Blocks = append(document.Blocks, made.shared(t)...)
	return html.Write(w, document)
}

// attention are the findings about targets that need attention.
func (t Targets) attention() []TargetFinding {
	return slices.DeleteFunc(slices.Clone(t.Findings), func(f TargetFinding) bool { return quiet(f.Finding) })
}

// matrix has the targets with the findings that need attention.
func (t Targets) matrix() html.Matrix {
	matrix := html.Matrix{Title: "Findings of each target"}
	rows := map[string][]int{} // a version may have several images
	for _, target := range t.Targets {
		rows[target.Version] = append(rows[target.Version], len(matrix.Rows))
		matrix.Rows = append(matrix.Rows, html.MatrixRow{Name: target.Version, Decision: standingOf(target), Results: map[int]html.Decision{}})
	}
	for i, f := range t.attention() {
		matrix.Findings = append(matrix.Findings, f.Name)
		for _, version := range f.Targets {
			for _, row := range rows[version] {
				matrix.Rows[row].Results[i] = html.Decision{Level: html.LevelOf(f.Finding), Word: page.Label(f.Finding)}
			}
		}
	}
	return matrix
}

// maxHTML bounds the texts of the findings of a page, in bytes.
const maxHTML = 1 << 20

// htmlPage counts what is on a page.
type htmlPage struct {
	// size is that of the texts of findings, in bytes.
	size int
	// omitted counts the findings for which there was no room.
	omitted int
	anchors html.Anchor
}

// report are the parts of a report below the decision.
func (h *htmlPage) report(r Report) []html.Block {
	var groups []html.Block
	var steps html.Steps
	for _, group := range groupsOf(r.Findings) {
		section := html.Section{Title: group.title}
		for _, f := range group.findings {
			if !h.fits(f) {
				continue
			}
			one := h.finding(f)
			section.Blocks = append(section.Blocks, one)
			if f.Open() {
				steps = append(steps, html.Step{Name: f.Name, Text: cmp.Or(f.Remediation, f.Message), To: one.Anchor})
			}
		}
		if len(section.Blocks) > 0 {
			groups = append(groups, section)
		}
	}
	blocks := append(todo(r, steps), r.about())
	blocks = append(blocks, groups...)
	blocks = append(blocks, h.left()...)
	for _, again := range r.askedAgain() {
		blocks = append(blocks, html.Names{Lead: "Asked again at " + r.from() + ", and not evaluated now (" + again.reason + "):", Names: again.names})
	}
	blocks = append(blocks, timeline(r.Findings)...)
	return append(blocks, folded(r.Findings)...)
}

// maxSteps bounds the list of what to do.
const maxSteps = 50

// todo is what to do, in the order of the findings.
func todo(r Report, steps html.Steps) []html.Block {
	section := html.Section{Title: "What to do"}
	if len(steps) > 0 {
		section.Blocks = append(section.Blocks, html.Paragraph{Text: r.toDo()}, steps[:min(len(steps), maxSteps)])
	}
	if more := len(steps) - maxSteps; more > 0 {
		section.Blocks = append(section.Blocks, html.Paragraph{Text: fmt.Sprintf("And %d more, below.", more)})
	}
	if len(r.Expected.Missing) > 0 {
		section.Blocks = append(section.Blocks, html.Names{Lead: "Checks that have not reported:", Names: r.Expected.Missing})
	}
	if len(r.Actions) > 0 && len(r.Acceptable()) > 0 {
		section.Blocks = append(section.Blocks, html.Paragraph{Text: "Or accept those that may be accepted:"})
	}
	for _, action := range r.Actions {
		section.Blocks = append(section.Blocks, html.Command{Text: action.Command})
	}
	if len(section.Blocks) == 0 {
		return nil
	}
	return []html.Block{section}
}

// about is what the report is about.
func (r Report) about() html.Block {
	table := html.Table{Caption: "About this report"}
	add := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			table.Rows = append(table.Rows, []string{name, value})
		}
	}
	add("Findings", cmp.Or(tally(r.Findings), "none"))
	add("Update", strings.TrimSpace(r.from()+" to "+orUnknown(r.Target.Version)+" "+r.Target.UpdateKind))
	add("Release", r.Target.Image)
	if r.Run.Phase != PhaseRunning {
		add("Signature", signature(r.Target))
		add("CVO", behavior(r.CVO))
	}
	add("Checks", fmt.Sprintf("%d of %d reported", r.Expected.Reported, r.Expected.Checks))
	add("Cluster", r.Cluster.ID)
	add("Run", cmp.Or(r.Run.ID, "not recorded")+", "+r.Run.Phase+" "+cmp.Or(r.Run.CompletionTime, r.Run.StartTime))
	if r.Holds() {
		add("Holds until", r.Verdict.ValidUntil)
	} else {
		add("Outdated", strings.Join(limited(r.Standing.Ended, 10), "; "))
	}
	if len(r.Created) > 0 {
		add("Created", kinds(r.Created))
	}
	if r.Removal != nil {
		add("Not deleted", strings.Join(limited(objectNames(r.Removal.Left), 20), ", "))
	}
	for _, each := range r.Switches {
		add("Switch "+strings.TrimSuffix(each.Name+"="+each.Mode, "="), each.Limit+"; without the controller, "+each.WithoutController)
	}
	return table
}

// fits reports whether there is room for a finding, and counts it.
func (h *htmlPage) fits(f finding.Finding) bool {
	size := 512 + len(f.Name) + len(f.Message) + len(f.Remediation)
	for _, action := range f.Actions {
		size += len(action.Command)
	}
	for name, fact := range f.Evidence {
		size += len(name) + len(fact)
	}
	if h.size+size > maxHTML {
		h.omitted++
		return false
	}
	h.size += size
	return true
}

// left states how many findings had no room.
func (h *htmlPage) left() []html.Block {
	if h.omitted == 0 {
		return nil
	}
	text := fmt.Sprintf("Left out here, since the page is bounded: %s. The JSON document has all.", words.Count(h.omitted, "finding"))
	h.omitted = 0
	return []html.Block{html.Paragraph{Text: text}}
}

// maxFacts bounds the evidence, the commands and the objects of a finding.
const maxFacts = 20

// finding is a finding in full.
func (h *htmlPage) finding(f finding.Finding) html.Section {
	h.anchors++
	section := html.Section{Title: f.Name, Mark: html.Decision{Level: html.LevelOf(f), Word: page.Outcome(f)}, Anchor: h.anchors}
	add := func(block html.Block) { section.Blocks = append(section.Blocks, block) }
	if f.Message != "" {
		add(html.Paragraph{Text: f.Message})
	}
	section.Blocks = append(section.Blocks, html.Remedy(f)...)
	if len(f.BlockedTargets) > 0 && f.Open() {
		add(html.Names{Lead: "Targets:", Names: f.BlockedTargets})
	}
	if f.URL != "" {
		add(html.Names{Lead: "See:", Names: []string{f.URL}})
	}
	if len(f.Objects) > 0 {
		add(html.Names{Lead: "About:", Names: limited(objectNames(f.Objects), maxFacts)})
	}
	if f.Job != nil && f.Job.Name != "" {
		add(html.Names{Lead: "Job:", Names: []string{f.Job.Namespace + "/" + f.Job.Name}})
	}
	if len(f.Evidence) > 0 {
		add(evidence(f.Evidence))
	}
	return section
}

// evidence are the facts that support a finding.
func evidence(facts map[string]string) html.Block {
	table := html.Table{Caption: "Evidence"}
	names := slices.Sorted(maps.Keys(facts))
	for _, name := range names[:min(len(names), maxFacts)] {
		table.Rows = append(table.Rows, []string{name, facts[name]})
	}
	if more := len(names) - len(table.Rows); more > 0 {
		table.Rows = append(table.Rows, []string{"More", fmt.Sprintf("%d more facts are in the JSON document", more)})
	}
	return table
}

// folded are the names of what passed or does not apply.
func folded(findings []finding.Finding) []html.Block {
	passed, skipped := quietNames(findings)
	if len(passed)+len(skipped) == 0 {
		return nil
	}
	fold := html.Fold{Summary: fmt.Sprintf("%d passed, %d do not apply", len(passed), len(skipped))}
	if len(passed) > 0 {
		fold.Blocks = append(fold.Blocks, html.Names{Lead: "Passed:", Names: passed})
	}
	if len(skipped) > 0 {
		fold.Blocks = append(fold.Blocks, html.Names{Lead: "Do not apply:", Names: skipped})
	}
	return []html.Block{html.Section{Title: "Passed", Blocks: []html.Block{fold}}}
}

// shared are the findings of targets, each once.
func (h *htmlPage) shared(t Targets) []html.Block {
	var blocks []html.Block
	var all []finding.Finding
	for i, f := range t.attention() {
		if !h.fits(f.Finding) {
			continue
		}
		f.BlockedTargets = nil // they are among the targets
		one := h.finding(f.Finding)
		one.Title = fmt.Sprintf("%d. %s", i+1, f.Name)
		one.Blocks = append(one.Blocks, html.Names{Lead: "Targets:", Names: f.Targets})
		blocks = append(blocks, one)
	}
	for _, f := range t.Findings {
		all = append(all, f.Finding)
	}
	if len(blocks) > 0 {
		blocks = []html.Block{html.Section{Title: "Findings", Blocks: blocks}}
	}
	return append(append(blocks, h.left()...), folded(all)...)
}

// level is the shape of the decision of a report.
func (r Report) level() html.Level {
	if !r.Holds() || r.Run.Phase == PhaseRunning && r.Verdict.Decision != verdict.Blocked {
		return html.Unclear
	}
	return levelOf(r.Verdict.Decision)
}

// level is the shape of the decision of a path.
func (p Path) level() html.Level {
	if !p.Holds() {
		return html.Unclear
	}
	return levelOf(p.Decision)
}

func levelOf(decision verdict.Decision) html.Level {
	switch decision {
	case verdict.Ready:
		return html.Good
	case verdict.Blocked:
		return html.Bad
	case verdict.NothingKnown:
		return html.Caution
	case verdict.Undecided:
	}
	return html.Unclear
}
