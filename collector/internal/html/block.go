package html

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/words"
)

// Block is a part of a page: Section, Paragraph, Names, Command, Table, Fold, Steps,
// Timeline, Matrix, Route or Ranges.
type Block interface {
	// node draws the block; its headings have that level or lower ones.
	node(level int) g.Node
}

// Section is a part with a heading. Sections in sections have lower headings.
type Section struct {
	Title string
	// Mark is a result, shown with the heading; none if it has no word.
	Mark Decision
	// Anchor is what steps and pictures link to; empty for none.
	Anchor Anchor
	Blocks []Block
}

// Anchor is a place in a page.
type Anchor int

// id is the identifier in HTML.
func (a Anchor) id() string { return fmt.Sprintf("f%d", a) }

// Paragraph is text of one or more lines after an optional lead.
type Paragraph struct{ Lead, Text string }

// Names are names after a lead. Those after the first 200 are counted.
type Names struct {
	Lead  string
	Names []string
}

// Command is to be copied.
type Command struct{ Text string }

// Table has a heading in the first cell of each row, and a heading for each column
// unless there are no columns. Rows after the first 1 000 are counted.
type Table struct {
	Caption string
	Columns []string
	Rows    [][]string
}

// Fold is closed until it is opened.
type Fold struct {
	Summary string
	Blocks  []Block
}

// Steps are to be taken in order.
type Steps []Step

// Step is text that links to a section.
type Step struct {
	Name, Text string
	To         Anchor
}

const (
	// maxNames and maxRows bound lists.
	maxNames, maxRows = 200, 1000
	// highest is the level of the headings below the title, and lowest that of HTML.
	highest, lowest = 2, 6
)

func nodes(blocks []Block, level int) g.Node {
	return g.Map(blocks, func(b Block) g.Node { return b.node(level) })
}

func (s Section) node(level int) g.Node {
	return line(h.Section(
		g.If(s.Anchor != 0, h.ID(s.Anchor.id())),
		g.If(s.Mark.Level != "", h.Class(string(s.Mark.Level))),
		line(),
		line(g.El(fmt.Sprintf("h%d", min(level, lowest)), s.heading())),
		nodes(s.Blocks, level+1),
	))
}

func (s Section) heading() g.Node {
	if s.Mark.Word == "" {
		return text(s.Title)
	}
	return g.Group{s.Mark.Level.icon(), g.Text(" "), text(s.Title), g.Text(" "), h.Small(text(s.Mark.Word))}
}

func (p Paragraph) node(int) g.Node {
	content, before := g.Group{}, lead(p.Lead)
	for _, block := range words.Blocks(words.Lines(p.Text, maxText)) {
		if block.Verbatim {
			content = append(content, before, line(h.Pre(h.Code(g.Text(block.Text)))))
		} else {
			content = append(content, line(h.P(before, lines(block.Text))))
		}
		before = nil
	}
	return content
}

func (n Names) node(int) g.Node {
	content := g.Group{lead(n.Lead)}
	for i, name := range n.Names[:min(len(n.Names), maxNames)] {
		content = append(content, g.If(i > 0, g.Text(", ")), h.Code(text(name)))
	}
	if more := len(n.Names) - maxNames; more > 0 {
		content = append(content, g.Textf(", and %d more", more))
	}
	return line(h.P(content))
}

func (c Command) node(int) g.Node {
	return line(h.Pre(h.Code(g.Text(strings.TrimSpace(words.Lines(c.Text, maxText))))))
}

func (t Table) node(int) g.Node {
	rows := t.Rows[:min(len(t.Rows), maxRows)]
	table := line(scroll(t.Caption, line(h.Table(
		line(),
		line(h.Caption(text(t.Caption))),
		g.If(len(t.Columns) > 0, line(h.THead(h.Tr(g.Map(t.Columns, func(column string) g.Node { return h.Th(h.Scope("col"), text(column)) }))))),
		h.TBody(line(), g.Map(rows, row)),
		line(),
	))))
	if more := len(t.Rows) - len(rows); more > 0 {
		return g.Group{table, line(h.P(g.Textf("%d more rows are left out here, since the page is bounded. The JSON document has all of them.", more)))}
	}
	return table
}

func row(cells []string) g.Node {
	content := g.Group{}
	for i, cell := range cells {
		if i == 0 {
			content = append(content, h.Th(h.Scope("row"), text(cell)))
			continue
		}
		content = append(content, h.Td(text(cell)))
	}
	return line(h.Tr(content))
}

// scroll contains what may be wider than the page, and can be reached with the keyboard.
func scroll(label string, content g.Node) g.Node {
	return h.Div(h.Class("scroll"), h.Role("region"), h.TabIndex("0"), h.Aria("label", words.Line(label, maxLine)), line(), content)
}

func (f Fold) node(level int) g.Node {
	return line(h.Details(line(), line(h.Summary(text(f.Summary))), nodes(f.Blocks, level)))
}

func (s Steps) node(int) g.Node {
	return line(h.Ol(line(), g.Map(s, Step.item)))
}

func (s Step) item() g.Node {
	name := text(s.Name)
	if s.To != 0 {
		name = h.A(h.Href("#"+s.To.id()), name)
	}
	return line(h.Li(name, g.If(s.Text != "", g.Text(": ")), lines(s.Text)))
}
