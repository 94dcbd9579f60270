package reportview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// Targets is the document of the targets.
type Targets struct{ report.Targets }

const (
	// mostRows limits the table by default, briefRows in a brief view, and briefFindings the
	// findings there: all fits 24 lines.
	mostRows, briefRows, briefFindings = 10, 5, 2
	notAsked                           = "the signature and the checks of the release were not evaluated"
)

// Document lists the decisions in one sentence, a table with the clear targets first, then every finding about
// them once, with its targets, then the next step. A single target is shown as a report.
func (t Targets) Document(view document.View) document.Document {
	made := document.Document{
		Title: "Updates of the cluster from " + t.origin(),
		Source: fmt.Sprintf("Written by oc preflight %s from the cluster at %s. "+
			"The JSON document has all data.", t.ToolVersion, t.Time),
		Ticket: document.Ticket{By: by(t.ToolVersion)}, Cluster: t.Cluster.ID, Time: t.Time,
	}
	if len(t.Targets.Targets) == 1 {
		target := t.Targets.Targets[0]
		made.Blocks, made.Ticket.Verdict = t.candidate(view),
			fmt.Sprintf("Decision of gates, risks and health on %s: %s", target.Version, standingOf(target))
	} else {
		made.Blocks, made.Ticket.Verdict = t.all(view), t.decisions()
	}
	for _, action := range t.Actions {
		switch {
		case action.Type == finding.ActionStart:
			made.Blocks = append(made.Blocks, document.Command{Lead: "If Ready:", Text: action.Command})
		case len(t.Targets.Targets) == 1:
			made.Blocks = append(made.Blocks, document.Command{Lead: "Next:", Text: action.Command})
		default: // the target to continue with may have no finding
			made.Ticket.Next = "$ " + action.Command
		}
	}
	return made
}

// decisions counts the targets by their decisions, and names the one to begin with, in one line that stands alone.
func (t Targets) decisions() string {
	text := fmt.Sprintf("Updates from %s: %s", t.Cluster.Version, t.counts())
	if sorted := t.ByUrgency(); len(sorted) > 0 {
		text += fmt.Sprintf("; first %s: %s", sorted[0].Version, standingOf(sorted[0]))
	}
	return text
}

func (t Targets) counts() string {
	counts := map[verdict.Decision]int{}
	for _, target := range t.Targets.Targets {
		counts[target.Verdict.Decision]++
	}
	return fmt.Sprintf("%d Clear, %d Blocked, %d Undecided", counts[verdict.Ready], counts[verdict.Blocked], counts[verdict.Undecided])
}

// Names is update/VERSION for every target, in the order of the text.
func (t Targets) Names() ([]string, error) {
	var names []string
	for _, target := range t.ByUrgency() {
		names = append(names, format.UpdateName+"/"+target.Version)
	}
	return names, nil
}

// listed are the targets of the table, the most urgent first.
func (t Targets) listed(view document.View) []report.Candidate {
	rows, most := t.ByUrgency(), mostRows
	if view.Brief {
		most = briefRows
	}
	return rows[:view.Entries(len(rows), most)]
}

// Wide is the targets as a table with all columns and without the findings.
func (t Targets) Wide(view document.View) document.Document {
	rows := t.listed(view)
	table := document.Table{
		Columns: []string{"Version", "Kind", "Recommended", "Decision", "Duration", "Causes", "Image", "URL"}, Result: "Decision",
		Whole: true, More: len(t.Targets.Targets) - len(rows),
	}
	for _, target := range rows {
		expected := ""
		if target.Duration != nil {
			expected = target.Duration.String()
		}
		table.Rows = append(table.Rows, []string{
			target.Version, target.UpdateKind, target.Recommended, standingOf(target), expected, strings.Join(causes(target), ","), target.Image,
			target.URL,
		})
	}
	return document.Document{Blocks: []document.Block{table}}
}

func (t Targets) findings() []finding.Finding {
	var all []finding.Finding
	for _, f := range t.Findings {
		all = append(all, f.Finding)
	}
	return all
}

func (t Targets) candidate(view document.View) []document.Block {
	target := t.Targets.Targets[0]
	about := Report{Report: report.Report{Target: report.Target{Version: target.Version}, Verdict: target.Verdict, Findings: t.findings()}}
	word, meaning := decisionOf(about.Report)
	if target.Verdict.Decision == verdict.Ready {
		word, meaning = "Clear", fmt.Sprintf("no gate, risk or health check blocks the update to %s; %s.", target.Version, notAsked)
	}
	blocks := []document.Block{document.Verdict{Mark: document.Mark{Level: levelOf(target.Verdict.Decision), Word: word}, Meaning: meaning}}
	if !view.Brief {
		blocks = append(blocks, t.candidateFacts(target))
	}
	blocks = append(blocks, document.Items{Entries: itemsOf(about.Findings)})
	return append(blocks, quietOf(about.Findings)...)
}

func (t Targets) candidateFacts(target report.Candidate) document.Table {
	table := document.Table{Title: "About this target"}
	table.Row("Target", target.Version)
	table.Row("Image", target.Image)
	table.Row("Update", strings.TrimPrefix(target.UpdateKind+", from ", ", ")+t.Cluster.Version)
	table.Row("Listed as", listing(target))
	table.Row(decider(target.CVO), behavior(target.CVO))
	if target.Duration != nil {
		table.Row("Duration", target.Duration.String())
	}
	table.Row("Checks", fmt.Sprintf("%d of %d reported; %s", target.Expected.Reported, target.Expected.Checks, notAsked))
	table.Row("Findings", countsOf(t.findings()))
	return table
}

// standingOf is the decision about a target. Ready means that a run may find more.
func standingOf(target report.Candidate) string {
	if target.Verdict.Decision == verdict.Ready {
		return "Clear"
	}
	return string(target.Verdict.Decision)
}

func listing(target report.Candidate) string {
	switch {
	case target.Conditional:
		return "conditional update, Recommended=" + target.Recommended
	case target.Available:
		return "available update, Recommended=" + target.Recommended
	}
	return "no update that the cluster knows"
}

func (t Targets) origin() string {
	if t.Channel == "" {
		return t.Cluster.Version + ", without a channel"
	}
	return t.Cluster.Version + " in channel " + t.Channel
}

// all has one row for each target. Causes that all targets share are named once, below the table.
func (t Targets) all(view document.View) []document.Block {
	decisions := document.Verdict{Meaning: fmt.Sprintf("%s from %s.", words.Count(len(t.Targets.Targets), "update"), t.origin())}
	decisions.Level, decisions.Word = document.Neutral, t.counts()
	meaning := document.Paragraph{Text: "Clear means that no gate, risk or health check blocks; the signatures and the checks of the " +
		"releases were not evaluated."}
	if view.Brief {
		meaning.Text = "Clear: no gate, risk or health check blocks; the releases were not evaluated."
	}
	rows := t.listed(view)
	findings := t.shared(view, rows)
	blocks := []document.Block{decisions, meaning}
	if common := commonCauses(t.Targets.Targets); view.Full && len(rows) > 0 {
		blocks = append(blocks, t.matrix(findings, t.table(rows, common)))
	} else {
		blocks = append(blocks, t.table(rows, common))
	}
	blocks = append(blocks, t.durations(), t.common())
	if !view.Brief && slices.ContainsFunc(findings,
		func(f shared) bool { return strings.Contains(f.Message+f.Remediation, report.AnyTarget) }) {
		blocks = append(blocks, document.Paragraph{Text: "Below, " + report.AnyTarget +
			" stands for each of the targets that a finding is about."})
	}
	blocks = append(blocks, t.items(view, findings))
	if view.Full {
		blocks = append(blocks, quietOf(t.findings())...)
	}
	return blocks
}

func (t Targets) table(rows []report.Candidate, common []string) document.Table {
	table := document.Table{
		Title: "Targets", Columns: []string{"Version", "Kind", "Recommended", "Decision", "Causes"}, Result: "Decision",
		More: len(t.Targets.Targets) - len(rows),
	}
	for _, target := range rows {
		table.Rows = append(table.Rows, []string{
			target.Version, target.UpdateKind, target.Recommended, standingOf(target),
			describeCauses(target, common),
		})
	}
	return table
}

// matrix has the targets with the findings that need attention.
func (t Targets) matrix(findings []shared, table document.Table) document.Picture {
	matrix := picture.Matrix{Title: "Findings of each target", Table: table}
	rows := map[string][]int{} // a version may have several images
	for _, target := range t.Targets.Targets {
		rows[target.Version] = append(rows[target.Version], len(matrix.Rows))
		matrix.Rows = append(matrix.Rows, picture.MatrixRow{Name: target.Version, Decision: standingOf(target), Results: map[int]document.Mark{}})
	}
	for i, f := range findings {
		matrix.Findings = append(matrix.Findings, f.Name)
		for _, version := range f.Targets {
			for _, row := range rows[version] {
				matrix.Rows[row].Results[i] = findingview.Mark(f.Finding)
			}
		}
	}
	return matrix.Picture()
}

// durations has the duration of each kind of update, in the order of the targets.
func (t Targets) durations() document.Table {
	table := document.Table{Title: "Durations"}
	has := map[string]bool{}
	for _, target := range t.Targets.Targets {
		if target.Duration != nil && !has[target.UpdateKind] {
			has[target.UpdateKind] = true
			table.Row("Duration", target.UpdateKind+": "+target.Duration.String())
		}
	}
	return table
}

func (t Targets) common() document.List {
	common := commonCauses(t.Targets.Targets)
	return document.List{Lead: "* " + everyTarget + ":", Entries: common, Names: true}
}

// items are findings with the targets that they are about; in a brief view the first ones.
func (t Targets) items(view document.View, findings []shared) document.Items {
	var items document.Items
	plain := make([]finding.Finding, 0, len(findings))
	for _, each := range findings {
		plain = append(plain, each.Finding)
	}
	leading, beneath := repeatedOf(plain)
	findings = slices.DeleteFunc(slices.Clone(findings), func(s shared) bool {
		return !slices.ContainsFunc(leading, func(f finding.Finding) bool { return f.Name == s.Name })
	})
	for i, each := range findings {
		if view.Brief && i == briefFindings {
			items.More = len(findings) - i
			break
		}
		item := findingview.Item(each.Finding)
		item.Number = i + 1
		about := scope(each.Targets, t.Targets.Targets)
		if view.Full {
			item.Group, about = "Findings", limited(each.Targets, mostNamesOnPage)
		}
		addBeneath(&item, each.Finding, beneath)
		if len(each.Targets) > 0 {
			item.Facts = append([]document.Fact{{Lead: "Targets:", Text: about, Brief: true}}, item.Facts...)
		}
		if each.varies {
			item.Fact("Note:", "The text differs between targets; explain one target to see its own.")
		}
		items.Entries = append(items.Entries, item)
	}
	return items
}

func causes(target report.Candidate) []string {
	names := append(slices.Clone(target.Verdict.Blocking), target.Verdict.Undecided...)
	for _, name := range target.Verdict.Accepted {
		names = append(names, name+" (accepted)")
	}
	return names
}

func commonCauses(targets []report.Candidate) []string {
	if len(targets) == 0 {
		return nil
	}
	count := map[string]int{}
	for _, target := range targets {
		for _, name := range causes(target) {
			count[name]++
		}
	}
	return slices.DeleteFunc(causes(targets[0]), func(name string) bool { return count[name] != len(targets) })
}

// describeCauses lists the causes of one target, with a star for the common ones.
func describeCauses(target report.Candidate, common []string) string {
	var names []string
	if len(common) > 0 {
		names = append(names, "*")
	}
	for _, name := range causes(target) {
		if !slices.Contains(common, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// shared returns the findings that need attention about one of the targets or about the list. Findings with the
// same name and label are merged, except on a page: the message about the newest target is kept.
func (t Targets) shared(view document.View, rows []report.Candidate) []shared {
	listed, place := map[string]bool{}, map[string]int{}
	for _, row := range rows {
		listed[row.Version] = true
	}
	for i, target := range slices.Backward(t.Targets.Targets) {
		place[target.Version] = i
	}
	type group struct {
		name, label string
		number      int
	}
	var order []group
	members := map[group][]report.TargetFinding{}
	for i, f := range t.Findings {
		elsewhere := len(f.Targets) > 0 && !slices.ContainsFunc(f.Targets, func(version string) bool { return listed[version] })
		if quiet(f.Finding) || elsewhere {
			continue
		}
		key := group{name: f.Name, label: findingview.Label(f.Finding)}
		if view.Full {
			key.number = i
		}
		if members[key] == nil {
			order = append(order, key)
		}
		members[key] = append(members[key], f)
	}
	merged := make([]shared, 0, len(order))
	for _, key := range order {
		merged = append(merged, merge(members[key], place))
	}
	return merged
}

type shared struct {
	report.TargetFinding

	varies bool
}

// merge is the finding about the newest target, for the targets of all.
func merge(findings []report.TargetFinding, place map[string]int) shared {
	newest := func(f report.TargetFinding) int {
		least := len(place)
		for _, version := range f.Targets {
			least = min(least, place[version])
		}
		return least
	}
	merged := shared{TargetFinding: findings[0], varies: len(findings) > 1}
	var all []string
	for _, f := range findings {
		all = append(all, f.Targets...)
		if newest(f) < newest(merged.TargetFinding) {
			merged.TargetFinding = f
		}
	}
	merged.Targets = all
	return merged
}
