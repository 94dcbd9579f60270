package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxLine bounds text that must be on one line, in bytes.
	maxLine = 4 << 10
	// hanging indents the text of an item, namesIndent names after their lead, valueIndent a value after its name.
	hanging     = "    "
	namesIndent = "         "
	valueIndent = "           "
)

// Write writes a document.
func Write(w io.Writer, d document.Document, style Style) error {
	written := &writer{style: style}
	written.blocks(d.Blocks)
	_, err := io.WriteString(w, written.text.String())
	return err
}

// writer writes blocks, and an empty line between those that do not belong together.
type writer struct {
	style Style
	text  strings.Builder
	// last is the block before; nil at the beginning.
	last document.Block
}

func (w *writer) blocks(blocks []document.Block) {
	for _, each := range blocks {
		w.block(each)
	}
}

func (w *writer) block(b document.Block) {
	switch b := b.(type) {
	case document.Verdict:
		w.separate(b)
		w.verdict(b)
	case document.Section:
		w.separate(b)
		w.line(w.style.clean(b.Title))
		w.last = b
		w.blocks(b.Blocks)
		w.last = b
	case document.Paragraph:
		w.separate(b)
		w.paragraph(b.Text)
	case document.List:
		w.list(b)
	case document.Command:
		w.separate(b)
		w.line(command(w.style, strings.TrimPrefix(b.Lead+" ", " "), b.Text))
	case document.Table:
		w.table(b)
	case document.Items:
		w.items(b)
	case document.Details:
		w.details(b)
	case document.Picture:
		w.picture(b)
	case document.Excerpt:
		w.excerpt(b)
	}
}

// separate leaves a line empty before the next block, unless both are lines of one list. A
// brief text has empty lines around sections and after tables alone.
func (w *writer) separate(next document.Block) {
	last := w.last
	w.last = next
	if last == nil {
		return
	}
	if _, ok := next.(document.Section); ok || isSection(last) {
		w.line("")
		return
	}
	if table, ok := last.(document.Table); w.style.Brief() && (!ok || len(table.Columns) == 0) || isLine(last) && isLine(next) {
		return
	}
	w.line("")
}

func isSection(b document.Block) bool {
	_, ok := b.(document.Section)
	return ok
}

// isLine reports whether a block is one line of a list of next steps.
func isLine(b document.Block) bool {
	switch b.(type) {
	case document.Command, document.Details:
		return true
	}
	return false
}

func (w *writer) line(text string) { w.text.WriteString(strings.TrimRight(text, " ") + "\n") }

func (w *writer) lines(lines []string) {
	for _, each := range lines {
		w.line(each)
	}
}

func (w *writer) paragraph(text string) {
	if text != "" {
		w.line(wrap("", w.style.clean(text), "", w.style.limit()))
	}
}

func (w *writer) verdict(v document.Verdict) {
	if v.Subject == "" {
		w.paragraph(strings.TrimPrefix(v.Word+": "+v.Meaning, ": "))
		return
	}
	w.line(marked(w.style, "", document.Mark{Level: v.Level, Word: strings.ToUpper(v.Word)}, v.Subject))
	w.paragraph(v.Meaning)
}

func (w *writer) list(l document.List) {
	w.separate(l)
	if l.Names {
		lead := fmt.Sprintf("%-8s ", w.style.clean(l.Lead))
		w.line(wrap(lead, w.style.clean(strings.Join(l.Entries, ", ")), namesIndent, w.style.Columns()))
		return
	}
	w.paragraph(l.Lead)
	for _, each := range l.Entries {
		w.line(wrap("- ", w.style.clean(each), "  ", w.style.limit()))
	}
}

func (w *writer) details(d document.Details) {
	if w.style.Details {
		w.blocks(d.Blocks)
		return
	}
	w.separate(d)
	summary := d.Summary
	if w.style.Hint != "" {
		summary += " (" + w.style.Hint + ")"
	}
	w.line(marked(w.style, "", d.Mark, summary))
}

// excerpt writes each line in one, however narrow the terminal is. What precedes the last two, the next step and the
// verdict, is one line of a brief text.
func (w *writer) excerpt(e document.Excerpt) {
	w.separate(e)
	lines := e.Lines
	if few := len(lines) - 2; w.style.Brief() && few > 1 {
		lines = append([]string{strings.Join(lines[:few], "; ")}, lines[few:]...)
	}
	if !w.style.Brief() {
		w.line(e.Lead)
	}
	for _, each := range lines {
		w.line(w.style.clean(each))
	}
}

func (w *writer) picture(p document.Picture) {
	if p.Text == "" {
		w.table(p.Table)
		return
	}
	w.separate(p)
	for line := range strings.Lines(p.Text) {
		w.line(w.style.ascii(words.Printable(strings.TrimRight(line, "\n"))))
	}
}

// items writes items. A brief view only names the items that do not count if others do: their causes and commands
// would not fit on the screen.
func (w *writer) items(items document.Items) {
	short := w.style.Brief() && slices.ContainsFunc(items.Entries, func(i document.Item) bool { return i.Counts })
	var marks []document.Mark
	others := map[document.Mark][]string{}
	for _, each := range items.Entries {
		if !short || each.Counts {
			w.separate(items)
			w.lines(item(w.style, each))
			continue
		}
		if others[each.Mark] == nil {
			marks = append(marks, each.Mark)
		}
		others[each.Mark] = append(others[each.Mark], each.Names...)
	}
	for _, mark := range marks {
		w.separate(items)
		w.line(marked(w.style, "", mark, words.List(others[mark], maxOthers)))
	}
	if items.More > 0 {
		w.line(strings.TrimSuffix(fmt.Sprintf("... and %d more (%s)", items.More, w.style.Hint), " ()"))
	}
}

// maxCell bounds a cell of a table, in bytes.
const maxCell = 1 << 10

func (w *writer) table(t document.Table) {
	w.separate(t)
	if len(t.Columns) == 0 {
		for _, each := range t.Rows {
			w.row(each[0], each[1])
		}
		return
	}
	var aligned strings.Builder
	table := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.ToUpper(strings.Join(t.Columns, "\t")))
	result := slices.Index(t.Columns, t.Result)
	for _, each := range t.Rows {
		fmt.Fprintln(table, strings.Join(cells(w.style, each, result), "\t"))
	}
	_ = table.Flush() // to a buffer
	isCut := false
	for line := range strings.Lines(aligned.String()) {
		line = strings.TrimRight(line, " \n")
		if !t.Whole {
			clipped, cut := w.style.clip(line)
			line, isCut = clipped, isCut || cut
		}
		w.line(line)
	}
	if isCut {
		w.line(w.style.Ellipsis() + " (the rest: -o json)")
	}
	if t.More > 0 {
		w.line(w.style.more(t.More))
	}
}

// cells are the cells of a row, none of which is empty. The cell of the column result has a symbol.
func cells(style Style, row []string, result int) []string {
	cells := make([]string, 0, len(row))
	for i, each := range row {
		cell := style.ascii(cmp.Or(words.Line(each, maxCell), "-"))
		if i == result {
			cell = style.symbol(cell)
		}
		cells = append(cells, cell)
	}
	return cells
}

func (w *writer) row(name, value string) {
	lead := fmt.Sprintf("%-10s ", w.style.clean(name))
	for line := range strings.Lines(value) {
		w.line(wrap(lead, w.style.clean(line), valueIndent, w.style.limit()))
		lead = valueIndent
	}
}
