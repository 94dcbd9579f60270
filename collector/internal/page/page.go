// Package page answers: how is a report laid out as text for people?
//
// A page only lays out: texts of findings are printable when they are built, and
// those of a stored report when it is read.
package page

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// indent sets what is about a finding under its name.
	indent = "         "
	// maxLine bounds text that must be on one line, in bytes.
	maxLine = 4 << 10
	// width is that of lists of names.
	width = 90
)

// Page is text that is written at once. Its zero value is empty, in the zero style.
type Page struct {
	buffer bytes.Buffer
	style  Style
}

// WriteTo implements io.WriterTo.
func (p *Page) WriteTo(w io.Writer) (int64, error) { return p.buffer.WriteTo(w) }

// String implements fmt.Stringer.
func (p *Page) String() string { return p.buffer.String() }

// Line writes one line.
func (p *Page) Line(format string, args ...any) {
	fmt.Fprintf(&p.buffer, "%s\n", words.Printable(fmt.Sprintf(format, args...)))
}

// Row writes a name and its value, of one or more lines.
func (p *Page) Row(name, value string) {
	const indent = "           "
	lead := fmt.Sprintf("%-10s ", name)
	if p.style.Width > 0 {
		limit := p.style.Columns()
		p.Line("%s", hang(lead, broken(value, limit-len(indent)), indent, limit))
		return
	}
	p.Line("%s%s", lead, strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n"+indent))
}

// Paragraph writes text under a finding, after a lead; nothing for an empty text.
func (p *Page) Paragraph(lead, text string) {
	if text = strings.TrimSpace(text); text != "" {
		p.Line("%s%s%s", indent, lead, strings.ReplaceAll(text, "\n", "\n"+indent))
	}
}

// Names lists names after a label, and leaves a line empty.
func (p *Page) Names(label string, names []string) {
	p.Line("%-8s %s\n", label, strings.ReplaceAll(Wrap(names), "\n", "\n"+indent))
}

// Finding writes a finding with everything about it.
func (p *Page) Finding(f finding.Finding) {
	p.Line("%-8s %s", Label(f), words.Line(fmt.Sprintf("%s (%s)%s", f.Name, f.Reason, note(f)), maxLine))
	if len(f.BlockedTargets) > 0 && f.Open() {
		p.Paragraph(effect(f), strings.Join(f.BlockedTargets, ", "))
	}
	p.Details(f)
	if f.Job != nil && f.Job.Name != "" {
		p.Paragraph("Job:  ", f.Job.Namespace+"/"+f.Job.Name+onNode(f.Job.Node))
	}
	p.Line("")
}

// Details writes cause, remedy and objects of a finding. What to do about a
// finding that does not count is left out.
func (p *Page) Details(f finding.Finding) {
	p.Paragraph("", f.Message)
	if f.Bypass == nil {
		p.Paragraph("Fix:  ", f.Remediation)
		for _, action := range f.Actions {
			if action.Command != "" {
				p.Paragraph("      $ ", action.Command)
			}
		}
	}
	p.Paragraph("See:  ", f.URL)
	for _, object := range f.Objects {
		p.Paragraph("About: ", describe(object))
	}
}

// effect is what an open finding does to the targets that it is about.
func effect(f finding.Finding) string {
	if f.Outcome == preflight.Fail {
		return "Blocks: "
	}
	return "Leaves undecided: "
}

// The labels of findings that are bypassed.
const (
	Acknowledged = "acked"
	Accepted     = "accepted"
	Forced       = "forced"
)

// Label is the outcome of a finding, or how it was bypassed.
func Label(f finding.Finding) string {
	if f.Bypass == nil {
		return strings.ToUpper(string(f.Outcome))
	}
	switch f.Bypass.By {
	case finding.ByAdminAck:
		return Acknowledged
	case finding.ByAcceptedRisk:
		return Accepted
	}
	return Forced
}

// Labels are all labels, the worst first.
func Labels() []string {
	return []string{"FAIL", "UNKNOWN", Forced, Accepted, Acknowledged, "WARN", "SKIPPED", "PASS"}
}

// Outcome is how a finding ended, on one line.
func Outcome(f finding.Finding) string {
	return words.Line(fmt.Sprintf("%s (%s)%s", Label(f), f.Reason, note(f)), maxLine)
}

func note(f finding.Finding) string {
	switch {
	case f.Bypass != nil && f.Bypass.Detail != "":
		return ": " + f.Bypass.Detail
	case f.Outcome == preflight.Fail && !f.Blocks:
		return ": does not block this update"
	}
	return ""
}

func describe(object finding.Object) string {
	name := object.Name
	if object.Namespace != "" {
		name = object.Namespace + "/" + name
	}
	return strings.TrimSpace(object.APIVersion + " " + object.Kind + " " + name)
}

func onNode(node string) string {
	if node == "" {
		return ""
	}
	return " on node " + node
}

// Wrap lists names in lines that fit a terminal.
func Wrap(names []string) string {
	var text strings.Builder
	column := 0
	for i, name := range names {
		name = words.Line(name, maxLine)
		if i > 0 {
			text.WriteString(",")
			column++
		}
		switch {
		case i > 0 && column+1+len(name) > width:
			text.WriteString("\n")
			column = 0
		case i > 0:
			text.WriteString(" ")
			column++
		}
		text.WriteString(name)
		column += len(name)
	}
	return text.String()
}

// Fold breaks text between words into lines of that many characters at most, each after a
// prefix. A longer word has a line of its own.
func Fold(text, prefix string, limit int) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return hang(prefix, text, prefix, limit)
}

// hang is Fold with another prefix of the first line.
func hang(first, text, prefix string, limit int) string {
	var lines []string
	line, start := first, first
	for word := range strings.FieldsSeq(text) {
		switch columns := utf8.RuneCountInString(line) + utf8.RuneCountInString(word); {
		case line == start && (start == prefix || columns <= limit):
			line += word
		case line != start && columns < limit:
			line += " " + word
		default:
			lines = append(lines, strings.TrimRight(line, " "))
			line, start = prefix+word, prefix
		}
	}
	return strings.Join(append(lines, line), "\n")
}
