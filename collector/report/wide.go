package report

import (
	"fmt"
	"io"
	"strings"

	page "github.com/openshift/update-preflight/collector/document/text"
)

// WriteWide writes the targets as a table with all columns and without the findings.
func (t Targets) WriteWide(w io.Writer, style Style) error {
	p := page.New(style)
	rows := t.listed(style)
	table := [][]string{{"VERSION", "KIND", "RECOMMENDED", "DECISION", "DURATION", "CAUSES", "IMAGE", "URL"}}
	for _, target := range rows {
		expected := ""
		if target.Duration != nil {
			expected = target.Duration.String()
		}
		table = append(table, []string{
			target.Version, target.UpdateKind, target.Recommended, style.Symbol(standingOf(target)), expected,
			strings.Join(causes(target), ","), target.Image, target.URL,
		})
	}
	writeRows(p, table)
	writeMore(p, len(t.Targets)-len(rows))
	_, err := p.WriteTo(w)
	return err
}

// writeRows writes a table, its columns aligned, in full: a row that a terminal cannot show
// in one line is wrapped.
func writeRows(p *page.Page, rows [][]string) {
	var text strings.Builder
	table := newTable(&text)
	for _, row := range rows {
		for i, each := range row {
			row[i] = cell(each)
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush() // to a buffer
	for line := range strings.Lines(text.String()) {
		p.Line("%s", strings.TrimRight(line, " \n"))
	}
}
