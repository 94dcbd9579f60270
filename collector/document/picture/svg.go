// Package picture answers: how is the data of a document drawn?
//
// Timeline, Matrix, Route, Ranges and Steps make a document.Picture of their data, with a drawing in
// SVG and the same data as a table. A drawing is drawn with attributes, which no
// Content-Security-Policy forbids, and its texts are made printable, bounded and escaped.
package picture

import (
	"strconv"

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

// Icon is the shape of a level, beside a word that means the same.
func Icon(level document.Level) g.Node {
	return h.SVG(h.Class("icon"), size(strconv.Itoa(shapeSize), shapeSize), viewBox(), g.Attr("aria-hidden", "true"), g.Attr("focusable", "false"), shape(level))
}

func viewBox() g.Node { return g.Attr("viewBox", "0 0 16 16") }

// shape fills a square of shapeSize. That of Unclear is no diamond: with a question mark it would look like the
// character that replaces one that cannot be shown.
func shape(level document.Level) g.Node {
	switch level {
	case document.Good:
		return g.Group{g.El("circle", g.Attr("cx", "8"), g.Attr("cy", "8"), g.Attr("r", "7.5"), fill(green)), stroke("M4.5 8.2 7 10.7 11.5 5.5", "2")}
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
