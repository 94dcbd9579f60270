// Package picture answers: how is the data of a document drawn?
//
// Timeline, Matrix, Route, Ranges and Steps return a document.Picture of their data, with a drawing in SVG and the
// same data as a table. A drawing uses attributes, which no Content-Security-Policy forbids, and its texts are
// made printable, bounded and escaped.
package picture

import (
	"fmt"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

// The colors of pictures have a contrast of 3:1 on light and on dark pages.
const (
	green, red, amber, gray = "#1a7f37", "#d1343f", "#8a6100", "#6e7781"
	white                   = "#ffffff"
	axis                    = "#808890"
)

// maxLine bounds a text, in bytes.
const maxLine = 1 << 10

func text(data string) g.Node { return g.Text(words.Line(data, maxLine)) }

// line ends a line of the page's source.
func line(nodes ...g.Node) g.Node { return append(g.Group(nodes), g.Raw("\n")) }

func drawn(title, label, width string, height int, drawing ...g.Node) g.Node {
	return h.SVG(
		g.Attr("width", width), g.Attr("height", strconv.Itoa(height)), h.Role("img"), h.Aria("label", words.Line(title, maxLine)+label),
		g.Attr("font-family", "sans-serif"), g.Attr("font-size", "13"),
		line(), line(svgTitle(title)), g.Group(drawing),
	)
}

func svgTitle(data string) g.Node { return g.El("title", text(data)) }

func label(x string, y int, data string, attributes ...g.Node) g.Node {
	return line(g.El("text", at(x, y), g.Group(attributes), fill("currentColor"), text(data)))
}

func rectangle(x string, y int, width string, height int, color string) g.Node {
	return line(g.El("rect", at(x, y), size(width, height), fill(color)))
}

func stripes(from, to string, y, width int) g.Node {
	return line(g.El("line",
		g.Attr("x1", from), g.Attr("x2", to), g.Attr("y1", strconv.Itoa(y)), g.Attr("y2", strconv.Itoa(y)),
		g.Attr("stroke", gray), g.Attr("stroke-width", strconv.Itoa(width)), g.Attr("stroke-dasharray", "2 3"),
	))
}

func anchor(point string) g.Node { return g.Attr("text-anchor", point) }

func fill(color string) g.Node { return g.Attr("fill", color) }

func at(x string, y int) g.Node { return g.Group{g.Attr("x", x), g.Attr("y", strconv.Itoa(y))} }

func size(width string, height int) g.Node {
	return g.Group{g.Attr("width", width), g.Attr("height", strconv.Itoa(height))}
}

// The geometry of a row of bars, in pixels: a label, and the bars below it.
const (
	axisHeight   = 24
	axisBaseline = 13
	barHeight    = 40
	barBaseline  = 16
	barTop       = 22
	barWidth     = 10
)

// scale is the number that the full width of a picture has; positive.
type scale float64

// place is the position and the width of a bar from a number to another, with a least
// width, so that it can be seen.
func (s scale) place(from, to float64) (x, width float64) {
	const percent, least = 100, 0.5
	width = min(percent, max(least, percent*(to-from)/float64(s)))
	return max(0, min(percent*from/float64(s), percent-width)), width
}

func percents(value float64) string { return strconv.FormatFloat(value, 'f', 2, 64) + "%" }

func (s scale) solid(top int, from, to float64, color string) g.Node {
	x, width := s.place(from, to)
	return rectangle(percents(x), top, percents(width), barWidth, color)
}

func (s scale) striped(top int, from, to float64) g.Node {
	x, width := s.place(from, to)
	return stripes(percents(x), percents(x+width), top+barWidth/2, barWidth)
}

// thin is a line in the middle of a bar.
func (s scale) thin(top int, from, to float64, color string) g.Node {
	x, width := s.place(from, to)
	return rectangle(percents(x), top+barWidth/2-1, percents(width), 2, color)
}

// baseline is the line behind the bars of a row.
func baseline(top int) g.Node { return rectangle("0", top, "100%", 1, axis) }

const shapeSize = 16

func colorOf(level document.Level) string {
	switch level {
	case document.Good:
		return green
	case document.Bad:
		return red
	case document.Unclear, document.Caution:
		return amber
	case document.Neutral:
	}
	return gray
}

// Icon returns the shape of a level, shown beside a word with the same meaning.
func Icon(level document.Level) g.Node {
	return h.SVG(h.Class("icon"), size(strconv.Itoa(shapeSize), shapeSize), viewBox(), g.Attr("aria-hidden", "true"),
		g.Attr("focusable", "false"), shape(level))
}

func viewBox() g.Node { return g.Attr("viewBox", "0 0 16 16") }

// shape fills a square of shapeSize. The shape of Unclear is not a diamond: with a question mark it would look
// like the replacement character.
func shape(level document.Level) g.Node {
	switch level {
	case document.Good:
		return g.Group{
			g.El("circle", g.Attr("cx", "8"), g.Attr("cy", "8"), g.Attr("r", "7.5"), fill(green)),
			stroke("M4.5 8.2 7 10.7 11.5 5.5", "2"),
		}
	case document.Bad:
		return g.Group{area("M5 .5h6L15.5 5v6L11 15.5H5L.5 11V5z", red), stroke("M5 5l6 6M11 5l-6 6", "2")}
	case document.Unclear:
		return g.Group{area("M4.5 1h7L16 8l-4.5 7h-7L0 8z", amber), stroke("M6 6.3a2 2 0 1 1 2.6 1.9Q8 8.5 8 9.5M8 11v1.8", "1.6")}
	case document.Caution:
		return g.Group{area("M8 1l7.5 14H.5z", amber), stroke("M8 6v4.5M8 12v1.7", "1.8")}
	case document.Neutral:
	}
	return g.Group{area("M1.5 1.5h13v13h-13z", gray), stroke("M4.5 8h7", "2")}
}

func area(path, color string) g.Node { return g.El("path", g.Attr("d", path), fill(color)) }

// stroke is a white line in an area.
func stroke(path, width string) g.Node {
	return g.El("path", g.Attr("d", path), fill("none"), g.Attr("stroke", white), g.Attr("stroke-width", width))
}

// Steps is a picture of what happens at which of numbered steps, with the same data as a table.
type Steps struct {
	Title, Legend string
	// Rows are at least one.
	Rows []StepRow
	// Text is the picture for formats without drawings.
	Text string
}

// StepRow is a thing with a result, and the steps at which it happens, from 1 on.
type StepRow struct {
	Name, Result string
	Level        document.Level
	At           []int
}

// maxSteps bounds the rows of the picture; the table has more.
const maxSteps = 60

// Picture is the steps with their table.
func (s Steps) Picture() document.Picture {
	rows := s.Rows[:min(len(s.Rows), maxSteps)]
	last := 1
	for _, row := range rows {
		for _, step := range row.At {
			last = max(last, step)
		}
	}
	drawing := g.Group{label("0", axisBaseline, "step 1"), label("100%", axisBaseline, "step "+strconv.Itoa(last), anchor("end"))}
	for i, row := range rows {
		drawing = append(drawing, row.node(axisHeight+barHeight*i, scale(last)))
	}
	legend := s.Legend
	if more := len(s.Rows) - len(rows); more > 0 {
		legend += fmt.Sprintf(" Left out of the picture: %s.", words.Count(more, "row"))
	}
	return document.Picture{
		Title: s.Title, Legend: legend, Text: s.Text, Table: s.table(),
		Drawing: drawn(s.Title, "; the table below has the same data", "100%", axisHeight+barHeight*len(rows), drawing),
	}
}

func (r StepRow) node(top int, width scale) g.Node {
	content := g.Group{label("0", top+barBaseline, r.Name+": "+r.Result), baseline(top + barTop)}
	for _, step := range r.At {
		content = append(content, width.solid(top+barTop, float64(step-1), float64(step), colorOf(r.Level)))
	}
	return content
}

func (s Steps) table() document.Table {
	table := document.Table{Title: s.Title + ", as a table", Columns: []string{"What", "Result", "Steps"}}
	for _, row := range s.Rows {
		var steps []string
		for _, step := range row.At {
			steps = append(steps, strconv.Itoa(step))
		}
		table.Rows = append(table.Rows, []string{row.Name, row.Result, words.List(steps, maxSteps)})
	}
	return table
}

// Ranges is a picture of estimated durations on one axis, with the same data as a table.
type Ranges struct {
	Title string
	// Rows are at least one.
	Rows []RangeRow
	// Table has the data of the picture.
	Table document.Table
}

// RangeRow shows consecutive steps: the solid part, then the striped one.
type RangeRow struct {
	Name string
	// Start is when the solid part begins.
	Start, Solid, Striped time.Duration
	// Low and High are the bounds of the end of both, after Start.
	Low, High time.Duration
}

// maxRanges bounds the picture; the table has more.
const maxRanges = 20

func (r RangeRow) end() time.Duration { return r.Start + max(r.Solid+r.Striped, r.High) }

// Picture is the ranges with their table.
func (r Ranges) Picture() document.Picture {
	rows := r.Rows[:min(len(r.Rows), maxRanges)]
	span := time.Minute
	for _, row := range rows {
		span = max(span, row.end())
	}
	drawing := g.Group{label("0", axisBaseline, "0"), label("100%", axisBaseline, span.String(), anchor("end"))}
	for i, row := range rows {
		drawing = append(drawing, row.node(axisHeight+barHeight*i, scale(span)))
	}
	legend := "Solid: control plane, expected time. Striped: nodes of other pools, expected time. Thin: between the lowest and the " +
		"highest estimate."
	if more := len(r.Rows) - len(rows); more > 0 {
		legend += fmt.Sprintf(" Left out of the picture: %s.", words.Count(more, "row"))
	}
	return document.Picture{
		Title: r.Title, Legend: legend, Table: r.Table,
		Drawing: drawn(r.Title, "; the table below has the same data", "100%", axisHeight+barHeight*len(rows), drawing),
	}
}

func (r RangeRow) node(top int, width scale) g.Node {
	solid, striped := r.Start+r.Solid, r.Start+r.Solid+r.Striped
	content := g.Group{
		label("0", top+barBaseline, r.Name), baseline(top + barTop),
		width.solid(top+barTop, float64(r.Start), float64(solid), green),
	}
	if r.Striped > 0 {
		content = append(content, width.striped(top+barTop, float64(solid), float64(striped)))
	}
	return append(content,
		width.thin(top+barTop, float64(r.Start+r.Low), float64(min(striped, r.Start+r.High)), white),
		width.thin(top+barTop, float64(striped), float64(max(striped, r.Start+r.High)), axis),
	)
}

// Matrix shows which findings are about which targets, with the same data as a table. Findings are referred to by
// their numbers, from 1.
type Matrix struct {
	Title    string
	Findings []string
	Rows     []MatrixRow
	// Table has the data of the picture.
	Table document.Table
}

// MatrixRow is a target with its decision.
type MatrixRow struct {
	Name, Decision string
	// Results are the results of the findings, by their index.
	Results map[int]document.Mark
}

// The limits of the picture; the table has more.
const (
	maxMatrixRows, maxMatrixColumns = 60, 40
)

// The geometry of the picture, in pixels.
const (
	cell         = 26
	firstColumn  = 210
	matrixMargin = 4
	// maxMatrixName bounds the name of a target in the picture, in bytes.
	maxMatrixName = 26
)

func (m Matrix) columns() int { return min(len(m.Findings), maxMatrixColumns) }

func (m Matrix) rows() []MatrixRow { return m.Rows[:min(len(m.Rows), maxMatrixRows)] }

// Picture is the matrix with its table.
func (m Matrix) Picture() document.Picture {
	drawing := g.Group{}
	for column := range m.columns() {
		drawing = append(drawing, label(strconv.Itoa(firstColumn+cell*column+cell/2), barBaseline, strconv.Itoa(column+1), anchor("middle")))
	}
	for i, row := range m.rows() {
		drawing = append(drawing, m.row(row, cell*(i+1)))
	}
	width, height := firstColumn+cell*m.columns()+matrixMargin, cell*(len(m.rows())+1)+matrixMargin
	return document.Picture{
		Title: m.Title, Legend: "A column is a finding, by its number below." + m.more(),
		Drawing: drawn(m.Title, "; the table below has the same data", strconv.Itoa(width), height, drawing), Table: m.Table,
	}
}

// row draws a target and its results, top pixels below the top of the picture.
func (m Matrix) row(row MatrixRow, top int) g.Node {
	content := g.Group{label("0", top+barBaseline, words.Line(row.Name, maxMatrixName)+" "+row.Decision)}
	for column := range m.columns() {
		result, ok := row.Results[column]
		if !ok {
			continue
		}
		x := strconv.Itoa(firstColumn + cell*column + (cell-shapeSize)/2)
		content = append(content, line(h.SVG(
			at(x, top+matrixMargin), size(strconv.Itoa(shapeSize), shapeSize), viewBox(),
			svgTitle(row.Name+", "+m.Findings[column]+": "+result.Word), shape(result.Level),
		)))
	}
	return content
}

func (m Matrix) more() string {
	rows, columns := len(m.Rows)-len(m.rows()), len(m.Findings)-m.columns()
	if rows+columns == 0 {
		return ""
	}
	return fmt.Sprintf(" Left out of the picture: %s, %s.", words.Count(rows, "target"), words.Count(columns, "finding"))
}
