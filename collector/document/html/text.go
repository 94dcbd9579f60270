package html

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/words"
)

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
