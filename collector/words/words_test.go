package words_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/words"
)

func TestLine(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Plain":     {reason: "there is nothing to do", text: "not found", want: "not found"},
		"Empty":     {reason: "there is nothing at all"},
		"Lines":     {reason: "a message is one line", text: "\nnot\r\n\tfound\n", want: "not found"},
		"Other":     {reason: "some line breaks are not ASCII", text: "not\u2028found\u0085", want: "not found"},
		"Escape":    {reason: "a terminal would obey", text: "\x1b[2Jready", want: "[2Jready"},
		"Direction": {reason: "a reader would be misled", text: "a\u202Eb\u2066c", want: "a b c"},
		"Invisible": {reason: "two texts that look the same are not", text: "a\u200bb\u00adc", want: "a b c"},
		"Invalid":   {reason: "a report is UTF-8", text: "a\xff\xfeb", want: "ab"},
		"Long":      {reason: "the beginning says the most", text: strings.Repeat("a", 21), want: strings.Repeat("a", 20) + "..."},
		"Exact":     {reason: "as long as it may be", text: strings.Repeat("a", 20), want: strings.Repeat("a", 20)},
		"Within":    {reason: "no half of a character", text: strings.Repeat("ä", 10) + "a", want: strings.Repeat("ä", 10) + "..."},
		"Half":      {reason: "no half of a character", text: "a" + strings.Repeat("ä", 10), want: "a" + strings.Repeat("ä", 9) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words.Line(tc.text, 20); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func FuzzLine(f *testing.F) {
	f.Add("not\nfound", 3)
	f.Add("\x1b\xff", 100)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(0, most)
		got := words.Line(text, most)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is not fit for a message", got)
		}
		if len(got) > most+len("...") && most < len(text) {
			t.Errorf("%d bytes, want at most %d and the dots", len(got), most)
		}
	})
}
