package text

import (
	"strings"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/words"
)

// width is that of lists of names.
const width = 90

// Wrap lists names in lines that fit a terminal.
func Wrap(names []string) string {
	var text strings.Builder
	column := 0
	for i, name := range names {
		name = words.Line(name, maxLine)
		if i > 0 {
			text.WriteString(",")
			column++
		}
		switch {
		case i > 0 && column+1+len(name) > width:
			text.WriteString("\n")
			column = 0
		case i > 0:
			text.WriteString(" ")
			column++
		}
		text.WriteString(name)
		column += len(name)
	}
	return text.String()
}

// Fold breaks text between words into lines of that many characters at most, each after a
// prefix. A longer word has a line of its own.
func Fold(text, prefix string, limit int) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return hang(prefix, text, prefix, limit)
}

// hang is Fold with another prefix of the first line.
func hang(first, text, prefix string, limit int) string {
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
