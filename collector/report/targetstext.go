package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openshift/update-preflight/collector/finding"
	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// WriteText is WriteStyled for a file.
func (t Targets) WriteText(w io.Writer) error { return t.WriteStyled(w, Style{}) }

// WriteStyled writes the targets as text: the decisions in one sentence, a table, those that
// are clear first, then every finding about them once, with the targets that it is about, then
// the next step. Without Style.Limit, the table has ten targets; on a terminal without details
// it and the findings are shortened so that all fits 24 lines. One target alone is written as a
// Report is.
func (t Targets) WriteStyled(w io.Writer, style Style) error {
	p := page.New(style)
	if len(t.Targets) == 1 {
		writeCandidate(p, t)
	} else {
		rows := t.listed(style)
		writeTable(p, t, rows)
		writeShared(p, t, about(t.Findings, rows))
	}
	for _, action := range t.Actions {
		p.Command("Next: ", action.Command)
	}
	_, err := p.WriteTo(w)
	return err
}

// mostRows limits the table without Style.Limit, briefRows on a terminal without details, and
// briefFindings the findings there.
const mostRows, briefRows, briefFindings = 10, 5, 2

// listed are the targets of a table in a style, the most urgent first.
func (t Targets) listed(style Style) []Candidate {
	rows, most := byUrgency(t.Targets), mostRows
	if style.Brief() {
		most = briefRows
	}
	return rows[:style.Entries(len(rows), most)]
}

// writeMore writes how many entries are left out, and what lists them.
func writeMore(p *page.Page, more int) {
	if more > 0 {
		p.Line("%s", p.Style().More(more))
	}
}

// about are the findings about one of the targets or about the list.
func about(findings []TargetFinding, rows []Candidate) []TargetFinding {
	listed := map[string]bool{}
	for _, row := range rows {
		listed[row.Version] = true
	}
	return slices.DeleteFunc(slices.Clone(findings), func(f TargetFinding) bool {
		return len(f.Targets) > 0 && !slices.ContainsFunc(f.Targets, func(version string) bool { return listed[version] })
	})
}

// newTable aligns columns that are separated by tabs.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// notAsked is what the verdict on a target leaves out.
const notAsked = "the signature and the checks of the release were not evaluated"

// writeCandidate writes everything about one target.
func writeCandidate(p *page.Page, targets Targets) {
	target := targets.Targets[0]
	about := Report{Target: Target{Version: target.Version}, Verdict: target.Verdict}
	for _, f := range targets.Findings {
		about.Findings = append(about.Findings, f.Finding)
	}
	if target.Verdict.Decision == verdict.Ready {
		p.Paragraphs(fmt.Sprintf("Clear: no gate, risk or health check blocks the update to %s; %s.", cell(target.Version), notAsked))
	} else {
		p.Paragraphs(headline(about))
	}
	p.Line("")
	if p.Style().Brief() {
		writeItems(p, about.Findings)
		writeCounted(p, about.Findings)
		return
	}
	writeCandidateFacts(p, targets, about.Findings)
	for _, f := range about.Findings {
		if !quiet(f) {
			p.Finding(f)
		}
	}
	writeQuiet(p, about.Findings)
	p.Line("Decision of gates, risks and health: %s", standingOf(target))
}

// writeCandidateFacts writes the subject and the basis of the decision.
func writeCandidateFacts(p *page.Page, targets Targets, findings []finding.Finding) {
	target := targets.Targets[0]
	p.Row("Target", target.Version)
	p.Row("Image", target.Image)
	p.Row("Update", strings.TrimPrefix(target.UpdateKind+", from ", ", ")+targets.Cluster.Version)
	p.Row("Listed as", listing(target))
	p.Row("CVO", behavior(target.CVO))
	if target.Duration != nil {
		p.Row("Duration", target.Duration.String())
	}
	p.Row("Checks", fmt.Sprintf("%d of %d reported; %s", target.Expected.Reported, target.Expected.Checks, notAsked))
	p.Row("Findings", tally(findings))
	p.Line("")
}

// standingOf is the decision about a target. Ready means that a run may find more.
func standingOf(target Candidate) string {
	if target.Verdict.Decision == verdict.Ready {
		return "Clear"
	}
	return string(target.Verdict.Decision)
}

func listing(target Candidate) string {
	lists := "available update"
	if target.Conditional {
		lists = "conditional update"
	}
	return lists + ", Recommended=" + target.Recommended
}

// writeTable writes one row for each target. Causes that all targets share are
// written once, below the table.
func writeTable(p *page.Page, targets Targets, listed []Candidate) {
	counts := map[verdict.Decision]int{}
	for _, target := range targets.Targets {
		counts[target.Verdict.Decision]++
	}
	common := commonCauses(targets.Targets)
	var rows bytes.Buffer
	table := newTable(&rows)
	fmt.Fprintln(table, "VERSION\tKIND\tRECOMMENDED\tDECISION\tCAUSES")
	for _, target := range listed {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", cell(target.Version), cell(target.UpdateKind), cell(target.Recommended),
			p.Style().Symbol(standingOf(target)), cell(describeCauses(target, common)))
	}
	_ = table.Flush() // to a buffer
	p.Paragraphs(fmt.Sprintf("%d Clear, %d Blocked, %d Undecided: %s from %s in channel %s.",
		counts[verdict.Ready], counts[verdict.Blocked], counts[verdict.Undecided], words.Count(len(targets.Targets), "update"), targets.Cluster.Version, targets.Channel))
	if p.Style().Brief() {
		p.Paragraphs("Clear: no gate, risk or health check blocks; the releases were not evaluated.")
	} else {
		p.Paragraphs("Clear means that no gate, risk or health check blocks; the signatures and the checks of the releases were not evaluated.")
		p.Line("")
	}
	if len(listed) > 0 {
		for row := range strings.Lines(rows.String()) {
			p.Line("%s", p.Style().Clip(strings.TrimRight(row, "\n")))
		}
		writeMore(p, len(targets.Targets)-len(listed))
		p.Line("")
	}
	writeDurations(p, targets.Targets)
	if len(common) > 0 {
		p.Line("* %s: %s\n", everyTarget, words.Line(strings.Join(common, ", "), maxCommand))
	}
}

// writeDurations writes the duration of each kind of update, in the order of the targets.
func writeDurations(p *page.Page, targets []Candidate) {
	written := map[string]bool{}
	for _, target := range targets {
		if target.Duration == nil || written[target.UpdateKind] {
			continue
		}
		written[target.UpdateKind] = true
		p.Row("Duration", target.UpdateKind+": "+target.Duration.String())
	}
	if len(written) > 0 {
		p.Line("")
	}
}

// everyTarget stands for all targets.
const everyTarget = "every target"

// cell keeps text in its cell.
func cell(text string) string {
	return cmp.Or(words.Line(text, 1<<10), "-")
}

// causes are the names that led to the decision, and what was accepted.
func causes(target Candidate) []string {
	names := append(slices.Clone(target.Verdict.Blocking), target.Verdict.Undecided...)
	for _, name := range target.Verdict.Accepted {
		names = append(names, name+" (accepted)")
	}
	return names
}

// commonCauses are those that all targets share.
func commonCauses(targets []Candidate) []string {
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

// describeCauses lists the causes of one target, with a star for the common
// ones.
func describeCauses(target Candidate, common []string) string {
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

// writeShared writes every finding that needs attention once. Findings of the same
// name and label are one: of their messages, that about the newest target.
func writeShared(p *page.Page, targets Targets, findings []TargetFinding) {
	type group struct{ name, label string }
	var order []group
	members := map[group][]TargetFinding{}
	for _, f := range findings {
		if quiet(f.Finding) {
			continue
		}
		key := group{f.Name, page.Label(f.Finding)}
		if members[key] == nil {
			order = append(order, key)
		}
		members[key] = append(members[key], f)
	}
	place := map[string]int{}
	for i, target := range slices.Backward(targets.Targets) {
		place[target.Version] = i
	}
	var merged []shared
	general := false
	for _, key := range order {
		one := merge(members[key], place)
		merged = append(merged, one)
		general = general || strings.Contains(one.Message+one.Remediation, AnyTarget)
	}
	if p.Style().Brief() {
		writeBrief(p, targets.Targets, merged)
		return
	}
	if general {
		p.Line("Below, %s stands for each of the targets that a finding is about.\n", AnyTarget)
	}
	for _, one := range merged {
		writeGroup(p, targets.Targets, one)
	}
}

// writeBrief writes the first findings, each with its targets and its first command, and
// counts the others.
func writeBrief(p *page.Page, targets []Candidate, findings []shared) {
	for _, one := range findings[:min(len(findings), briefFindings)] {
		p.Item(0, []string{one.Name}, one.Finding)
		if len(one.Targets) > 0 {
			p.Line("    %s", words.Line("Targets: "+scope(one.Targets, targets), maxCommand))
		}
	}
	if more := len(findings) - briefFindings; more > 0 {
		p.Line("%s", strings.TrimSuffix(fmt.Sprintf("... and %d more findings (%s)", more, p.Style().Hint), " ()"))
	}
	if len(findings) > 0 {
		p.Line("")
	}
}

// shared is one finding that stands for several.
type shared struct {
	TargetFinding

	// varies is true when the texts differ.
	varies bool
}

// merge is the finding about the newest target, for the targets of all.
func merge(findings []TargetFinding, place map[string]int) shared {
	newest := func(f TargetFinding) int {
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

func writeGroup(p *page.Page, targets []Candidate, f shared) {
	p.Line("%-8s %s", page.Label(f.Finding), words.Line(fmt.Sprintf("%s (%s)", f.Name, f.Reason), maxCommand))
	if len(f.Targets) > 0 {
		p.Paragraph("Targets: ", scope(f.Targets, targets))
	}
	p.Details(f.Finding)
	if f.varies {
		p.Paragraph("", "The text differs between targets; explain one target to see its own.")
	}
	p.Line("")
}

// scope lists the targets that a finding is about, by minor version where it is
// about all targets of one.
func scope(about []string, all []Candidate) string {
	concerned := map[string]bool{}
	for _, version := range about {
		concerned[version] = true
	}
	var streams []string
	in, out := map[string][]string{}, map[string]int{}
	for _, target := range all {
		stream := streamOf(target.Version)
		if in[stream] == nil && out[stream] == 0 {
			streams = append(streams, stream)
		}
		if concerned[target.Version] {
			in[stream] = append(in[stream], target.Version)
		} else {
			out[stream]++
		}
	}
	return wordScope(streams, in, out)
}

func wordScope(streams []string, in map[string][]string, out map[string]int) string {
	var yes, no []string
	partly := false
	for _, stream := range streams {
		switch {
		case len(in[stream]) == 0:
			no = append(no, stream)
		case out[stream] == 0 && len(in[stream]) > 1:
			yes = append(yes, stream)
		default:
			partly = partly || out[stream] > 0
			yes = append(yes, some(in[stream])...)
		}
	}
	switch {
	case len(no) == 0 && !partly:
		return everyTarget
	case len(no) == 0:
		return strings.Join(yes, ", ")
	}
	return fmt.Sprintf("%s; not %s", strings.Join(yes, ", "), strings.Join(no, ", "))
}

// some are the first of many versions, and a count of the others.
func some(versions []string) []string {
	const most = 6
	if len(versions) <= most {
		return versions
	}
	return append(slices.Clone(versions[:most-1]), fmt.Sprintf("and %d more of %s", len(versions)-most+1, streamOf(versions[0])))
}

// streamOf is the minor version, as in 4.19.z; text that is no version is kept.
func streamOf(version string) string {
	major, rest, ok := strings.Cut(version, ".")
	minor, _, more := strings.Cut(rest, ".")
	if !ok || !more {
		return version
	}
	return major + "." + minor + ".z"
}
