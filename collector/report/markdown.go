package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	gfm "github.com/openshift/update-preflight/collector/document/markdown"
	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/words"
)

// maxMarkdown bounds the document, in bytes: a comment on GitHub has at most 65 536
// characters.
const maxMarkdown = 60_000

// WriteMarkdown writes the report for change tickets and pull requests (GitHub Flavored
// Markdown): the verdict and what to do first, passes folded away. Text of the report is
// data: it makes no links, mentions or HTML. A report that is too large is cut after the
// findings that block, and states so.
func (r Report) WriteMarkdown(w io.Writer) error {
	var m markdown
	r.mark(&m)
	_, err := m.WriteTo(w)
	return err
}

// mark writes the report into a document.
func (r Report) mark(m *markdown) {
	r.markHead(m)
	r.markAskedAgain(m)
	for _, group := range groupsOf(r.Findings) {
		m.section(group.title, group.findings)
	}
	r.markQuiet(m)
	if m.omitted > 0 {
		m.Paragraph(fmt.Sprintf("Left out here, since the document is bounded: %s. `-o json` has all.", words.Count(m.omitted, "finding")))
		m.omitted = 0
	}
}

// markAskedAgain lists the checks of a later update that were not evaluated.
func (r Report) markAskedAgain(m *markdown) {
	for _, group := range r.askedAgain() {
		m.Paragraph("Asked again at " + gfm.Code(r.from()) + ", and not evaluated now: " + gfm.Codes(group.names, 50) + " (" + gfm.Text(group.reason) + ")")
	}
}

// markHead writes the verdict, what to do, and what the report is about.
func (r Report) markHead(m *markdown) {
	decision, rest, _ := strings.Cut(headline(r), ": ")
	m.Paragraph("**" + gfm.Text(decision) + "**: " + gfm.Text(rest) + " Findings: " + gfm.Text(cmp.Or(tally(r.Findings), "none")) + ".")
	if open := append(slices.Clone(r.Verdict.Blocking), r.Verdict.Undecided...); len(open) > 0 {
		m.Paragraph(r.toDo() + " " + gfm.Codes(open, 20))
	}
	for _, action := range r.Actions {
		m.Command(action.Command)
	}
	m.Line("| | |")
	m.Line("|---|---|")
	m.Row("Update", gfm.Code(r.from())+" to "+gfm.Code(r.Target.Version)+" "+gfm.Text(r.Target.UpdateKind))
	m.Row("Release", gfm.Code(r.Target.Image))
	if r.Run.Phase != PhaseRunning {
		m.Row("Signature", gfm.Text(signature(r.Target)))
		m.Row("CVO", gfm.Text(behavior(r.CVO)))
	}
	if r.Duration != nil {
		m.Row("Duration", gfm.Text(r.Duration.String()))
	}
	m.Row("Checks", fmt.Sprintf("%d of %d reported", r.Expected.Reported, r.Expected.Checks))
	m.Row("Run", gfm.Code(cmp.Or(r.Run.ID, "not recorded"))+" "+gfm.Text(r.Run.Phase+" "+cmp.Or(r.Run.CompletionTime, r.Run.StartTime)))
	switch {
	case !r.Holds():
		m.Row("Outdated", gfm.Text(strings.Join(limited(r.Standing.Ended, 10), "; ")))
	case r.Verdict.ValidUntil != "":
		m.Row("Holds until", gfm.Text(r.Verdict.ValidUntil))
	}
	m.Line("")
}

// markQuiet writes the names of what passed or does not apply, folded.
func (r Report) markQuiet(m *markdown) {
	passed, skipped := quietNames(r.Findings)
	if len(passed)+len(skipped) == 0 {
		return
	}
	m.Line(fmt.Sprintf("<details><summary>%d passed, %d do not apply</summary>\n", len(passed), len(skipped)))
	if len(passed) > 0 {
		m.Paragraph("Passed: " + gfm.Codes(passed, 200))
	}
	if len(skipped) > 0 {
		m.Paragraph("Do not apply: " + gfm.Codes(skipped, 200))
	}
	m.Line("</details>")
}

// markdown is a document that is being written.
type markdown struct {
	gfm.Document

	// omitted counts the findings for which there was no room.
	omitted int
}

// section writes findings in full, as long as there is room.
func (m *markdown) section(title string, findings []finding.Finding) {
	if len(findings) == 0 {
		return
	}
	m.Line("## " + title + "\n")
	for _, f := range findings {
		var one markdown
		one.finding(f)
		if m.Len()+one.Len() > maxMarkdown {
			m.omitted++
			continue
		}
		m.Append(&one.Document)
	}
}

func (m *markdown) finding(f finding.Finding) {
	m.Line("### " + gfm.Code(f.Name) + " " + gfm.Text(page.Outcome(f)) + "\n")
	m.Prose("", f.Message)
	if f.Bypass == nil {
		m.Prose("**Fix:** ", f.Remediation)
		for _, action := range f.Actions {
			m.Command(action.Command)
		}
	}
	if f.URL != "" {
		m.Paragraph("See " + gfm.Code(f.URL))
	}
	objects := objectNames(f.Objects)
	if len(objects) > 0 {
		m.Paragraph("About " + gfm.Codes(objects, 10))
	}
}
