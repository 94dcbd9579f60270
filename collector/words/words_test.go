package words_test

import (
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/words"
)

func TestLine(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Plain":     {reason: "a printable line is kept", text: "not found", want: "not found"},
		"Empty":     {reason: "no text, no line"},
		"Lines":     {reason: "a message is one line", text: "\nnot\r\n\tfound\n", want: "not found"},
		"Other":     {reason: "some line breaks are not ASCII", text: "not\u2028found\u0085", want: "not found"},
		"Escape":    {reason: "a terminal would obey", text: "\x1b[2Jready", want: "ready"},
		"Direction": {reason: "characters that reorder text mislead a reader", text: "a\u202Eb\u2066c", want: "a b c"},
		"Invisible": {reason: "an invisible character does not make a difference", text: "a\u200bb\u00adc", want: "a b c"},
		"Invalid":   {reason: "a report is UTF-8", text: "a\xff\xfeb", want: "ab"},
		"Long":      {reason: "the ellipsis is within the bound", text: strings.Repeat("a", 21), want: strings.Repeat("a", 17) + "…"},
		"Exact":     {reason: "text within the bound is kept", text: strings.Repeat("a", 20), want: strings.Repeat("a", 20)},
		"Within":    {reason: "no half of a character", text: strings.Repeat("ä", 10) + "a", want: strings.Repeat("ä", 8) + "…"},
		"Half":      {reason: "no half of a character", text: "a" + strings.Repeat("ä", 10), want: "a" + strings.Repeat("ä", 8) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words.Line(tc.text, 20); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestLists(t *testing.T) {
	names := []string{"a", "b", "c"}
	for name, tc := range map[string]struct{ reason, got, want string }{
		"List":         {reason: "the others are counted", got: words.List(names, 2), want: "a, b and 1 more"},
		"ListAll":      {reason: "nothing is left to count", got: words.List(names, 3), want: "a, b, c"},
		"ListOf":       {reason: "names may be the first of more", got: words.ListOf(names, 5), want: "a, b, c and 2 more"},
		"ListOfNone":   {reason: "no names", got: words.ListOf(nil, 0)},
		"Clauses":      {reason: "the others are counted", got: words.Clauses(names, 2), want: "a; b; and 1 more"},
		"ClausesAll":   {reason: "nothing is left to count", got: words.Clauses(names, 5), want: "a; b; c"},
		"ClausesEmpty": {reason: "no clauses", got: words.Clauses(nil, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, tc.got, tc.want)
			}
		})
	}
}

func FuzzLine(f *testing.F) {
	f.Add("not\nfound", 3)
	f.Add("\x1b\xff", 100)
	f.Add("a", math.MaxInt)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(0, most)
		got := words.Line(text, most)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is not fit for a message", got)
		}
		if len(got) > most+len("...") && most < len(text) {
			t.Errorf("%d bytes, want at most %d and an ellipsis", len(got), most)
		}
	})
}
