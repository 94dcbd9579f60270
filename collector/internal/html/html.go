// Package html answers: how is a document written as one HTML page?
//
// A page is one file without scripts, links to elsewhere and requests. It is readable
// without its style sheet, which a Content-Security-Policy may forbid: the order, the
// headings and the tables carry everything, and pictures are drawn with attributes.
// Texts are data: they are made printable, bounded and escaped here.
package html

import (
	"crypto/sha256"
	_ "embed" // for page.css
	"encoding/base64"
	"io"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Document is a page.
type Document struct {
	// Title is that of the window and the first heading.
	Title string
	// Decision is shown first.
	Decision Decision
	Blocks   []Block
	// Source is a line about where the page comes from.
	Source string
}

//go:embed page.css
var style string

// Write writes the page.
func Write(w io.Writer, document Document) error {
	hash := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'"
	return line(h.Doctype(h.HTML(h.Lang("en"),
		line(),
		h.Head(
			line(),
			line(h.Meta(h.Charset("utf-8"))),
			line(h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(policy))),
			line(h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1"))),
			line(h.Meta(h.Name("color-scheme"), h.Content("light dark"))),
			line(h.Meta(h.Name("referrer"), h.Content("no-referrer"))),
			line(h.TitleEl(text(document.Title))),
			line(h.StyleEl(g.Raw(style))),
		),
		line(),
		h.Body(
			line(),
			line(h.Header(
				line(),
				line(h.H1(text(document.Title))),
				line(document.Decision.paragraph()),
			)),
			line(h.Main(line(), nodes(document.Blocks, highest))),
			g.If(document.Source != "", line(h.Footer(h.P(text(document.Source))))),
		),
		line(),
	))).Render(w)
}
