package text

import (
	"strings"
	"unicode/utf8"
)

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
