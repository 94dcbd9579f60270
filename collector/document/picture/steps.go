package picture

import (
	"fmt"
	"strconv"
	"time"

	g "maragu.dev/gomponents"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

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

// RangeRow is what happens one after the other: the solid part, then the striped one.
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
	legend := "Solid: control plane, as expected. Striped: nodes of other pools, as expected. Thin: between the lowest and the highest estimate."
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
