package help

import (
	"strings"
	"unicode/utf8"
)

// wrapped are the lines of a text of paragraphs. A paragraph is one line; a line that begins with a space, such as one
// of an example, is not changed.
func wrapped(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if strings.HasPrefix(paragraph, " ") {
			lines = append(lines, paragraph)
			continue
		}
		lines = append(lines, fill("", paragraph, width)...)
	}
	return lines
}

// fill breaks a text between words into lines of at most width columns. The first line follows first, the others begin
// with as many spaces; a longer word has a line of its own. Spaces between words are kept where no line ends.
func fill(first, text string, width int) []string {
	var lines []string
	indent := strings.Repeat(" ", utf8.RuneCountInString(first))
	line, empty := first, true
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case empty:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), indent+word
		}
		empty = false
	}
	return append(lines, line)
}
