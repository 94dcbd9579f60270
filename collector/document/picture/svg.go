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
