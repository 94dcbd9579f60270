// Package html answers: how is a document written as one HTML page?
//
// A page is one file without scripts, links to elsewhere and requests. It is readable
// without its style sheet, which a Content-Security-Policy may forbid: the order, the
// headings and the tables carry everything, and pictures are drawn with attributes.
// Texts are data: they are made printable, bounded and escaped here.
package html

import (
	"crypto/sha256"
	_ "embed" // for page.css and page.tmpl
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
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

// Decision is the result of a document: a word with a level, and a sentence.
type Decision struct {
	Level Level
	Word  string
	Text  string
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

// Block is a part of a page: Section, Paragraph, Names, Command, Table, Fold, Steps,
// Timeline or Matrix.
type Block interface {
	// kind is the name of the template.
	kind() string
}

// Section is a part with a heading. Sections in sections have lower headings.
type Section struct {
	Title string
	// Mark is a result, shown with the heading; none if it has no word.
	Mark Decision
	// Anchor is what steps and pictures link to; empty for none.
	Anchor Anchor
	Blocks []Block

	level int
}

// Anchor is a place in a page.
type Anchor int

// ID is the identifier in HTML; empty for none.
func (a Anchor) ID() string {
	if a == 0 {
		return ""
	}
	return fmt.Sprintf("f%d", a)
}

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

func (Section) kind() string   { return "section" }
func (Paragraph) kind() string { return "paragraph" }
func (Names) kind() string     { return "names" }
func (Command) kind() string   { return "command" }
func (Table) kind() string     { return "table" }
func (Fold) kind() string      { return "fold" }
func (Steps) kind() string     { return "steps" }

const (
	// maxText bounds a text of lines, in bytes.
	maxText = 4 << 10
	// maxLine bounds a text on one line, in bytes.
	maxLine = 1 << 10
	// maxNames and maxRows bound lists.
	maxNames, maxRows = 200, 1000
	// maxLevel is the lowest heading of HTML.
	maxLevel = 6
)

// Level is that of the heading.
func (s Section) Level() int { return min(max(s.level, 2), maxLevel) }

// Inner are the blocks, with the levels of their headings.
func (s Section) Inner() []Block { return leveled(s.Blocks, s.Level()+1) }

// Sections are the blocks, with the levels of their headings.
func (d Document) Sections() []Block { return leveled(d.Blocks, 2) }

// leveled are blocks whose sections have headings of that level.
func leveled(blocks []Block, level int) []Block {
	set := make([]Block, 0, len(blocks))
	for _, block := range blocks {
		if section, ok := block.(Section); ok {
			section.level = level
			block = section
		}
		set = append(set, block)
	}
	return set
}

// Shown are the first names.
func (n Names) Shown() []string { return n.Names[:min(len(n.Names), maxNames)] }

// More is how many names are not shown.
func (n Names) More() int { return max(0, len(n.Names)-maxNames) }

// Shown are the first rows.
func (t Table) Shown() [][]string { return t.Rows[:min(len(t.Rows), maxRows)] }

// More is how many rows are not shown.
func (t Table) More() int { return max(0, len(t.Rows)-maxRows) }

//go:embed page.css
var style string

//go:embed page.tmpl
var source string

// page is what the template is executed with.
type page struct {
	Document

	Style  template.CSS
	Policy string
}

// Write writes the page.
func Write(w io.Writer, document Document) error {
	templates, err := template.New("page").Funcs(template.FuncMap{
		"kind":  func(b Block) string { return b.kind() },
		"line":  func(text string) string { return words.Line(text, maxLine) },
		"text":  func(text string) string { return strings.TrimSpace(words.Lines(text, maxText)) },
		"lines": splitLines,
	}).Parse(source)
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(style))
	return templates.Execute(w, page{
		Document: document, Style: template.CSS(style), //nolint:gosec // a constant
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'",
	})
}

// splitLines are the lines of a text, without empty ones.
func splitLines(text string) []string {
	var all []string
	for line := range strings.Lines(words.Lines(text, maxText)) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
