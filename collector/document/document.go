// Package document answers: which parts does a document for people consist of?
//
// A value that people read implements [Source]: it lists the blocks of its [Document], in the
// order in which they are read. A writer for a format writes every block, so a document states
// nothing about formats. Texts are data: a writer bounds them, makes them printable and escapes
// them for its format.
package document

import (
	"cmp"
	"fmt"
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
	// Brief leaves out what does not change what to do: a terminal is small.
	Brief bool
	// Full has all columns and entries, pictures, and where a document comes from: a page stands alone.
	Full bool
	// Limit is the most entries of a long list; 0 is its default, and a negative one lists all.
	Limit int
}

// Entries is how many of a number of entries are listed, where standard is the default limit; 0 is none.
func (v View) Entries(number, standard int) int {
	limit := cmp.Or(v.Limit, standard)
	if v.Full || limit <= 0 {
		return number
	}
	return min(number, limit)
}

// Document is a document.
type Document struct {
	// Title and Source, which states where the document comes from, are those of a page: a
	// text follows the command that asks for it.
	Title, Source string
	// Cluster is the ID of the cluster that the document is about; empty for none, several, or one without an ID.
	Cluster string
	// Time is when the cluster was read, or the newest time of its archive, RFC 3339 in UTC; empty where it is not known.
	Time   string
	Ticket Ticket
	Blocks []Block
}

// Ticket is what a change ticket needs of a document, beside the cluster.
type Ticket struct {
	// Verdict is the result in one line that stands alone; a document without one has no ticket.
	Verdict string
	// Until is until when it holds; empty where that is not limited, or it does not hold.
	Until string
	// By is who made it: the program, with the user where that is known.
	By string
	// Next is the next step; empty for that of the first item that counts, or else the first command.
	Next string
}

// Complete is the document that is written: without blocks that have no content, with the cluster first and the ticket
// last, whose last line is the verdict. reached is how the cluster is reached; empty where that is not known.
func (d Document) Complete(reached string, view View) Document {
	id, time := d.Cluster, d.Time
	if view.Brief { // the ticket has the whole ID, and the first line the time
		id, _, _ = strings.Cut(id, "-")
		time = ""
	}
	ticket := d.Ticket.excerpt(about(d.Cluster, reached, time), cmp.Or(d.Ticket.Next, next(d.Blocks)))
	d.Blocks = compact(slices.Concat([]Block{Paragraph{Text: about(id, reached, d.Time)}}, d.Blocks, []Block{ticket}))
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

func compact(blocks []Block) []Block {
	var kept []Block
	for _, each := range blocks {
		if section, ok := each.(Section); ok {
			section.Blocks = compact(section.Blocks)
			each = section
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
// Details, Picture, Excerpt or Conclusion.
type Block interface{ block() }

// Verdict is the result of the document, or of a section.
type Verdict struct {
	Mark

	// Subject is what it is about; empty where Meaning states that.
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
	// Names is true for entries that are names, which are listed side by side.
	Names bool
}

// Shortened is a list of as many entries as the view has, standard by default, and how many more there are.
func Shortened(lead string, all []string, view View, standard int) List {
	shown := view.Entries(len(all), standard)
	kept := all[:shown:shown]
	if more := len(all) - shown; more > 0 {
		kept = append(kept, fmt.Sprintf("and %d more", more))
	}
	return List{Lead: lead, Entries: kept}
}

// Command is to be copied, with its lines. Lead may be empty.
type Command struct {
	Lead, Text string
	// Accepts is true for one that accepts or acknowledges what is stated: a choice of who reads that, and no next step.
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
	// Whole is true where the table is all of a text: its columns are named also without rows,
	// and a row is never cut to fit a terminal.
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

// Picture is drawn where that is possible. A format without drawings has the text, or the
// table where the text is empty; a page has the drawing and the table.
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

// Conclusion is the result again, in one line that stands alone.
type Conclusion struct{ Text string }

func (Verdict) block()    {}
func (Section) block()    {}
func (Paragraph) block()  {}
func (List) block()       {}
func (Command) block()    {}
func (Table) block()      {}
func (Items) block()      {}
func (Details) block()    {}
func (Picture) block()    {}
func (Excerpt) block()    {}
func (Conclusion) block() {}
