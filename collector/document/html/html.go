// Package html answers: how is a document written as one HTML page?
//
// [Write] writes one file without scripts, links to elsewhere and requests. It is readable
// without its style sheet, which a Content-Security-Policy may forbid: the order, the
// headings and the tables carry everything, and pictures are drawn with attributes.
// Texts are data: they are made printable, bounded and escaped here. A page that is too large
// is cut, and states that.
package html

import (
	"crypto/sha256"
	_ "embed" // for page.css
	"encoding/base64"
	"io"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

//go:embed page.css
var style string

// highest is the level of the headings below the title, and lowest that of HTML.
const highest, lowest = 2, 6

// Policy is the Content-Security-Policy of a page: it has no content but its style. A page states it itself; a server of
// pages sends it as well, and adds what a page cannot state (frame-ancestors).
func Policy() string {
	hash := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'"
}

// Write writes the document as a page.
func Write(w io.Writer, d document.Document) error {
	var page writer
	return line(h.Doctype(h.HTML(h.Lang("en"),
		line(),
		h.Head(
			line(),
			line(h.Meta(h.Charset("utf-8"))),
			line(h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(Policy()))),
			line(h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1"))),
			line(h.Meta(h.Name("color-scheme"), h.Content("light dark"))),
			line(h.Meta(h.Name("referrer"), h.Content("no-referrer"))),
			line(h.TitleEl(text(d.Title))),
			line(h.StyleEl(g.Raw(style))),
		),
		line(),
		h.Body(
			line(),
			line(h.Header(h.H1(text(d.Title)))),
			line(h.Main(line(), page.blocks(d.Blocks, highest), page.left())),
			g.If(d.Source != "", line(h.Footer(h.P(text(d.Source))))),
		),
		line(),
	))).Render(w)
}

// maxText bounds a text of lines, and maxLine one on one line, in bytes.
const maxText, maxLine = 4 << 10, 1 << 10

func text(data string) g.Node { return g.Text(words.Line(data, maxLine)) }

// after is data on one line after a separator; nothing if there is no data.
func after(separator, data string) g.Node {
	if data = words.Line(data, maxLine); data == "" {
		return nil
	}
	return g.Text(separator + data)
}

// lead introduces a paragraph; nothing if it is empty.
func lead(data string) g.Node {
	if data = words.Line(data, maxLine); data == "" {
		return nil
	}
	return g.Group{h.Strong(g.Text(data)), g.Text(" ")}
}

// line ends a line of the page's source.
func line(nodes ...g.Node) g.Node { return append(g.Group(nodes), g.Raw("\n")) }

func lines(data string) g.Node {
	content := g.Group{}
	for each := range strings.Lines(words.Lines(data, maxText)) {
		if each = strings.TrimSpace(each); each == "" {
			continue
		}
		if len(content) > 0 {
			content = append(content, line(h.Br()))
		}
		content = append(content, g.Text(each))
	}
	return content
}

// prose is text of one or more lines after an optional lead. Lines that are verbatim are a block of their own.
func prose(leading, data string) g.Node {
	content, before := g.Group{}, lead(leading)
	for _, block := range words.Blocks(words.Lines(data, maxText)) {
		if block.Verbatim {
			content = append(content, before, line(h.Pre(h.Code(g.Text(block.Text)))))
		} else {
			content = append(content, line(h.P(before, lines(block.Text))))
		}
		before = nil
	}
	return content
}
