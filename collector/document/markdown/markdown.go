// Package markdown answers: how is a document written in GitHub Flavored Markdown?
//
// [Write] writes a document for tickets and pull requests. Texts are data: they are escaped, and never become
// elements, links or mentions.
package markdown

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/openshift/update-preflight/collector/document"
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

const (
	// maxSize bounds the document without what follows the last item or row, in bytes: a
	// comment on GitHub has at most 65 536 characters.
	maxSize = 50_000
	// maxEntries bounds a list, and maxOpen the names of what counts.
	maxEntries, maxOpen = 200, 20
	// highest is the level of the headings of a document, and lowest the lowest level of Markdown.
	highest, lowest = 2, 6
)

// Write writes a document.
func Write(w io.Writer, d document.Document) error {
	written := &writer{}
	written.blocks(d.Blocks, highest)
	written.left(written.omitted, "findings")
	_, err := written.page.WriteTo(w)
	return err
}

type writer struct {
	page page

	// omitted counts the items for which there was no room.
	omitted int
}

// blocks writes blocks, whose headings have that level or lower ones.
func (w *writer) blocks(blocks []document.Block, level int) {
	for _, each := range blocks {
		w.block(each, level)
	}
}

func (w *writer) block(b document.Block, level int) {
	switch b := b.(type) {
	case document.Verdict:
		w.verdict(b)
	case document.Section:
		w.heading(level, strings.TrimSuffix(escape(b.Title)+": "+escape(b.Mark.Word), ": "))
		w.blocks(b.Blocks, level+1)
	case document.Paragraph:
		w.paragraph(b.Text)
	case document.List:
		w.list(b)
	case document.Command:
		w.paragraph(b.Lead)
		w.page.command(b.Text)
	case document.Table:
		w.table(b)
	case document.Items:
		w.items(b, level)
	case document.Details:
		w.page.line("<details><summary>" + strings.TrimSpace(escape(b.Mark.Word+" "+b.Summary)) + "</summary>\n")
		w.blocks(b.Blocks, level)
		w.page.line("</details>\n")
	case document.Picture:
		w.picture(b)
	case document.Excerpt:
		w.paragraph(b.Lead)
		w.page.verbatim(excerpt(b))
	}
}

func excerpt(e document.Excerpt) string {
	lines := slices.Clone(e.Lines)
	for i, each := range lines {
		lines[i] = words.Line(each, maxText)
	}
	return strings.Join(lines, "\n")
}

func (w *writer) heading(level int, text string) {
	w.page.line(strings.Repeat("#", min(level, lowest)) + " " + text + "\n")
}

// paragraph writes data; nothing if it is empty.
func (w *writer) paragraph(text string) {
	if text != "" {
		w.page.add(escapeLines(text))
	}
}

func (w *writer) verdict(v document.Verdict) {
	word := "**" + escape(v.Word) + "**"
	if v.Subject == "" {
		w.page.add(word + ": " + escape(v.Meaning))
		return
	}
	w.page.add(word + " " + escape(v.Subject))
	w.paragraph(v.Meaning)
}

func (w *writer) list(l document.List) {
	if l.Names {
		w.page.add(strings.TrimSpace("**" + escape(l.Lead) + "** " + codes(l.Entries, maxEntries)))
		return
	}
	w.paragraph(l.Lead)
	entries := l.Entries[:min(len(l.Entries), maxEntries)]
	for _, each := range entries {
		w.page.line("- " + plain(escape(each)))
	}
	w.page.line("")
	w.left(len(l.Entries)-len(entries), "entries")
}

// left states how many are left out; nothing for none.
func (w *writer) left(count int, noun string) {
	if count > 0 {
		w.page.add(fmt.Sprintf("This document is bounded and omits: %d %s. `-o json` prints all.", count, noun))
	}
}

func (w *writer) table(t document.Table) {
	if len(t.Rows) == 0 {
		return
	}
	columns := t.Columns
	if len(columns) == 0 {
		columns = []string{"", ""}
	}
	w.page.row(columns...)
	w.page.row(slices.Repeat([]string{"---"}, len(columns))...)
	written := 0
	for ; written < len(t.Rows) && w.page.size() < maxSize; written++ {
		var cells []string
		for i, each := range t.Rows[written] {
			if i == 0 && len(t.Columns) == 0 {
				cells = append(cells, escape(each))
			} else {
				cells = append(cells, cell(each))
			}
		}
		w.page.row(cells...)
	}
	w.page.line("")
	w.left(len(t.Rows)-written, "rows")
}

// cell is data in a table: a code span for a name.
func cell(text string) string {
	if isName(text) {
		return code(text)
	}
	return strings.ReplaceAll(escapeLines(text), "\n", "")
}

// isName reports whether text is a name, such as a version, a pull spec or a URL: one word
// that is more than letters.
func isName(text string) bool {
	return !strings.ContainsFunc(text, unicode.IsSpace) && strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}

func (w *writer) picture(p document.Picture) {
	if p.Text != "" {
		w.page.verbatim(words.Printable(p.Text))
		return
	}
	w.page.add("**" + escape(p.Title) + "**")
	w.table(p.Table)
}

// items writes items, each group under its heading, after the names of the items that count.
func (w *writer) items(items document.Items, level int) {
	var open []string
	for _, each := range items.Entries {
		if each.Counts {
			open = append(open, each.Names...)
		}
	}
	if items.Lead != "" && len(open) > 0 {
		w.page.add(escape(items.Lead) + " " + codes(open, maxOpen))
	}
	group := ""
	for _, each := range items.Entries {
		one := &writer{}
		below := level
		if each.Group != "" {
			below++
		}
		if each.Group != group && each.Group != "" {
			one.heading(level, escape(each.Group))
		}
		one.item(each, below)
		if w.page.size()+one.page.size() > maxSize {
			w.omitted++
			continue
		}
		group = each.Group
		w.page.append(&one.page)
	}
	w.left(items.More, "entries")
}

func (w *writer) item(item document.Item, level int) {
	title := codes(item.Names, maxOpen) + " " + escape(item.Mark.Word+" "+item.State)
	if item.Number > 0 {
		title = fmt.Sprintf("%d. %s", item.Number, title)
	}
	w.heading(level, title)
	w.page.prose("", item.Message)
	w.page.prose("**Fix:** ", item.Remedy)
	for _, each := range item.Commands {
		w.paragraph(each.Lead)
		w.page.command(each.Text)
	}
	for _, fact := range item.Facts {
		lead := "**" + escape(fact.Lead) + "** "
		if isName(fact.Text) {
			w.page.add(lead + code(fact.Text))
		} else {
			w.page.prose(lead, fact.Text)
		}
	}
	w.table(item.Evidence)
}
