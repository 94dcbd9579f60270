package html

import (
	"fmt"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/words"
)

// Matrix is a picture of which findings are about which targets, with the same data as a
// table. Findings are referred to by their numbers, from 1.
type Matrix struct {
	Title string
	// Findings are the names of the columns.
	Findings []string
	Rows     []MatrixRow
}

// MatrixRow is a target with its decision.
type MatrixRow struct {
	Name, Decision string
	// Results are those of the findings, by their index.
	Results map[int]Decision
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

func (m Matrix) node(level int) g.Node {
	drawing := g.Group{}
	for column := range m.columns() {
		drawing = append(drawing, label(strconv.Itoa(firstColumn+cell*column+cell/2), barBaseline, strconv.Itoa(column+1), anchor("middle")))
	}
	for i, row := range m.rows() {
		drawing = append(drawing, m.row(row, cell*(i+1)))
	}
	width, height := firstColumn+cell*m.columns()+matrixMargin, cell*(len(m.rows())+1)+matrixMargin
	return g.Group{
		h.Figure(
			line(),
			line(scroll(m.Title, line(picture(m.Title, "; the table below has the same data", strconv.Itoa(width), height, drawing)))),
			line(h.FigCaption(text(m.Title+". A column is a finding, by its number below."), m.more())),
		),
		line(),
		m.table().node(level),
	}
}

// row draws a target and its results, top pixels below the top of the picture.
func (m Matrix) row(row MatrixRow, top int) g.Node {
	drawn := g.Group{label("0", top+barBaseline, words.Line(row.Name, maxMatrixName)+" "+row.Decision)}
	for column := range m.columns() {
		result, ok := row.Results[column]
		if !ok {
			continue
		}
		x := strconv.Itoa(firstColumn + cell*column + (cell-shapeSize)/2)
		drawn = append(drawn, line(h.SVG(
			at(x, top+matrixMargin), size(strconv.Itoa(shapeSize), shapeSize), viewBox(),
			svgTitle(row.Name+", "+m.Findings[column]+": "+result.Word), result.Level.shape(),
		)))
	}
	return drawn
}

// more states what is not in the picture.
func (m Matrix) more() g.Node {
	rows, columns := len(m.Rows)-len(m.rows()), len(m.Findings)-m.columns()
	return g.If(rows+columns > 0, g.Textf(" Left out of the picture: %s, %s.", words.Count(rows, "target"), words.Count(columns, "finding")))
}

// table has the data of the picture.
func (m Matrix) table() Table {
	table := Table{Caption: m.Title + ", as a table", Columns: []string{"Target", "Decision", "Findings"}}
	for _, row := range m.Rows {
		var results []string
		for i, name := range m.Findings {
			if result, ok := row.Results[i]; ok {
				results = append(results, fmt.Sprintf("%d. %s: %s", i+1, name, result.Word))
			}
		}
		table.Rows = append(table.Rows, []string{row.Name, row.Decision, strings.Join(results, "; ")})
	}
	return table
}
