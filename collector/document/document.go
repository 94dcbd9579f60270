// Package document answers: which parts does a document for people consist of?
//
// A value that people read implements [Source]: it lists the blocks of its [Document], in the
// order in which they are read. A writer for a format writes every block, so a document states
// nothing about formats. Texts are data: a writer bounds them, makes them printable and escapes
// them for its format.
package document

import "cmp"

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
	Blocks  []Block
}

// Compact is the document without blocks that have no content. A writer writes such a document.
func (d Document) Compact() Document {
	d.Blocks = compact(d.Blocks)
	return d
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
// Details, Picture or Conclusion.
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

// Command is to be copied, with its lines. Lead may be empty.
type Command struct{ Lead, Text string }

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
func (Conclusion) block() {}
