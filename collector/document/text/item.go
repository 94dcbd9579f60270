package text

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// briefLines is the number of lines of a message on a terminal without details, and
	// remedyLines that of a remedy: it has commands. The causes and commands of a few
	// findings fit a terminal of 24 lines.
	briefLines, remedyLines = 2, 10
	// maxOthers bounds the names of items that do not count, on a terminal.
	maxOthers = 3
)

// Item is an item in full, as text in a file.
func Item(of document.Item) string { return strings.Join(item(Style{}, of), "\n") + "\n" }

// item is the lines of an item: what belongs to it has an indent.
func item(style Style, item document.Item) []string {
	before := ""
	if item.Number > 0 {
		before = fmt.Sprintf("%2d. ", item.Number)
	}
	lines := []string{marked(style, before, item.Mark, strings.Join(item.Names, ", ")+" "+item.State)}
	lines = append(lines, prose(style, "", item.Message, briefLines)...)
	lines = append(lines, remedy(style, item)...)
	for _, fact := range item.Facts {
		if !style.Brief() || fact.Brief {
			lines = append(lines, prose(style, fact.Lead, fact.Text, briefLines)...)
		}
	}
	return lines
}

// remedy is what to do: on a terminal without details the first command, or the text where
// there is none.
func remedy(style Style, item document.Item) []string {
	if style.Brief() && len(item.Commands) > 0 {
		return []string{command(style, hanging, item.Commands[0])}
	}
	lines := prose(style, "Fix:", item.Remedy, remedyLines)
	for _, each := range item.Commands {
		lines = append(lines, command(style, hanging, each))
	}
	return lines
}

// marked is a line that begins with a marked word, folded.
func marked(style Style, before string, mark document.Mark, rest string) string {
	mark.Word = words.Line(mark.Word, maxLine)
	plain := before + Style{Symbols: style.Symbols}.mark(mark) + "  "
	lines := wrap(plain, style.clean(rest), hanging, style.limit())
	return strings.TrimRight(before+style.mark(mark), " ") + strings.TrimPrefix(lines, strings.TrimRight(plain, " "))
}

// command is a command in full, so that it can be copied. Its further lines begin in the first
// column: they may be those of a here-document.
func command(style Style, before, command string) string {
	return before + "$ " + style.ascii(words.Printable(strings.TrimSpace(command)))
}

// prose is text of an item after a lead, folded and, to fit a terminal, shortened to that many
// lines.
func prose(style Style, lead, text string, most int) []string {
	text = style.ascii(strings.TrimSpace(words.Printable(text)))
	if text == "" {
		return nil
	}
	if lead != "" {
		lead = fmt.Sprintf("%-5s ", lead)
	}
	var lines []string
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
	if style.Brief() && len(lines) > most {
		if verbatim[most-1] {
			lines[most-1] = hanging // a part of it would be misleading
		}
		lines = shortened(style, lines, most)
	}
	return lines
}

// folded is one line of an item, its spaces kept where it fits.
func folded(style Style, line string) []string {
	line = strings.TrimRight(line, " \t")
	if style.limit() == 0 || utf8.RuneCountInString(hanging+line) <= style.limit() {
		return []string{hanging + line}
	}
	return strings.Split(wrap(hanging, line, hanging, style.limit()), "\n")
}

// shortened are the first lines of a text and a note about the others, which replaces the
// end of the last line.
func shortened(style Style, lines []string, most int) []string {
	more := words.Count(len(lines)-most, "more line")
	rest := strings.TrimRight(style.Ellipsis()+" ("+more+": "+style.Hint, ": ") + ")"
	last := []rune(lines[most-1])
	width := utf8.RuneCountInString(rest) + len("...") - utf8.RuneCountInString(style.Ellipsis()) // the same for both
	return append(lines[:most-1], string(last[:max(0, min(len(last), style.Columns()-width))])+rest)
}
