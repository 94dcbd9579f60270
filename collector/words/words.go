// Package words answers: how is repeated what somebody else wrote?
//
// What registries, stores and manifests say ends up in messages that people
// read in terminals and logs. It may hold whatever its author chose.
package words

import (
	"strings"
	"unicode"
)

// Line is text in one line: no more than its first most bytes, what no terminal
// prints left out, which includes whatever moves the cursor or turns the
// direction of reading, and white space folded.
func Line(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "..."
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}
