package page

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/finding"
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
	// Details adds what needs no attention: what passed by name, every fact of a finding,
	// and long texts in full.
	Details bool
	// Hint names what adds details, such as a flag; empty for none.
	Hint string
	// Limit is the most entries of a list; 0 is its default, and a negative one lists all.
	// AllHint names what lists all, such as a flag; empty for none.
	Limit   int
	AllHint string
}

const (
	// narrowest and widest bound the columns of a folded paragraph.
	narrowest, widest = 40, 120
	// listColumns are those of lists in a file or a pipe.
	listColumns = 98
	// briefLines is the number of lines of a message on a terminal without details, and
	// remedyLines that of a remedy: it has commands. The causes and commands of a few
	// findings fit a terminal of 24 lines.
	briefLines, remedyLines = 2, 10
	// usualColumns is the width that these numbers are for; narrower ones have more lines.
	usualColumns = 80
)

// Columns is the number of columns for lists and tables.
func (s Style) Columns() int {
	if s.Width == 0 {
		return listColumns
	}
	return min(max(s.Width, narrowest), widest)
}

// Entries is how many of a number of entries are listed, where standard is the default
// limit; 0 is none.
func (s Style) Entries(number, standard int) int {
	limit := cmp.Or(s.Limit, standard)
	if limit <= 0 {
		return number
	}
	return min(number, limit)
}

// More is the line that counts entries which are left out.
func (s Style) More(number int) string {
	return strings.TrimSuffix(fmt.Sprintf("... and %d more (%s)", number, s.AllHint), " ()")
}

// Brief reports whether texts are shortened to fit a terminal.
func (s Style) Brief() bool { return s.Width > 0 && !s.Details }

// Clip is the row of a table in one line of a terminal.
func (s Style) Clip(row string) string {
	characters := []rune(row)
	if s.Width == 0 || len(characters) <= s.Columns() {
		return row
	}
	return string(characters[:s.Columns()-1]) + "…"
}

// Arrow stands between two versions.
func (s Style) Arrow() string {
	if s.Symbols {
		return "→"
	}
	return "->"
}

// mark is the symbol and the color of a word.
type mark struct{ symbol, color string }

// The colors are those that terminals let their user choose (ECMA-48).
const (
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	magenta = "\x1b[35m"
	reset   = "\x1b[0m"
)

// markOf is the mark of a label of a finding, or of a decision. A word without one is
// not marked.
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

// Symbol is a word with its symbol, for a table. Of several words the first decides.
func (s Style) Symbol(word string) string {
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
func (s Style) Mark(word string) string {
	has := markOf(word)
	if s.Symbols && has.symbol != "" {
		word = has.symbol + " " + word
	}
	if s.Color && has.color != "" {
		word = has.color + word + reset
	}
	return word
}

// New is an empty page in a style.
func New(style Style) *Page { return &Page{style: style} }

// Style is that of the page.
func (p *Page) Style() Style { return p.style }

// Marked writes a line that begins with a marked word. Lines that do not fit a terminal
// continue under a hanging indent.
func (p *Page) Marked(before, word, rest string) {
	word = words.Line(word, maxLine)
	lead, text := before+p.style.Mark(word)+"  ", words.Line(rest, maxLine)
	if p.style.Width > 0 {
		plain := before + Style{Symbols: p.style.Symbols}.Mark(word) + "  "
		limit := p.style.Columns()
		text = strings.TrimPrefix(hang(plain, broken(text, limit-len(hanging)), hanging, limit), strings.TrimRight(plain, " "))
		lead, text = strings.TrimRight(lead, " "), strings.TrimRight(text, " ")
	}
	fmt.Fprintf(&p.buffer, "%s\n", strings.TrimRight(lead+text, " "))
}

// hanging is the indent of what belongs to an item.
const hanging = "    "

// Item writes a finding that is one of a list, for all of names; number 0 is none.
func (p *Page) Item(number int, names []string, f finding.Finding) {
	before := hanging
	if number > 0 {
		before = fmt.Sprintf("%2d. ", number)
	}
	p.Marked(before, Label(f), fmt.Sprintf("%s (%s)%s", strings.Join(names, ", "), f.Reason, note(f)))
	p.text("", f.Message, briefLines)
	if f.Bypass == nil {
		p.remedy(f)
	}
	p.facts(f)
	if !p.style.Brief() {
		p.Line("")
	}
}

// remedy writes what to do: on a terminal without details the first command, or the text
// where there is none.
func (p *Page) remedy(f finding.Finding) {
	var commands []string
	for _, action := range f.Actions {
		if action.Command != "" {
			commands = append(commands, action.Command)
		}
	}
	if p.style.Brief() && len(commands) > 0 {
		p.Command(hanging, commands[0])
		return
	}
	p.text("Fix:  ", f.Remediation, remedyLines)
	for _, command := range commands {
		p.Command(hanging, command)
	}
}

// facts writes what supports a finding: on a terminal only with details.
func (p *Page) facts(f finding.Finding) {
	if p.style.Brief() {
		return
	}
	p.text("See:  ", f.URL, briefLines)
	for _, object := range f.Objects {
		p.text("About: ", describe(object), briefLines)
	}
	if f.Job != nil && f.Job.Name != "" {
		p.text("Job:  ", f.Job.Namespace+"/"+f.Job.Name+onNode(f.Job.Node), briefLines)
	}
}

// Command writes a command line in full, so that it can be copied.
func (p *Page) Command(before, command string) {
	p.Line("%s$ %s", before, words.Line(command, maxLine))
}

// text writes a paragraph of an item, folded and shortened to that many lines to fit a
// terminal.
func (p *Page) text(lead, text string, most int) {
	text = strings.TrimSpace(words.Printable(text))
	if text == "" {
		return
	}
	var lines []string
	for line := range strings.SplitSeq(lead+text, "\n") {
		lines = append(lines, strings.Split(p.fold(line, hanging), "\n")...)
	}
	most *= max(1, usualColumns/p.style.Columns())
	if p.style.Brief() && len(lines) > most {
		more := "1 more line"
		if left := len(lines) - most; left > 1 {
			more = fmt.Sprintf("%d more lines", left)
		}
		rest := strings.TrimRight("… ("+more+": "+p.style.Hint, ": ") + ")"
		last := []rune(lines[most-1])
		lines = append(lines[:most-1], string(last[:max(0, min(len(last), p.style.Columns()-utf8.RuneCountInString(rest)))])+rest)
	}
	p.Line("%s", strings.Join(lines, "\n"))
}

// Paragraphs writes text from the first column, folded to fit a terminal.
func (p *Page) Paragraphs(text string) { p.Line("%s", p.fold(words.Line(text, maxLine), "")) }

// fold breaks one line to fit a terminal, each part after a prefix. A longer word is
// broken too: what a terminal wraps would begin in its first column.
func (p *Page) fold(line, prefix string) string {
	line = strings.TrimRight(line, " \t")
	limit := p.style.Columns()
	if p.style.Width == 0 || utf8.RuneCountInString(prefix+line) <= limit {
		return prefix + line
	}
	return Fold(broken(line, limit-len(prefix)), prefix, limit)
}

// broken is the line with spaces in words of more than that many characters.
func broken(line string, limit int) string {
	var text strings.Builder
	run := 0
	for _, r := range line {
		switch {
		case r == ' ':
			run = 0
		case run == limit:
			text.WriteByte(' ')
			run = 1
		default:
			run++
		}
		text.WriteRune(r)
	}
	return text.String()
}
