// Package text answers: how is a document written as text for a terminal or a file?
//
// [Write] writes a document in a [Style]. Texts are made printable and bounded here; only what
// a document states begins in the first column, not what a check reports.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

// Style is the layout of text. Its zero value is for a file or a pipe:
// paragraphs are one line each, so that grep finds them, without color and symbols.
type Style struct {
	// Width is the number of columns of a terminal; 0 for a file or a pipe. Paragraphs
	// are folded at 40 to 120 columns.
	Width int
	// Color adds ANSI colors to words that have the same meaning without them.
	Color bool
	// Symbols adds characters outside of ASCII beside words.
	Symbols bool
	// Details adds what needs no attention: what passed by name, every fact of a finding, and long texts in full.
	Details bool
	// Hint names what adds details, such as a flag; empty for none.
	Hint string
	// Limit is the most entries of a list; 0 is its default, and a negative one lists all.
	// AllHint names what lists all, such as a flag; empty for none.
	Limit   int
	AllHint string
	// Cluster is how the cluster of a document is reached, such as its API server and the context, for
	// [document.Document.Complete]; empty for a document without a cluster.
	Cluster string
}

const (
	// narrowest and widest bound the columns of a folded paragraph.
	narrowest, widest = 40, 120
	listColumns       = 98
	// usualColumns is the width that the numbers of lines are for; narrower ones have more.
	usualColumns = 80
)

// Columns is the number of columns for lists and tables.
func (s Style) Columns() int {
	if s.Width == 0 {
		return listColumns
	}
	return min(max(s.Width, narrowest), widest)
}

func (s Style) more(number int) string {
	return strings.TrimSuffix(fmt.Sprintf("... and %d more (%s)", number, s.AllHint), " ()")
}

// limit is the number of columns of folded text; 0 in a file or a pipe, where each paragraph is one line.
func (s Style) limit() int {
	if s.Width == 0 {
		return 0
	}
	return s.Columns()
}

func (s Style) clean(text string) string { return s.ascii(words.Line(text, maxLine)) }

// Brief reports whether texts are shortened to fit a terminal.
func (s Style) Brief() bool { return s.Width > 0 && !s.Details }

// clip is a row of a table on one line of a terminal, cut at the end of a word.
func (s Style) clip(row string) (line string, cut bool) {
	if s.Width == 0 || utf8.RuneCountInString(row) <= s.Columns() {
		return row, false
	}
	more := " " + s.Ellipsis()
	return Beginning(row, s.Columns()-utf8.RuneCountInString(more)) + more, true
}

// Ellipsis stands for what is left out.
func (s Style) Ellipsis() string {
	if s.Symbols {
		return "…"
	}
	return "..."
}

// ascii replaces the arrow between two versions, and for a terminal that may not have them
// the symbols in data, such as the ellipsis of a shortened message.
func (s Style) ascii(text string) string {
	switch {
	case s.Symbols:
		return text
	case s.Width == 0:
		return strings.ReplaceAll(text, " → ", " -> ")
	}
	return strings.NewReplacer("…", "...", "→", "->").Replace(text)
}

// View is what a text in the style shows of a document.
func (s Style) View() document.View { return document.View{Brief: s.Brief(), Limit: s.Limit} }

// mark is Mark for a result whose word may be any.
func (s Style) mark(m document.Mark) string {
	has := markOf(m.Word)
	if has.symbol == "" {
		has = levelMark(m.Level)
	}
	return s.with(has, m.Word)
}

func levelMark(level document.Level) mark {
	switch level {
	case document.Good:
		return markOf("PASS")
	case document.Bad:
		return markOf("FAIL")
	case document.Unclear:
		return markOf("UNKNOWN")
	case document.Caution:
		return markOf("WARN")
	case document.Neutral:
	}
	return mark{}
}

type mark struct{ symbol, color string }

// The colors that terminals let their user choose (ECMA-48).
const (
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	magenta = "\x1b[35m"
	reset   = "\x1b[0m"
)

// markOf is the mark of a label of a finding, or of a decision. A word without one is not marked.
func markOf(word string) mark {
	switch strings.ToUpper(word) {
	case "FAIL", "BLOCKED", "BLOCKED SO FAR":
		return mark{"✗", red}
	case "UNKNOWN", "UNDECIDED", "UNVERIFIED":
		return mark{"?", yellow}
	case "WARN", "OUTDATED":
		return mark{"!", yellow}
	case "FORCED", "READY (FORCED)", "BLOCKED (FORCED)", "UNDECIDED (FORCED)":
		return mark{"!", magenta}
	case "PASS", "READY", "CLEAR":
		return mark{"✓", green}
	case "RUNNING":
		return mark{"…", ""}
	}
	return mark{}
}

// symbol is a word with its symbol, for a table. Of several words the first decides.
func (s Style) symbol(word string) string {
	first, rest, _ := strings.Cut(word, " ")
	has := markOf(first)
	if !s.Symbols || has.symbol == "" {
		return word
	}
	if rest != "" { // what limits the word limits its symbol
		has.symbol = "!"
	}
	return has.symbol + " " + word
}

// Mark is a word with its symbol and color. The word itself is always there.
func (s Style) Mark(word string) string { return s.with(markOf(word), word) }

func (s Style) with(has mark, word string) string {
	if s.Symbols && has.symbol != "" {
		word = has.symbol + " " + word
	}
	if s.Color && has.color != "" {
		word = has.color + word + reset
	}
	return word
}
