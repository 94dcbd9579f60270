// Package markdown answers: how is a document written in GitHub Flavored Markdown?
//
// [Write] writes it for tickets and pull requests. Texts are data: they make no element, link
// or mention.
package markdown

import (
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
)

// maxText bounds one text, code span or command, in bytes.
const maxText = 4 << 10

// page is a document that is being written. Its zero value is empty.
type page struct{ text strings.Builder }

func (p *page) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, p.text.String())
	return int64(n), err
}

// size is the size of the document so far, in bytes.
func (p *page) size() int { return p.text.Len() }

func (p *page) append(other *page) { p.text.WriteString(other.text.String()) }

// line writes one line, which may have elements.
func (p *page) line(text string) { p.text.WriteString(text + "\n") }

func (p *page) add(text string) { p.line(strings.TrimSpace(text) + "\n") }

func (p *page) row(cells ...string) {
	var row strings.Builder
	for _, cell := range cells {
		cell = strings.ReplaceAll(strings.TrimSpace(cell), `\|`, "|")
		row.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ") // also in code spans
	}
	p.line(row.String() + "|")
}

func (p *page) command(command string) {
	if command = strings.TrimSpace(words.Lines(command, maxText)); command != "" {
		p.fenced("sh", command)
	}
}

// verbatim is text in which nothing is interpreted, with its lines.
func (p *page) verbatim(text string) { p.fenced("text", strings.TrimRight(text, "\n")) }

func (p *page) fenced(language, text string) {
	fence := strings.Repeat("`", max(3, longestRun(text)+1))
	p.add(fence + language + "\n" + text + "\n" + fence)
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

func code(text string) string {
	text = words.Line(text, maxText)
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

// escape is text on one line, in which nothing is interpreted: no element of Markdown or
// HTML, no link, and no mention of a user or an issue.
func escape(text string) string {
	// An empty comment separates what GitHub and GitLab would link.
	const apart = "<!-- -->"
	return strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, ">", `\>`,
		"@", `\@`+apart, "#", `\#`+apart, "!", `\!`+apart, "://", ":"+apart+"//", "www.", "www"+apart+".",
	).Replace(words.Line(text, maxText))
}

// prose writes lines of text after a lead, which may have elements. Lines that are
// verbatim are a block of their own.
func (p *page) prose(lead, text string) {
	for _, block := range words.Blocks(words.Lines(text, maxText)) {
		if block.Verbatim {
			p.fenced("text", block.Text)
			continue
		}
		p.add(lead + escapeLines(block.Text))
		lead = ""
	}
}

func escapeLines(text string) string {
	var lines []string
	for line := range strings.Lines(words.Lines(text, maxText)) {
		if line = escape(strings.TrimSpace(line)); line != "" {
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
