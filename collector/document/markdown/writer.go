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

const (
	// maxSize bounds the document without what follows the last item or row, in bytes: a
	// comment on GitHub has at most 65 536 characters.
	maxSize = 50_000
	// maxEntries bounds a list, and maxOpen the names of what counts.
	maxEntries, maxOpen = 200, 20
	// highest is the level of the headings of a document, and lowest that of Markdown.
	highest, lowest = 2, 6
)

// Write writes a document.
func Write(w io.Writer, d document.Document) error {
	written := &writer{}
	written.blocks(d.Blocks, highest)
	written.left(written.omitted, "findings")
	_, err := written.WriteTo(w)
	return err
}

// writer writes blocks, and counts what is left out.
type writer struct {
	Document

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
		w.heading(level, strings.TrimSuffix(Text(b.Title)+": "+Text(b.Mark.Word), ": "))
		w.blocks(b.Blocks, level+1)
	case document.Paragraph:
		w.paragraph(b.Text)
	case document.List:
		w.list(b)
	case document.Command:
		w.paragraph(b.Lead)
		w.Command(b.Text)
	case document.Table:
		w.table(b)
	case document.Items:
		w.items(b, level)
	case document.Details:
		w.Line("<details><summary>" + strings.TrimSpace(Text(b.Mark.Word+" "+b.Summary)) + "</summary>\n")
		w.blocks(b.Blocks, level)
		w.Line("</details>\n")
	case document.Picture:
		w.picture(b)
	case document.Conclusion:
		w.paragraph(b.Text)
	}
}

func (w *writer) heading(level int, text string) {
	w.Line(strings.Repeat("#", min(level, lowest)) + " " + text + "\n")
}

// paragraph writes data; nothing if it is empty.
func (w *writer) paragraph(text string) {
	if text != "" {
		w.Paragraph(Lines(text))
	}
}

func (w *writer) verdict(v document.Verdict) {
	word := "**" + Text(v.Word) + "**"
	if v.Subject == "" {
		w.Paragraph(word + ": " + Text(v.Meaning))
		return
	}
	w.Paragraph(word + " " + Text(v.Subject))
	w.paragraph(v.Meaning)
}

func (w *writer) list(l document.List) {
	switch {
	case len(l.Entries) == 0:
		return
	case l.Names:
		w.Paragraph(strings.TrimSpace("**" + Text(l.Lead) + "** " + Codes(l.Entries, maxEntries)))
		return
	}
	w.paragraph(l.Lead)
	entries := l.Entries[:min(len(l.Entries), maxEntries)]
	for _, each := range entries {
		w.Line("- " + Text(each))
	}
	w.Line("")
	w.left(len(l.Entries)-len(entries), "entries")
}

// left states how many are left out; nothing for none.
func (w *writer) left(count int, noun string) {
	if count > 0 {
		w.Paragraph(fmt.Sprintf("Left out here, since the document is bounded: %d %s. `-o json` has all.", count, noun))
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
	w.Row(columns...)
	w.Row(slices.Repeat([]string{"---"}, len(columns))...)
	written := 0
	for ; written < len(t.Rows) && w.Len() < maxSize; written++ {
		var cells []string
		for i, each := range t.Rows[written] {
			if i == 0 && len(t.Columns) == 0 {
				cells = append(cells, Text(each))
			} else {
				cells = append(cells, cell(each))
			}
		}
		w.Row(cells...)
	}
	w.Line("")
	w.left(len(t.Rows)-written, "rows")
}

// cell is data in a table: a code span for a name.
func cell(text string) string {
	if isName(text) {
		return Code(text)
	}
	return strings.ReplaceAll(Lines(text), "\n", "")
}

// isName reports whether text is a name, such as a version, a pull spec or a URL: one word
// that is more than letters.
func isName(text string) bool {
	return !strings.ContainsFunc(text, unicode.IsSpace) && strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}

func (w *writer) picture(p document.Picture) {
	if p.Text != "" {
		w.Block(words.Printable(p.Text))
		return
	}
	w.Paragraph("**" + Text(p.Title) + "**")
	w.table(p.Table)
}

// items writes items, those of a group under its heading, after the names of those that count.
func (w *writer) items(items document.Items, level int) {
	var open []string
	for _, each := range items.Entries {
		if each.Counts {
			open = append(open, each.Names...)
		}
	}
	if items.Lead != "" && len(open) > 0 {
		w.Paragraph(Text(items.Lead) + " " + Codes(open, maxOpen))
	}
	group := ""
	for _, each := range items.Entries {
		one := &writer{}
		below := level
		if each.Group != "" {
			below++
		}
		if each.Group != group {
			one.heading(level, Text(each.Group))
		}
		one.item(each, below)
		if w.Len()+one.Len() > maxSize {
			w.omitted++
			continue
		}
		group = each.Group
		w.Append(&one.Document)
	}
	w.left(items.More, "entries")
}

func (w *writer) item(item document.Item, level int) {
	title := Codes(item.Names, maxOpen) + " " + Text(item.Mark.Word+" "+item.State)
	if item.Number > 0 {
		title = fmt.Sprintf("%d. %s", item.Number, title)
	}
	w.heading(level, title)
	w.Prose("", item.Message)
	w.Prose("**Fix:** ", item.Remedy)
	for _, each := range item.Commands {
		w.Command(each)
	}
	for _, fact := range item.Facts {
		lead := "**" + Text(fact.Lead) + "** "
		if isName(fact.Text) {
			w.Paragraph(lead + Code(fact.Text))
		} else {
			w.Prose(lead, fact.Text)
		}
	}
	w.table(item.Evidence)
}
