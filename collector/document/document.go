// Package document answers: which parts does a document for people consist of?
//
// A value that people read implements [Source]: it lists the blocks of its [Document] in reading order. A writer
// for a format writes every block, so a document does not depend on formats. Texts are data: a writer bounds them,
// makes them printable and escapes them for its format.
package document

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
)

// Source is a value that has a document.
type Source interface {
	Document(view View) Document
}

// View is how much of a document is shown. Its zero value is for a text in a file.
type View struct {
	// Brief omits everything that does not change what to do, because a terminal is small.
	Brief bool
	// Full includes all columns and entries, pictures, and the origin of the document, because a page is read on its
	// own.
	Full bool
	// Limit is the most entries of a long list; 0 is its default, and a negative one lists all.
	Limit int
}

// Entries returns how many of a number of entries to list, where standard is the default limit; 0 means no limit.
func (v View) Entries(number, standard int) int {
	limit := cmp.Or(v.Limit, standard)
	if v.Full || limit <= 0 {
		return number
	}
	return min(number, limit)
}

// Document is a document.
type Document struct {
	// Title and Source, which names the origin of the document, belong to a page: a text follows the command that asks
	// for it.
	Title, Source string
	// Cluster is the ID of the cluster that the document is about; empty for none, several, or one without an ID.
	Cluster string
	// Time is when the cluster was read, or the newest time of its archive, RFC 3339 in UTC; empty if unknown.
	Time   string
	Ticket Ticket
	Blocks []Block
}

// Ticket contains the parts of a document that a change ticket needs, besides the cluster.
type Ticket struct {
	// Verdict is the result in one line that stands alone; a document without one has no ticket.
	Verdict string
	// Until is when the verdict expires; empty if it has no limit, or no longer holds.
	Until string
	// By is who made it: the program, and the user if known.
	By string
	// Next is the next step; if empty, it is the next step of the first item that counts, or else the first command.
	Next string
}

// Complete returns the document as it is written: without empty blocks, with the cluster first and the ticket
// last, whose last line is the verdict. reached says how the cluster is reached; empty if unknown.
func (d Document) Complete(reached string, view View) Document {
	id, time := d.Cluster, d.Time
	if view.Brief { // the ticket has the whole ID, and the first line the time
		id, _, _ = strings.Cut(id, "-")
		time = ""
	}
	ticket := d.Ticket.excerpt(about(d.Cluster, reached, time), cmp.Or(d.Ticket.Next, next(d.Blocks)))
	d.Blocks = compact(slices.Concat([]Block{Paragraph{Text: about(id, reached, d.Time)}}, d.Blocks, []Block{ticket}), view)
	return d
}

// about is the line that names the cluster; empty without one.
func about(id, reached, time string) string {
	named := slices.DeleteFunc([]string{id, reached}, func(text string) bool { return text == "" })
	if len(named) == 0 {
		return ""
	}
	return strings.TrimSuffix("Cluster: "+strings.Join(named, ", ")+", as of "+time, ", as of ")
}

func (t Ticket) excerpt(about, next string) Excerpt {
	if t.Verdict == "" {
		return Excerpt{}
	}
	made := Excerpt{Lead: "For a change ticket:"}
	for _, each := range [][2]string{{"", about}, {"Made by: ", t.By}, {"Holds until: ", t.Until}, {"Next: ", next}, {"", t.Verdict}} {
		if each[1] != "" {
			made.Lines = append(made.Lines, each[0]+each[1])
		}
	}
	return made
}

// next is the step of the first item that counts, or else the first command that decides nothing; empty for none.
func next(blocks []Block) string {
	command := ""
	for _, each := range blocks {
		switch b := each.(type) {
		case Section:
			if found := next(b.Blocks); found != "" {
				return found
			}
		case Items:
			if at := slices.IndexFunc(b.Entries, func(i Item) bool { return i.Counts }); at >= 0 {
				return b.Entries[at].next()
			}
		case Command:
			if command == "" {
				command = b.step()
			}
		}
	}
	return command
}

func compact(blocks []Block, view View) []Block {
	var kept []Block
	for _, each := range blocks {
		if section, ok := each.(Section); ok {
			section.Blocks = compact(section.Blocks, view)
			each = section
		}
		if list, ok := each.(List); ok && list.Most > 0 {
			each = list.shortened(view)
		}
		if !empty(each) {
			kept = append(kept, each)
		}
	}
	return kept
}

func empty(b Block) bool {
	switch b := b.(type) {
	case Paragraph:
		return b.Text == ""
	case Excerpt:
		return len(b.Lines) == 0
	case List:
		return len(b.Entries) == 0
	case Table:
		return len(b.Rows) == 0 && !b.Whole
	case Items:
		return len(b.Entries) == 0
	}
	return false
}

// Block is a part of a document: Verdict, Section, Paragraph, List, Command, Table, Items,
// Details, Picture or Excerpt.
type Block interface{ block() }

// Verdict is the result of the document, or of a section.
type Verdict struct {
	Mark

	// Subject names the subject of the verdict; empty if Meaning does.
	Subject string
	// Meaning is a sentence.
	Meaning string
}

// Section is a part with a heading. Sections in sections have lower headings.
type Section struct {
	Title string
	// Mark is a result, shown with the heading on a page; none if it has no word.
	Mark   Mark
	Blocks []Block
}

// Paragraph is text on one line.
type Paragraph struct{ Text string }

// List are entries after a lead.
type List struct {
	Lead    string
	Entries []string
	// Most is the number of entries to list if the view has no limit of its own; 0 for all.
	Most int
	// Names is true for entries that are names, which are listed side by side.
	Names bool
}

// shortened is the list with the entries of the view, and how many more there are.
func (l List) shortened(view View) List {
	shown := view.Entries(len(l.Entries), l.Most)
	if more := len(l.Entries) - shown; more > 0 {
		l.Entries = append(slices.Clone(l.Entries[:shown]), fmt.Sprintf("and %d more", more))
	}
	return l
}

// Command is a command to copy, with its lines. Lead may be empty.
type Command struct {
	Lead, Text string
	// Accepts is true for a command that accepts or acknowledges something: the reader's choice, and not a next step.
	Accepts bool
}

// maxStep bounds a command that is a line of a ticket, in bytes: a part of one would be another command.
const maxStep = 512

// step is the command as a line; empty for one that is no step, or that a line would change.
func (c Command) step() string {
	if c.Accepts || c.Text == "" || words.Line(c.Text, maxStep) != c.Text {
		return ""
	}
	return "$ " + c.Text
}

// Table has the name of a row in its first column.
type Table struct {
	Title string
	// Columns are headings. A table of names and values has none; its values may have lines.
	Columns []string
	// Result is the heading of the column whose words are results; empty for none.
	Result string
	Rows   [][]string
	// Whole is true if the table is the whole text: its columns are named even without rows, and a row is never cut to
	// fit a terminal.
	Whole bool
	// More counts the rows that are left out of the view.
	More int
}

// Row adds a row with a name and a value, unless the value is empty.
func (t *Table) Row(name, value string) {
	if value != "" {
		t.Rows = append(t.Rows, []string{name, value})
	}
}

// Details need no attention. They are closed, or replaced by their summary, until they are asked for.
type Details struct {
	Mark    Mark
	Summary string
	Blocks  []Block
}

// Picture is drawn if possible. A format without drawings shows the text, or the table if the text is empty; a
// page shows the drawing and the table.
type Picture struct {
	// Title names the picture, and Legend explains it.
	Title, Legend string
	Drawing       Drawing
	Text          string
	Table         Table
}

// Excerpt are lines to be copied as they are, one for each.
type Excerpt struct {
	Lead  string
	Lines []string
}

func (Verdict) block()   {}
func (Section) block()   {}
func (Paragraph) block() {}
func (List) block()      {}
func (Command) block()   {}
func (Table) block()     {}
func (Items) block()     {}
func (Details) block()   {}
func (Picture) block()   {}
func (Excerpt) block()   {}

// Items are findings, risks or changes.
type Items struct {
	// Lead introduces, on a page, a list of the items that count against the update; empty for none.
	Lead    string
	Entries []Item
	// More counts the entries that are left out of the view.
	More int
}

// Item is a finding, a risk or a change.
type Item struct {
	// Group is the heading, on a page, of this item and those after it of the same group.
	Group string
	// Number is the place in a list; 0 for an item without one.
	Number int
	Mark   Mark
	// Names identify the subject of the item. State follows them on the same line.
	Names []string
	State string
	// Counts is true for an item that counts against the update: others are less important.
	Counts bool
	// Message and Remedy may have lines. Commands are the remedy's; each may have a lead.
	Message, Remedy string
	Commands        []Command
	// Whole is true if the commands confirm what the message requires: they are not shown below a truncated message.
	Whole bool
	Facts []Fact
	// Evidence is for a page alone.
	Evidence Table
}

// Fact is about an item. It is on one line where Text is.
type Fact struct {
	Lead, Text string
	// Brief is true for a fact that is part of a brief view.
	Brief bool
}

// next is the next step for the item: its first command that is one, with its lead, or the sentence of its remedy, also
// where a message has to be read first.
func (i Item) next() string {
	for _, each := range i.Commands {
		if step := each.step(); step != "" && !i.Whole {
			return strings.TrimPrefix(each.Lead+" ", " ") + step
		}
	}
	return cmp.Or(i.Remedy, "Read about "+strings.Join(i.Names, ", ")+".")
}

// Fact adds a fact, unless its text is empty.
func (i *Item) Fact(lead, text string) {
	if text != "" {
		i.Facts = append(i.Facts, Fact{Lead: lead, Text: text})
	}
}

// Mark is a result: a word, with a level that gives it its shape and color.
type Mark struct {
	Level Level
	Word  string
}

// Level is the shape and color of a result, which always has a word too.
type Level string

// The levels.
const (
	Good    Level = "good"
	Bad     Level = "bad"
	Unclear Level = "unclear"
	Caution Level = "caution"
	Neutral Level = "neutral"
)

// Drawing is written as SVG.
type Drawing interface {
	Render(w io.Writer) error
}
