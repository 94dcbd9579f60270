package html

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/words"
)

// maxEntries, maxNames and maxRows bound lists.
const maxEntries, maxNames, maxRows = 200, 200, 1000

// writer makes the nodes of a page, and counts what is on it.
type writer struct {
	// size is the size of the texts of items, in bytes.
	size int
	// omitted counts the items for which there was no room.
	omitted int
	// anchors counts the items that can be linked to.
	anchors int
}

// blocks are the nodes of blocks, whose headings have that level or lower ones.
func (w *writer) blocks(blocks []document.Block, level int) g.Node {
	content := g.Group{}
	for _, each := range blocks {
		content = append(content, w.block(each, level))
	}
	return content
}

func (w *writer) block(b document.Block, level int) g.Node {
	switch b := b.(type) {
	case document.Verdict:
		return verdict(b)
	case document.Section:
		return section(b.Title, b.Mark, "", level, w.blocks(b.Blocks, level+1))
	case document.Paragraph:
		return line(h.P(text(b.Text)))
	case document.List:
		return list(b)
	case document.Command:
		return command(b)
	case document.Table:
		return table(b)
	case document.Items:
		return w.items(b, level)
	case document.Details:
		return line(h.Details(line(), line(h.Summary(text(strings.TrimSpace(b.Mark.Word+" "+b.Summary)))), w.blocks(b.Blocks, level)))
	case document.Picture:
		return drawing(b)
	case document.Excerpt:
		return g.Group{line(h.P(text(b.Lead))), line(h.Pre(g.Map(b.Lines, func(each string) g.Node { return line(text(each)) })))}
	}
	return nil
}

func verdict(v document.Verdict) g.Node {
	if v.Subject == "" {
		return line(h.P(h.Class("decision "+string(v.Level)), picture.Icon(v.Level), g.Text(" "), h.Strong(text(v.Word)), after(": ", v.Meaning)))
	}
	return g.Group{
		line(h.P(h.Class("decision "+string(v.Level)), picture.Icon(v.Level), g.Text(" "), h.Strong(text(v.Word)), after(" ", v.Subject))),
		g.If(v.Meaning != "", line(h.P(text(v.Meaning)))),
	}
}

// section is a part with a heading, whose anchor is empty for none.
func section(title string, mark document.Mark, anchor string, level int, content g.Node) g.Node {
	heading := g.Group{text(title)}
	if mark.Word != "" {
		heading = g.Group{picture.Icon(mark.Level), g.Text(" "), text(title), g.Text(" "), h.Small(text(mark.Word))}
	}
	return line(h.Section(
		g.If(anchor != "", h.ID(anchor)),
		g.If(mark.Level != "", h.Class(string(mark.Level))),
		line(),
		line(g.El(fmt.Sprintf("h%d", min(level, lowest)), heading)),
		content,
	))
}

func list(l document.List) g.Node {
	if l.Names {
		return names(l)
	}
	entries := l.Entries[:min(len(l.Entries), maxEntries)]
	return g.Group{
		g.If(l.Lead != "", line(h.P(text(l.Lead)))),
		line(h.Ul(line(), g.Map(entries, func(entry string) g.Node { return line(h.Li(lines(entry))) }))),
		more(len(l.Entries)-len(entries), "entries"),
	}
}

func names(l document.List) g.Node {
	content := g.Group{lead(l.Lead)}
	for i, name := range l.Entries[:min(len(l.Entries), maxNames)] {
		content = append(content, g.If(i > 0, g.Text(", ")), h.Code(text(name)))
	}
	if more := len(l.Entries) - maxNames; more > 0 {
		content = append(content, g.Textf(", and %d more", more))
	}
	return line(h.P(content))
}

// more states how many are left out; nothing for none.
func more(count int, noun string) g.Node {
	return g.If(count > 0, line(h.P(g.Textf("%d more %s are left out here, since the page is bounded. The JSON document has all of them.", count, noun))))
}

func command(c document.Command) g.Node {
	return g.Group{
		g.If(c.Lead != "", line(h.P(text(c.Lead)))),
		line(h.Pre(h.Code(g.Text(strings.TrimSpace(words.Lines(c.Text, maxText)))))),
	}
}

func table(t document.Table) g.Node {
	if len(t.Rows) == 0 {
		return nil
	}
	rows := t.Rows[:min(len(t.Rows), maxRows)]
	column := func(name string) g.Node { return h.Th(h.Scope("col"), text(name)) }
	return g.Group{
		line(scroll(t.Title, line(h.Table(
			line(),
			g.If(t.Title != "", line(h.Caption(text(t.Title)))),
			g.If(len(t.Columns) > 0, line(h.THead(h.Tr(g.Map(t.Columns, column))))),
			h.TBody(line(), g.Map(rows, row)),
			line(),
		)))),
		more(len(t.Rows)-len(rows), "rows"),
	}
}

func row(cells []string) g.Node {
	content := g.Group{}
	for i, cell := range cells {
		if i == 0 {
			content = append(content, h.Th(h.Scope("row"), text(cell)))
			continue
		}
		content = append(content, h.Td(lines(cell)))
	}
	return line(h.Tr(content))
}

// scroll contains what may be wider than the page, and can be reached with the keyboard.
func scroll(label string, content g.Node) g.Node {
	return h.Div(h.Class("scroll"), h.Role("region"), h.TabIndex("0"), g.If(label != "", h.Aria("label", words.Line(label, maxLine))), line(), content)
}

func drawing(p document.Picture) g.Node {
	return g.Group{
		h.Figure(
			line(),
			line(scroll(p.Title, line(p.Drawing))),
			line(h.FigCaption(text(strings.TrimSpace(p.Title+". "+p.Legend)))),
		),
		line(),
		table(p.Table),
	}
}
