package document

import (
	"cmp"
	"io"
	"strings"
)

// Items are findings, risks or changes.
type Items struct {
	// Lead introduces a list of those that count against the update, on a page; empty for none.
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
	// Names are what the item is about. State follows them on the same line.
	Names []string
	State string
	// Counts is true for an item that counts against the update: beside it, others are less important.
	Counts bool
	// Message and Remedy may have lines. Commands are the remedy's; each may have a lead.
	Message, Remedy string
	Commands        []Command
	// Whole is true where the commands confirm what the message requires: they are not shown below a part of it.
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
