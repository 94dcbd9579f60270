package picture

import (
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

// Matrix is a picture of which findings are about which targets, with the same data as a
// table. Findings are referred to by their numbers, from 1.
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
