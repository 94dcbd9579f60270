package html

import (
	"cmp"
	"slices"
	"strconv"
	"time"
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

func (Timeline) kind() string { return "timeline" }

// The geometry of the picture, in pixels.
const (
	axisHeight  = 24
	barHeight   = 40
	barBaseline = 16
	barTop      = 22
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

// Shown are the bars in the picture.
func (t Timeline) Shown() []Bar {
	bars := t.sorted()
	return bars[:min(len(bars), maxBars)]
}

// More is how many bars are not in the picture.
func (t Timeline) More() int { return len(t.Bars) - len(t.Shown()) }

// Height is that of the picture.
func (t Timeline) Height() int { return axisHeight + barHeight*len(t.Shown()) }

// Start is when the first check started.
func (t Timeline) Start() string { return t.sorted()[0].Start.UTC().Format(time.RFC3339) }

// Span is how long all took, from the start of the first.
func (t Timeline) Span() string { return t.span().String() }

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

// BarLine is one bar of the picture: positions are pixels, and percents of the width.
type BarLine struct {
	Label, Color string
	TextY, BarY  int
	Left, Width  string
}

// Lines are the bars with their positions.
func (t Timeline) Lines() []BarLine {
	const percent, least = 100, 0.5
	bars, span := t.Shown(), t.span()
	lines := make([]BarLine, 0, len(bars))
	for i, bar := range bars {
		share := func(d time.Duration) float64 { return percent * float64(d) / float64(span) }
		width := max(least, share(bar.End.Sub(bar.Start)))
		left := min(share(bar.Start.Sub(bars[0].Start)), percent-width)
		top := axisHeight + barHeight*i
		lines = append(lines, BarLine{
			Label: bar.label(), Color: bar.Level.color(), TextY: top + barBaseline, BarY: top + barTop,
			Left: strconv.FormatFloat(left, 'f', 2, 64), Width: strconv.FormatFloat(width, 'f', 2, 64),
		})
	}
	return lines
}

func (b Bar) label() string { return b.Result + ", " + b.End.Sub(b.Start).String() + ": " + b.Name }

// color has a contrast of 3:1 on light and on dark pages.
func (l Level) color() string {
	switch l {
	case Good:
		return "#1a7f37"
	case Bad:
		return "#d1343f"
	case Unclear, Caution:
		return "#8a6100"
	case Neutral:
	}
	return "#6e7781"
}

// Table has the data of the picture.
func (t Timeline) Table() Table {
	table := Table{Caption: t.Title + ", as a table", Columns: []string{"Check", "Result", "Started", "Ended", "Duration"}}
	for _, bar := range t.sorted() {
		table.Rows = append(table.Rows, []string{
			bar.Name, bar.Result, bar.Start.UTC().Format(time.RFC3339), bar.End.UTC().Format(time.RFC3339), bar.End.Sub(bar.Start).String(),
		})
	}
	return table
}
