package words

import (
	"regexp"
	"strings"
)

// plainWord is text that a shell takes as it is.
var plainWord = regexp.MustCompile("^[0-9A-Za-z.:/@+_,=-]+$")

// ShellWord is text as one word of a shell.
func ShellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
