package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/page"
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
	_, err := io.WriteString(w, m.text.String())
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
		m.paragraph(fmt.Sprintf("%d findings are left out here, since the document is bounded. `-o json` has all of them.", m.omitted))
		m.omitted = 0
	}
}

// markAskedAgain lists the checks of a later update that were not evaluated.
func (r Report) markAskedAgain(m *markdown) {
	for _, group := range r.askedAgain() {
		m.paragraph("Asked again at " + code(r.from()) + ", and not evaluated now: " + codes(group.names, 50) + " (" + escaped(group.reason) + ")")
	}
}

// markHead writes the verdict, what to do, and what the report is about.
func (r Report) markHead(m *markdown) {
	decision, rest, _ := strings.Cut(headline(r), ": ")
	m.paragraph("**" + escaped(decision) + "**: " + escaped(rest) + " Findings: " + escaped(cmp.Or(tally(r.Findings), "none")) + ".")
	if open := append(slices.Clone(r.Verdict.Blocking), r.Verdict.Undecided...); len(open) > 0 {
		m.paragraph("Fix these, then run the preflight again: " + codes(open, 20))
	}
	for _, action := range r.Actions {
		m.block(action.Command)
	}
	m.line("| | |")
	m.line("|---|---|")
	m.row("Update", code(r.from())+" to "+code(r.Target.Version)+" "+escaped(r.Target.UpdateKind))
	m.row("Release", code(r.Target.Image))
	if r.Run.Phase != PhaseRunning {
		m.row("Signature", escaped(signature(r.Target)))
		m.row("CVO", escaped(behavior(r.CVO)))
	}
	if r.Duration != nil {
		m.row("Duration", escaped(r.Duration.String()))
	}
	m.row("Checks", fmt.Sprintf("%d of %d reported", r.Expected.Reported, r.Expected.Checks))
	m.row("Run", code(cmp.Or(r.Run.ID, "not recorded"))+" "+escaped(r.Run.Phase+" "+cmp.Or(r.Run.CompletionTime, r.Run.StartTime)))
	switch {
	case !r.Holds():
		m.row("Outdated", escaped(strings.Join(limited(r.Standing.Ended, 10), "; ")))
	case r.Verdict.ValidUntil != "":
		m.row("Holds until", escaped(r.Verdict.ValidUntil))
	}
	m.line("")
}

// markQuiet writes the names of what passed or does not apply, folded.
func (r Report) markQuiet(m *markdown) {
	passed, skipped := quietNames(r.Findings)
	if len(passed)+len(skipped) == 0 {
		return
	}
	m.line(fmt.Sprintf("<details><summary>%d passed, %d do not apply</summary>\n", len(passed), len(skipped)))
	if len(passed) > 0 {
		m.paragraph("Passed: " + codes(passed, 200))
	}
	if len(skipped) > 0 {
		m.paragraph("Do not apply: " + codes(skipped, 200))
	}
	m.line("</details>")
}

// markdown is a document that is being written.
type markdown struct {
	text strings.Builder
	// omitted counts the findings for which there was no room.
	omitted int
}

func (m *markdown) line(text string) { m.text.WriteString(text + "\n") }

func (m *markdown) paragraph(text string) { m.line(strings.TrimSpace(text) + "\n") }

// row is a row of a table with two columns. The value is one line.
func (m *markdown) row(name, value string) {
	value = strings.ReplaceAll(strings.TrimSpace(value), `\|`, "|")
	m.line("| " + name + " | " + strings.ReplaceAll(value, "|", `\|`) + " |") // also in code spans
}

// block is a command, to be copied.
func (m *markdown) block(command string) {
	if command = strings.TrimSpace(words.Lines(command, maxCommand)); command == "" {
		return
	}
	fence := strings.Repeat("`", max(3, longestRun(command)+1))
	m.paragraph(fence + "sh\n" + command + "\n" + fence)
}

// section writes findings in full, as long as there is room.
func (m *markdown) section(title string, findings []finding.Finding) {
	if len(findings) == 0 {
		return
	}
	m.line("## " + title + "\n")
	for _, f := range findings {
		var one markdown
		one.finding(f)
		if m.text.Len()+one.text.Len() > maxMarkdown {
			m.omitted++
			continue
		}
		m.text.WriteString(one.text.String())
	}
}

func (m *markdown) finding(f finding.Finding) {
	m.line("### " + code(f.Name) + " " + escaped(page.Outcome(f)) + "\n")
	if f.Message != "" {
		m.paragraph(escapedLines(f.Message))
	}
	if f.Bypass == nil && f.Remediation != "" {
		m.paragraph("**Fix:** " + escapedLines(f.Remediation))
	}
	if f.Bypass == nil {
		for _, action := range f.Actions {
			m.block(action.Command)
		}
	}
	if f.URL != "" {
		m.paragraph("See " + code(f.URL))
	}
	objects := objectNames(f.Objects)
	if len(objects) > 0 {
		m.paragraph("About " + codes(objects, 10))
	}
}

// codes are names as code spans, at most that many.
func codes(names []string, most int) string {
	var spans []string
	for _, name := range names[:min(len(names), most)] {
		spans = append(spans, code(name))
	}
	if more := len(names) - most; more > 0 {
		spans = append(spans, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(spans, ", ")
}

// code is a code span, in which nothing is interpreted.
func code(text string) string {
	text = words.Line(text, maxCommand)
	if strings.TrimSpace(text) == "" {
		return ""
	}
	fence := strings.Repeat("`", longestRun(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// longestRun is the length of the longest run of backticks.
func longestRun(text string) int {
	longest, run := 0, 0
	for _, r := range text {
		run++
		if r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// maxMarkdownText bounds one text, in bytes.
const maxMarkdownText = 4 << 10

// escaped is text on one line, in which nothing is interpreted: no element of Markdown or
// HTML, no link, and no mention of a user or an issue.
func escaped(text string) string {
	// An empty comment separates what GitHub and GitLab would link.
	const apart = "<!-- -->"
	return strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, ">", `\>`,
		"@", `\@`+apart, "#", `\#`+apart, "!", `\!`+apart, "://", ":"+apart+"//", "www.", "www"+apart+".",
	).Replace(words.Line(text, maxMarkdownText))
}

// escapedLines are lines of text, each of which is escaped.
func escapedLines(text string) string {
	var lines []string
	for line := range strings.Lines(words.Lines(text, maxMarkdownText)) {
		if line = escaped(strings.TrimSpace(line)); line != "" {
			lines = append(lines, plain(line))
		}
	}
	return strings.Join(lines, "<br>\n")
}

// plain keeps a line from being an item of a list, a heading or a rule.
func plain(line string) string {
	digits := strings.TrimLeft(line, "0123456789")
	if strings.HasPrefix(digits, ".") || strings.HasPrefix(digits, ")") || strings.IndexAny(line, "-+=") == 0 {
		return line[:len(line)-len(digits)] + `\` + digits
	}
	return line
}
