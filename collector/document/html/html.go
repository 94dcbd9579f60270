// Package html answers: how is a document written as one HTML page?
//
// [Write] writes one file without scripts, links to elsewhere and requests. It is readable without its style
// sheet, which a Content-Security-Policy may forbid: the order, the headings and the tables carry everything, and
// pictures are drawn with attributes. Texts are data: they are made printable, bounded and escaped here. A page
// that is too large is cut, and says so.
package html

import (
	"crypto/sha256"
	_ "embed" // for page.css
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/words"
)

//go:embed page.css
var style string

// highest is the level of the headings below the title, and lowest the lowest level of HTML.
const highest, lowest = 2, 6

// Policy is the Content-Security-Policy of a page: it allows only its own style. A page contains its policy; a
// server of pages sends it as well, and adds what a page cannot set (frame-ancestors).
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
	return g.If(count > 0, line(h.P(g.Textf("%d more %s are omitted here because the page is bounded. The JSON document has all of them.",
		count, noun))))
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
	return h.Div(h.Class("scroll"), h.Role("region"), h.TabIndex("0"), g.If(label != "", h.Aria("label", words.Line(label, maxLine))), line(),
		content)
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

const (
	// maxItems bounds the texts of all items of a page, in bytes.
	maxItems = 1 << 20
	// maxSteps bounds the list of what to do, and maxCommands the commands of an item.
	maxSteps, maxCommands = 50, 20
)

// items are sections of the items, each group under its heading, after a list that links to those that count.
func (w *writer) items(items document.Items, level int) g.Node {
	content, steps := g.Group{}, g.Group{}
	for first := 0; first < len(items.Entries); {
		group, members := items.Entries[first].Group, g.Group{}
		below := level
		if group != "" {
			below++
		}
		for ; first < len(items.Entries) && items.Entries[first].Group == group; first++ {
			each := items.Entries[first]
			if !w.fits(each) {
				continue
			}
			members = append(members, w.item(each, below))
			if each.Counts {
				steps = append(steps, w.step(each))
			}
		}
		switch {
		case len(members) == 0:
		case group == "":
			content = append(content, members)
		default:
			content = append(content, section(group, document.Mark{}, "", level, members))
		}
	}
	return g.Group{todo(items.Lead, steps, level), content, more(items.More, "entries")}
}

// todo is a list of steps after a lead; nothing without either.
func todo(lead string, steps g.Group, level int) g.Node {
	if lead == "" || len(steps) == 0 {
		return nil
	}
	shown := steps[:min(len(steps), maxSteps)]
	return section("What to do", document.Mark{}, "", level, g.Group{
		line(h.P(text(lead))), line(h.Ol(line(), shown)),
		g.If(len(steps) > len(shown), line(h.P(g.Textf("And %d more, below.", len(steps)-len(shown))))),
	})
}

// step is a link to the item that was written last.
func (w *writer) step(item document.Item) g.Node {
	name, text := strings.Join(item.Names, ", "), item.Remedy
	if text == "" {
		text = item.Message
	}
	return line(h.Li(h.A(h.Href("#"+w.anchor()), g.Text(words.Line(name, maxLine))), g.If(text != "", g.Text(": ")), lines(text)))
}

// anchor is the ID of the item that was written last.
func (w *writer) anchor() string { return fmt.Sprintf("f%d", w.anchors) }

func (w *writer) item(item document.Item, level int) g.Node {
	w.anchors++
	title := strings.Join(item.Names, ", ")
	if item.Number > 0 {
		title = fmt.Sprintf("%d. %s", item.Number, title)
	}
	content := g.Group{prose("", item.Message), prose("Fix:", item.Remedy)}
	for _, each := range item.Commands[:min(len(item.Commands), maxCommands)] {
		content = append(content, command(each))
	}
	for _, fact := range item.Facts {
		content = append(content, prose(fact.Lead, fact.Text))
	}
	mark := document.Mark{Level: item.Mark.Level, Word: item.Mark.Word + " " + item.State}
	return section(title, mark, w.anchor(), level, append(content, table(item.Evidence)))
}

func (w *writer) fits(item document.Item) bool {
	size := 512 + len(item.Message) + len(item.Remedy) + len(item.State)
	for _, each := range item.Names {
		size += len(each)
	}
	for _, each := range item.Commands {
		size += len(each.Lead) + len(each.Text)
	}
	for _, fact := range item.Facts {
		size += len(fact.Text)
	}
	for _, row := range item.Evidence.Rows {
		size += len(row[0]) + len(row[1])
	}
	if w.size+size > maxItems {
		w.omitted++
		return false
	}
	w.size += size
	return true
}

// left states how many items had no room.
func (w *writer) left() g.Node { return more(w.omitted, "findings") }
