package html

import (
	"fmt"
	"strconv"
	"strings"

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

func (Matrix) kind() string { return "matrix" }

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

// Width is that of the picture.
func (m Matrix) Width() int { return firstColumn + cell*m.columns() + matrixMargin }

// Height is that of the picture.
func (m Matrix) Height() int { return cell*(len(m.rows())+1) + matrixMargin }

// Label is a text of the picture at a position.
type Label struct {
	X, Y int
	Text string
}

// Heads are the numbers of the findings.
func (m Matrix) Heads() []Label {
	var heads []Label
	for i := range m.columns() {
		heads = append(heads, Label{X: firstColumn + cell*i + cell/2, Y: barBaseline, Text: strconv.Itoa(i + 1)})
	}
	return heads
}

// Lines are the names of the targets with their decisions.
func (m Matrix) Lines() []Label {
	var lines []Label
	for i, row := range m.rows() {
		lines = append(lines, Label{Y: cell*(i+1) + barBaseline, Text: words.Line(row.Name, maxMatrixName) + " " + row.Decision})
	}
	return lines
}

// MatrixCell is a result at a position.
type MatrixCell struct {
	X, Y  int
	Level Level
	Text  string
}

// Cells are the results.
func (m Matrix) Cells() []MatrixCell {
	var cells []MatrixCell
	for i, row := range m.rows() {
		for column := range m.columns() {
			result, ok := row.Results[column]
			if !ok {
				continue
			}
			cells = append(cells, MatrixCell{
				X: firstColumn + cell*column + (cell-barBaseline)/2, Y: cell*(i+1) + matrixMargin, Level: result.Level,
				Text: row.Name + ", " + m.Findings[column] + ": " + result.Word,
			})
		}
	}
	return cells
}

// More states what is not in the picture; empty if everything is.
func (m Matrix) More() string {
	rows, columns := len(m.Rows)-len(m.rows()), len(m.Findings)-m.columns()
	if rows+columns == 0 {
		return ""
	}
	return fmt.Sprintf("%d targets and %d findings are left out of the picture.", rows, columns)
}

// Table has the data of the picture.
func (m Matrix) Table() Table {
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
