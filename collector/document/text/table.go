package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

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

// cells are the cells of a row, none of which is empty. That of the column result has a symbol.
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
