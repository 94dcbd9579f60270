package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	gfm "github.com/openshift/update-preflight/collector/document/markdown"
	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/junit"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// WriteText is WriteStyled for a file.
func (p Path) WriteText(w io.Writer) error { return p.WriteStyled(w, Style{}) }

// WriteStyled writes the path as text: the decision about the whole, a line for each
// update, then each update with its findings and the checks that are evaluated again.
func (p Path) WriteStyled(w io.Writer, style Style) error {
	text := page.New(style)
	text.Paragraphs(p.headline())
	text.Line("")
	text.Row("Path", p.route(style))
	for i, each := range p.Updates {
		text.Row(p.position(i), p.summary(each))
	}
	if rest := p.unreported(); len(rest) > 0 {
		text.Row("No report", strings.Join(rest, ", "))
	}
	for _, notice := range p.Notices {
		text.Row("Notice", words.Line(notice, maxCommand))
	}
	text.Line("")
	for i, each := range p.Updates {
		text.Line("%s: %s to %s\n", p.position(i), words.Line(each.from(), maxName), words.Line(orUnknown(each.Target.Version), maxName))
		each.write(text)
		text.Line("")
	}
	text.Line("Decision for the path: %s", p.standing())
	_, err := text.WriteTo(w)
	return err
}

// standing is the decision, if it is current.
func (p Path) standing() string {
	if !p.Holds() {
		return notHolding(p.Decision)
	}
	return string(p.Decision)
}

// position names an update by its number.
func (p Path) position(update int) string {
	return fmt.Sprintf("Hop %d of %d", update+1, max(p.planned(), len(p.Updates)))
}

// summary is the decision about one update, and the findings that led to it.
func (p Path) summary(r Report) string {
	const most = 5
	text := fmt.Sprintf("%s to %s: %s", r.from(), orUnknown(r.Target.Version), r.standing())
	if names := append(slices.Clone(r.Verdict.Blocking), r.Verdict.Undecided...); len(names) > 0 {
		text += " because of " + words.List(names, most)
	}
	if r.Verdict.Provisional {
		text += fmt.Sprintf("; provisional, to be asked again at %s: %s", r.from(), words.Count(len(r.AskedAgain), "check"))
	}
	return text
}

// headline is the decision about the whole path.
func (p Path) headline() string {
	target := words.Line(orUnknown(p.Versions[len(p.Versions)-1]), maxName)
	if !p.Holds() {
		return fmt.Sprintf("Outdated: the decision about the path to %s was %s, and no longer holds.", target, p.Decision)
	}
	text := map[verdict.Decision]string{
		verdict.Ready:        "Ready: this cluster can be updated to " + words.Line(orUnknown(p.Updates[0].Target.Version), maxName) + ".",
		verdict.Blocked:      fmt.Sprintf("Blocked: do not start the path to %s yet.", target),
		verdict.Undecided:    fmt.Sprintf("Undecided: the path to %s could not be evaluated completely.", target),
		verdict.NothingKnown: fmt.Sprintf("NothingKnown: nothing that can be evaluated in advance blocks the path to %s.", target),
	}[p.Decision]
	if p.Decision == verdict.Ready && p.planned() > 1 {
		text += fmt.Sprintf(" Nothing that can be evaluated in advance blocks the later updates to %s; run the preflight again before each of them.", target)
	}
	if p.Forced {
		text += " FORCED: findings that block were bypassed by force."
	}
	if p.Interrupted() {
		text += " The preflight was interrupted."
	}
	return text
}

// WriteMarkdown writes the path for change tickets: the decision, a table of the updates,
// and the report of each.
func (p Path) WriteMarkdown(w io.Writer) error {
	var m markdown
	decision, rest, _ := strings.Cut(p.headline(), ": ")
	m.Paragraph("**" + gfm.Text(decision) + "**: " + gfm.Text(rest))
	m.Line("| | |")
	m.Line("|---|---|")
	for i, each := range p.Updates {
		m.Row(p.position(i), gfm.Text(p.summary(each)))
	}
	if rest := p.unreported(); len(rest) > 0 {
		m.Row("No report", gfm.Text(strings.Join(rest, ", ")))
	}
	for _, notice := range p.Notices {
		m.Row("Notice", gfm.Text(words.Line(notice, maxCommand)))
	}
	m.Line("")
	for i, each := range p.Updates {
		m.Line("# " + gfm.Text(fmt.Sprintf("%s: %s to %s", p.position(i), each.from(), orUnknown(each.Target.Version))) + "\n")
		each.mark(&m)
	}
	_, err := m.WriteTo(w)
	return err
}

// WriteJUnit writes the path for CI systems: the test cases of each update, with its
// version as the last part of the class, and one for the decision about the path.
func (p Path) WriteJUnit(w io.Writer) error {
	var cases []junit.Case
	for _, each := range p.Updates {
		for _, c := range each.cases() {
			c.Class += "." + strings.ReplaceAll(orUnknown(each.Target.Version), ".", "_")
			cases = append(cases, c)
		}
	}
	outcome, known := map[verdict.Decision]preflight.Outcome{
		verdict.Ready: preflight.Warn, verdict.NothingKnown: preflight.Warn, verdict.Undecided: preflight.Unknown,
	}[p.Decision]
	switch {
	case !p.Holds():
		outcome = preflight.Unknown
	case !known:
		outcome = preflight.Fail
	}
	first := p.Updates[0]
	properties := []junit.Property{{Name: "path", Value: words.Line(p.route(Style{}), maxCommand)}, {Name: "decision", Value: string(p.Decision)}}
	return junit.Write(w, first.Run.StartTime, properties, append(cases, junit.Case{
		Suite: "verdict", Class: "preflight", Name: "preflight.Path", Outcome: outcome, Type: cmp.Or(string(p.Decision), "NoVerdict"),
		Message: p.headline(), Text: p.route(Style{}),
	}))
}
