// Package text answers: how is a report laid out as text for people?
//
// A page only lays out: texts of findings are printable when they are built, and
// those of a stored report when it is read.
package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/words"
)

// indent sets what is about a finding under its name.
const indent = "         "

// Page is text that is written at once. Its zero value is empty, in the zero style.
type Page struct {
	buffer bytes.Buffer
	style  Style
}

// New is an empty page in a style.
func New(style Style) *Page { return &Page{style: style} }

// Style is that of the page.
func (p *Page) Style() Style { return p.style }

// WriteTo implements io.WriterTo.
func (p *Page) WriteTo(w io.Writer) (int64, error) { return p.buffer.WriteTo(w) }

// String implements fmt.Stringer.
func (p *Page) String() string { return p.buffer.String() }

// Line writes one line.
func (p *Page) Line(format string, args ...any) {
	fmt.Fprintf(&p.buffer, "%s\n", p.style.ascii(words.Printable(fmt.Sprintf(format, args...))))
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

// Marked writes a line that begins with a marked word. Lines that do not fit a terminal
// continue under a hanging indent.
func (p *Page) Marked(before, word, rest string) {
	word = words.Line(word, maxLine)
	lead, text := before+p.style.Mark(word)+"  ", words.Line(rest, maxLine)
	if p.style.Width > 0 {
		plain := before + Style{Symbols: p.style.Symbols}.Mark(word) + "  "
		limit := p.style.Columns()
		text = strings.TrimPrefix(hang(plain, broken(text, limit-len(hanging)), hanging, limit), strings.TrimRight(plain, " "))
		lead, text = strings.TrimRight(lead, " "), strings.TrimRight(text, " ")
	}
	fmt.Fprintf(&p.buffer, "%s\n", strings.TrimRight(lead+text, " "))
}

// Command writes a command in full, so that it can be copied. Its further lines begin in
// the first column: they may be those of a here-document.
func (p *Page) Command(before, command string) {
	p.Line("%s$ %s", before, command)
}

// Paragraphs writes text from the first column, folded to fit a terminal.
func (p *Page) Paragraphs(text string) { p.Line("%s", p.fold(words.Line(text, maxLine), "")) }

// fold breaks one line to fit a terminal, each part after a prefix. A longer word is
// broken too: what a terminal wraps would begin in its first column.
func (p *Page) fold(line, prefix string) string {
	line = strings.TrimRight(line, " \t")
	limit := p.style.Columns()
	if p.style.Width == 0 || utf8.RuneCountInString(prefix+line) <= limit {
		return prefix + line
	}
	return Fold(broken(line, limit-len(prefix)), prefix, limit)
}
