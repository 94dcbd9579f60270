package picture

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/document"
)

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
