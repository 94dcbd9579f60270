// Package text answers: how is a document written as text for a terminal or a file?
//
// [Write] writes a document in a [Style]. Texts are made printable and bounded here; only the document's own text
// begins in the first column, never the text of a check.
package text

import (
	"fmt"
	"strings"
	"unicode"
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
	// Symbols adds non-ASCII characters to words.
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

// Ellipsis stands for omitted text.
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

// View returns the parts of a document that a text in the style shows.
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

const (
	// briefLines is the number of lines of a message, and of a remedy with commands, on a terminal without details,
	// and wholeLines the number of lines of a text that must be read as a whole: a message that a command confirms,
	// and a remedy without commands. The causes and commands of a few findings fit a terminal of 24 lines.
	briefLines, wholeLines = 2, 10
	briefCommands          = 2
	// maxOthers bounds the names of items that do not count, on a terminal.
	maxOthers = 3
)

// Item is an item in full, as text in a file.
func Item(of document.Item) string { return strings.Join(item(Style{}, of), "\n") + "\n" }

func item(style Style, item document.Item) []string {
	before := ""
	if item.Number > 0 {
		before = fmt.Sprintf("%2d. ", item.Number)
	}
	lines := []string{marked(style, before, item.Mark, strings.Join(item.Names, ", ")+" "+item.State)}
	most := briefLines
	if item.Whole {
		most = wholeLines
	}
	message, whole := prose(style, "", item.Message, most)
	item.Whole = item.Whole && !whole
	lines = append(append(lines, message...), remedy(style, item)...)
	for _, fact := range item.Facts {
		if !style.Brief() || fact.Brief {
			text, _ := prose(style, fact.Lead, fact.Text, briefLines)
			lines = append(lines, text...)
		}
	}
	return lines
}

// remedy returns the text of a remedy and its commands. On a terminal without details, omitted commands are
// counted: all of them if the message before them is truncated but must be whole.
func remedy(style Style, item document.Item) []string {
	most, shown := wholeLines, item.Commands
	if style.Brief() && len(shown) > 0 {
		most, shown = briefLines, briefly(item)
	}
	lines, _ := prose(style, "Fix:", item.Remedy, most)
	for _, each := range shown {
		lines = append(lines, command(style, hanging+strings.TrimPrefix(each.Lead+" ", " "), each.Text))
	}
	if more := len(item.Commands) - len(shown); more > 0 {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s+%s: %s", hanging, words.Count(more, "command"), style.Hint), ": "))
	}
	return lines
}

// briefly are the commands of an item on a terminal without details: all where they are few, or the first.
func briefly(item document.Item) []document.Command {
	switch {
	case item.Whole:
		return nil
	case len(item.Commands) <= briefCommands:
		return item.Commands
	}
	return item.Commands[:1]
}

// marked is a line that begins with a marked word, folded.
func marked(style Style, before string, mark document.Mark, rest string) string {
	mark.Word = words.Line(mark.Word, maxLine)
	plain := before + Style{Symbols: style.Symbols}.mark(mark) + "  "
	lines := wrap(plain, style.clean(rest), hanging, style.limit())
	return strings.TrimRight(before+style.mark(mark), " ") + strings.TrimPrefix(lines, strings.TrimRight(plain, " "))
}

// command is shown in full, to be copied. Its further lines have no indent: they may belong to a here-document.
func command(style Style, before, command string) string {
	return before + "$ " + style.ascii(words.Printable(strings.TrimSpace(command)))
}

// prose folds and shortens text after a lead; whole is false where it was shortened.
func prose(style Style, lead, text string, most int) (lines []string, whole bool) {
	text = style.ascii(strings.TrimSpace(words.Printable(text)))
	if text == "" {
		return nil, true
	}
	if lead != "" {
		lead = fmt.Sprintf("%-5s ", lead)
	}
	verbatim := map[int]bool{} // by index in lines
	for _, block := range words.Blocks(lead + text) {
		for line := range strings.SplitSeq(block.Text, "\n") {
			if block.Verbatim {
				verbatim[len(lines)] = true
				lines = append(lines, hanging+line)
				continue
			}
			lines = append(lines, folded(style, line)...)
		}
	}
	most *= max(1, usualColumns/style.Columns())
	if !style.Brief() || len(lines) <= most {
		return lines, true
	}
	if verbatim[most-1] {
		lines[most-1] = hanging // a part of it would be misleading
	}
	return shortened(style, lines, most), false
}

// folded is one line of an item, its spaces kept where it fits.
func folded(style Style, line string) []string {
	line = strings.TrimRight(line, " \t")
	if style.limit() == 0 || utf8.RuneCountInString(hanging+line) <= style.limit() {
		return []string{hanging + line}
	}
	return strings.Split(wrap(hanging, line, hanging, style.limit()), "\n")
}

// shortened are the first lines of a text, and a note about the others after the last whole word of these.
func shortened(style Style, lines []string, most int) []string {
	more := words.Count(len(lines)-most, "more line")
	rest := strings.TrimRight(style.Ellipsis()+" ("+more+": "+style.Hint, ": ") + ")"
	width := utf8.RuneCountInString(rest) + len("...") - utf8.RuneCountInString(style.Ellipsis()) // the same for both
	last, before := []rune(lines[most-1]), strings.Join(lines[:most-1], "\n")+"\n"
	room := utf8.RuneCountInString(before) + min(len(last), max(0, style.Columns()-width))
	kept := Beginning(strings.Join(lines, "\n"), room)
	if strings.TrimSpace(string(last)) == "" || strings.TrimSpace(kept) == "" {
		return append(lines[:most-1:most-1], hanging+rest)
	}
	return strings.Split(kept+rest, "\n")
}

// wrap breaks text between words into lines of at most limit characters: the first after
// first, the others after prefix. A longer word is broken too: what a terminal wraps would
// begin in its first column. A limit of 0 is none.
func wrap(first, text, prefix string, limit int) string {
	if limit == 0 {
		return first + strings.TrimSpace(text)
	}
	text = broken(text, limit-utf8.RuneCountInString(prefix))
	var lines []string
	line, start := first, first
	for word := range strings.FieldsSeq(text) {
		switch columns := utf8.RuneCountInString(line) + utf8.RuneCountInString(word); {
		case line == start && (start == prefix || columns <= limit):
			line += word
		case line != start && columns < limit:
			line += " " + word
		default:
			lines = append(lines, strings.TrimRight(line, " "))
			line, start = prefix+word, prefix
		}
	}
	return strings.Join(append(lines, line), "\n")
}

// broken is the text with spaces in words of more than limit characters.
func broken(text string, limit int) string {
	var parts strings.Builder
	run := 0
	for _, r := range text {
		switch {
		case r == ' ':
			run = 0
		case run == limit:
			parts.WriteByte(' ')
			run = 1
		default:
			run++
		}
		parts.WriteRune(r)
	}
	return parts.String()
}

// Beginning returns the longest beginning of a text, of at most that many characters, that ends with a word and
// leaves no quotation open: a part of a command would be another command. A first word that is longer is cut.
func Beginning(text string, most int) string {
	characters := []rune(text)
	if len(characters) <= most {
		return text
	}
	end := max(0, most)
	for end > 0 && !unicode.IsSpace(characters[end]) {
		end--
	}
	kept := strings.TrimRightFunc(string(characters[:end]), unicode.IsSpace)
	for _, quote := range []string{`"`, "`"} {
		if strings.Count(text, quote)%2 == 0 && strings.Count(kept, quote)%2 == 1 {
			return strings.TrimRightFunc(kept[:strings.LastIndex(kept, quote)], unicode.IsSpace)
		}
	}
	if strings.TrimSpace(kept) == "" {
		return string(characters[:max(0, most)])
	}
	return kept
}
