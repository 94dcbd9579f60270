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
func Item(item document.Item) string {
	w := &writer{}
	w.item(item)
	return w.text.String()
}

// item writes an item, and what belongs to it with an indent.
func (w *writer) item(item document.Item) {
	before := ""
	if item.Number > 0 {
		before = fmt.Sprintf("%2d. ", item.Number)
	}
	w.marked(before, item.Mark, strings.Join(item.Names, ", ")+" "+item.State)
	w.prose("", item.Message, briefLines)
	w.remedy(item)
	for _, fact := range item.Facts {
		if !w.style.Brief() || fact.Brief {
			w.prose(fact.Lead, fact.Text, briefLines)
		}
	}
}

// remedy writes what to do: on a terminal without details the first command, or the text
// where there is none.
func (w *writer) remedy(item document.Item) {
	if w.style.Brief() && len(item.Commands) > 0 {
		w.command(hanging, item.Commands[0])
		return
	}
	w.prose("Fix:", item.Remedy, remedyLines)
	for _, command := range item.Commands {
		w.command(hanging, command)
	}
}

// prose writes text of an item after a lead, folded and, to fit a terminal, shortened to that
// many lines.
func (w *writer) prose(lead, text string, most int) {
	text = w.style.ascii(strings.TrimSpace(words.Printable(text)))
	if text == "" {
		return
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
			lines = append(lines, w.folded(line)...)
		}
	}
	most *= max(1, usualColumns/w.style.Columns())
	if w.style.Brief() && len(lines) > most {
		if verbatim[most-1] {
			lines[most-1] = hanging // a part of it would be misleading
		}
		lines = w.shortened(lines, most)
	}
	for _, line := range lines {
		w.line(line)
	}
}

// folded is one line of an item, its spaces kept where it fits.
func (w *writer) folded(line string) []string {
	line = strings.TrimRight(line, " \t")
	if w.limit() == 0 || utf8.RuneCountInString(hanging+line) <= w.limit() {
		return []string{hanging + line}
	}
	return strings.Split(wrap(hanging, line, hanging, w.limit()), "\n")
}

// shortened are the first lines of a text and a note about the others, which replaces the
// end of the last line.
func (w *writer) shortened(lines []string, most int) []string {
	more := words.Count(len(lines)-most, "more line")
	rest := strings.TrimRight(w.style.Ellipsis()+" ("+more+": "+w.style.Hint, ": ") + ")"
	last := []rune(lines[most-1])
	width := utf8.RuneCountInString(rest) + len("...") - utf8.RuneCountInString(w.style.Ellipsis()) // the same for both
	return append(lines[:most-1], string(last[:max(0, min(len(last), w.style.Columns()-width))])+rest)
}
