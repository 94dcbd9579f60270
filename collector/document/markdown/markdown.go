// Package markdown answers: how is text that others wrote put into a document in GitHub Flavored
// Markdown? As data: it makes no element, link or mention.
package markdown

import (
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
)

// maxText bounds one text, code span or command, in bytes.
const maxText = 4 << 10

// Document is a document that is being written. Its zero value is empty.
type Document struct{ text strings.Builder }

// WriteTo implements io.WriterTo.
func (d *Document) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, d.text.String())
	return int64(n), err
}

// Len is the size of the document so far, in bytes.
func (d *Document) Len() int { return d.text.Len() }

// Append adds another document.
func (d *Document) Append(other *Document) { d.text.WriteString(other.text.String()) }

// Line writes one line, which may have elements.
func (d *Document) Line(text string) { d.text.WriteString(text + "\n") }

// Paragraph writes a paragraph, which may have elements.
func (d *Document) Paragraph(text string) { d.Line(strings.TrimSpace(text) + "\n") }

// Row is a row of a table; a cell is one line, and may have elements.
func (d *Document) Row(cells ...string) {
	var row strings.Builder
	for _, cell := range cells {
		cell = strings.ReplaceAll(strings.TrimSpace(cell), `\|`, "|")
		row.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ") // also in code spans
	}
	d.Line(row.String() + "|")
}

// Command is a command, to be copied.
func (d *Document) Command(command string) {
	if command = strings.TrimSpace(words.Lines(command, maxText)); command != "" {
		d.block("sh", command)
	}
}

// Block is text in which nothing is interpreted, with its lines.
func (d *Document) Block(text string) { d.block("text", strings.TrimRight(text, "\n")) }

func (d *Document) block(language, text string) {
	fence := strings.Repeat("`", max(3, longestRun(text)+1))
	d.Paragraph(fence + language + "\n" + text + "\n" + fence)
}

// Codes are names as code spans, at most that many.
func Codes(names []string, most int) string {
	var spans []string
	for _, name := range names[:min(len(names), most)] {
		spans = append(spans, Code(name))
	}
	if more := len(names) - most; more > 0 {
		spans = append(spans, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(spans, ", ")
}

// Code is a code span, in which nothing is interpreted.
func Code(text string) string {
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

// Text is text on one line, in which nothing is interpreted: no element of Markdown or
// HTML, no link, and no mention of a user or an issue.
func Text(text string) string {
	// An empty comment separates what GitHub and GitLab would link.
	const apart = "<!-- -->"
	return strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, ">", `\>`,
		"@", `\@`+apart, "#", `\#`+apart, "!", `\!`+apart, "://", ":"+apart+"//", "www.", "www"+apart+".",
	).Replace(words.Line(text, maxText))
}

// Prose writes lines of text after a lead, which may have elements. Lines that are
// verbatim are a block of their own.
func (d *Document) Prose(lead, text string) {
	for _, block := range words.Blocks(words.Lines(text, maxText)) {
		if block.Verbatim {
			d.block("text", block.Text)
			continue
		}
		d.Paragraph(lead + Lines(block.Text))
		lead = ""
	}
}

// Lines are lines of text, each of which is escaped.
func Lines(text string) string {
	var lines []string
	for line := range strings.Lines(words.Lines(text, maxText)) {
		if line = Text(strings.TrimSpace(line)); line != "" {
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
