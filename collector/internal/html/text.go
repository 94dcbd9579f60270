package html

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/words"
)

// maxText bounds a text of lines, in bytes.
const maxText = 4 << 10

// maxLine bounds a text on one line, in bytes.
const maxLine = 1 << 10

// text is data on one line.
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

// lines are the lines of a text, below each other.
func lines(data string) g.Node {
	content := g.Group{}
	for i, each := range splitLines(data) {
		if i > 0 {
			content = append(content, line(h.Br()))
		}
		content = append(content, g.Text(each))
	}
	return content
}

// splitLines are the lines of a text, without empty ones.
func splitLines(data string) []string {
	var all []string
	for each := range strings.Lines(words.Lines(data, maxText)) {
		if each = strings.TrimSpace(each); each != "" {
			all = append(all, each)
		}
	}
	return all
}
