package html

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Timeline is a picture of when checks ran, with the same data as a table.
type Timeline struct {
	Title string
	Bars  []Bar
}

// Bar is the time of one check. End is not before Start.
type Bar struct {
	Name, Result string
	Level        Level
	Start, End   time.Time
}

// The geometry of the picture, in pixels.
const (
	axisHeight   = 24
	axisBaseline = 13
	barHeight    = 40
	barBaseline  = 16
	barTop       = 22
	barWidth     = 10
)

// maxBars bounds the picture; the table has more.
const maxBars = 60

// sorted are the bars by their start.
func (t Timeline) sorted() []Bar {
	bars := slices.Clone(t.Bars)
	slices.SortStableFunc(bars, func(a, b Bar) int {
		return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End), cmp.Compare(a.Name, b.Name))
	})
	return bars
}

func (t Timeline) node(level int) g.Node {
	bars, span := t.sorted(), t.span()
	start, shown := bars[0].Start, bars[:min(len(bars), maxBars)]
	drawing := g.Group{label("0", axisBaseline, "0 s"), label("100%", axisBaseline, span.String(), anchor("end"))}
	for i, bar := range shown {
		drawing = append(drawing, bar.node(axisHeight+barHeight*i, start, span))
	}
	return g.Group{
		h.Figure(
			line(),
			line(picture(t.Title, fmt.Sprintf(": %d checks; the table below has the same data", len(shown)), "100%", axisHeight+barHeight*len(shown), drawing)),
			line(h.FigCaption(text(t.Title+", from "+start.UTC().Format(time.RFC3339)+"."), t.more(len(bars)-len(shown)))),
		),
		line(),
		t.table(bars).node(level),
	}
}

// more states what is not in the picture.
func (Timeline) more(count int) g.Node {
	return g.If(count > 0, g.Textf(" The %d checks that started last are left out of the picture.", count))
}

// span is at least a second, so that shares of it are defined.
func (t Timeline) span() time.Duration {
	bars := t.sorted()
	last := bars[0].End
	for _, bar := range bars {
		if bar.End.After(last) {
			last = bar.End
		}
	}
	return max(time.Second, last.Sub(bars[0].Start))
}

// node draws a bar and its label, top pixels below the top of the picture. Positions are
// shares of the time that all took.
func (b Bar) node(top int, start time.Time, span time.Duration) g.Node {
	const percent, least = 100, 0.5
	share := func(d time.Duration) float64 { return percent * float64(d) / float64(span) }
	width := max(least, share(b.End.Sub(b.Start)))
	left := min(share(b.Start.Sub(start)), percent-width)
	percents := func(value float64) string { return strconv.FormatFloat(value, 'f', 2, 64) + "%" }
	return g.Group{
		label("0", top+barBaseline, b.label()),
		rectangle("0", top+barTop, "100%", 1, axis),
		rectangle(percents(left), top+barTop, percents(width), barWidth, b.Level.color()),
	}
}

func (b Bar) label() string { return b.Result + ", " + b.End.Sub(b.Start).String() + ": " + b.Name }

// table has the data of the picture.
func (t Timeline) table(bars []Bar) Table {
	table := Table{Caption: t.Title + ", as a table", Columns: []string{"Check", "Result", "Started", "Ended", "Duration"}}
	for _, bar := range bars {
		table.Rows = append(table.Rows, []string{
			bar.Name, bar.Result, bar.Start.UTC().Format(time.RFC3339), bar.End.UTC().Format(time.RFC3339), bar.End.Sub(bar.Start).String(),
		})
	}
	return table
}
