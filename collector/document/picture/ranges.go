package picture

import (
	"fmt"
	"time"

	g "maragu.dev/gomponents"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

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
