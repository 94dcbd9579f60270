package text

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

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
				p.Command(indent+"      ", action.Command)
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

// Item writes a finding that is one of a list, for all of names; number 0 is none.
func (p *Page) Item(number int, names []string, f finding.Finding) {
	before := hanging
	if number > 0 {
		before = fmt.Sprintf("%2d. ", number)
	}
	p.Marked(before, Label(f), fmt.Sprintf("%s (%s)%s", strings.Join(names, ", "), f.Reason, note(f)))
	p.text("", f.Message, briefLines)
	if f.Bypass == nil {
		p.remedy(f)
	}
	p.facts(f)
	if !p.style.Brief() {
		p.Line("")
	}
}

// remedy writes what to do: on a terminal without details the first command, or the text
// where there is none.
func (p *Page) remedy(f finding.Finding) {
	var commands []string
	for _, action := range f.Actions {
		if action.Command != "" {
			commands = append(commands, action.Command)
		}
	}
	if p.style.Brief() && len(commands) > 0 {
		p.Command(hanging, commands[0])
		return
	}
	p.text("Fix:  ", f.Remediation, remedyLines)
	for _, command := range commands {
		p.Command(hanging, command)
	}
}

// facts writes what supports a finding: on a terminal only with details.
func (p *Page) facts(f finding.Finding) {
	if p.style.Brief() {
		return
	}
	p.text("See:  ", f.URL, briefLines)
	for _, object := range f.Objects {
		p.text("About: ", describe(object), briefLines)
	}
	if f.Job != nil && f.Job.Name != "" {
		p.text("Job:  ", f.Job.Namespace+"/"+f.Job.Name+onNode(f.Job.Node), briefLines)
	}
}

// text writes a paragraph of an item, folded and shortened to that many lines to fit a
// terminal.
func (p *Page) text(lead, text string, most int) {
	text = strings.TrimSpace(words.Printable(text))
	if text == "" {
		return
	}
	var lines []string
	verbatim := map[int]bool{} // by index in lines
	for _, block := range words.Blocks(lead + text) {
		for line := range strings.SplitSeq(block.Text, "\n") {
			if block.Verbatim {
				verbatim[len(lines)] = true
				lines = append(lines, hanging+line)
				continue
			}
			lines = append(lines, strings.Split(p.fold(line, hanging), "\n")...)
		}
	}
	most *= max(1, usualColumns/p.style.Columns())
	if p.style.Brief() && len(lines) > most {
		if verbatim[most-1] {
			lines[most-1] = hanging // a part of it would be misleading
		}
		lines = p.shortened(lines, most)
	}
	p.Line("%s", strings.Join(lines, "\n"))
}

// shortened are the first lines of a text and a note about the others, which replaces the
// end of the last line.
func (p *Page) shortened(lines []string, most int) []string {
	more := "1 more line"
	if left := len(lines) - most; left > 1 {
		more = fmt.Sprintf("%d more lines", left)
	}
	rest := strings.TrimRight(p.style.Ellipsis()+" ("+more+": "+p.style.Hint, ": ") + ")"
	last := []rune(lines[most-1])
	width := utf8.RuneCountInString(rest) + len("...") - utf8.RuneCountInString(p.style.Ellipsis()) // the same for both
	return append(lines[:most-1], string(last[:max(0, min(len(last), p.style.Columns()-width))])+rest)
}
