package picture

import (
	"strconv"

	g "maragu.dev/gomponents"
)

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
