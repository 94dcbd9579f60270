package words_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/words"
)

func TestLine(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Plain":     {reason: "printable text is kept", text: "not found", want: "not found"},
		"Empty":     {reason: "empty text is kept"},
		"Lines":     {reason: "a line has no line breaks", text: "\nnot\r\n\tfound\n", want: "not found"},
		"Unicode":   {reason: "some line breaks are not ASCII", text: "not\u2028found\u0085", want: "not found"},
		"Escape":    {reason: "a terminal would obey the sequence", text: "\x1b[2Jready \x1b]0;title\x07now", want: "ready now"},
		"Direction": {reason: "the control reorders the text", text: "a\u202Eb\u2066c", want: "abc"},
		"Invisible": {reason: "two texts that look the same would differ", text: "a\u200bb\u00adc", want: "abc"},
		"Invalid":   {reason: "a report is UTF-8", text: "a\xff\xfeb", want: "ab"},
		"Long":      {reason: "the length is bounded", text: strings.Repeat("a", 21), want: strings.Repeat("a", 17) + "…"},
		"Exact":     {reason: "the bound itself is allowed", text: strings.Repeat("a", 20), want: strings.Repeat("a", 20)},
		"Character": {reason: "characters are kept whole", text: strings.Repeat("ä", 11), want: strings.Repeat("ä", 8) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words.Line(tc.text, 20); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	const text = "\x1b[31mred\x1b[0m \x1b]0;title\x07and\u202e reversed\r\n  second\tline  \n\n"
	if diff := cmp.Diff("red and reversed\n  second line", words.Lines(text, 1000)); diff != "" {
		t.Errorf("line breaks and indentation are kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("one\tline\n", words.Printable("one\tline\x07\n")); diff != "" {
		t.Errorf("tabs and line breaks are kept (-want +got):\n%s", diff)
	}
}

func TestBlocks(t *testing.T) {
	got := words.Blocks("Replace it:\n    oc create \\\n      secret\n\nthen\n$ oc get a\nand wait")
	want := []words.Block{
		{Text: "Replace it:"},
		{Verbatim: true, Text: "    oc create \\\n      secret"},
		{Text: "then"},
		{Verbatim: true, Text: "$ oc get a"},
		{Text: "and wait"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is indented or follows a prompt is kept whole (-want +got):\n%s", diff)
	}
}

func TestList(t *testing.T) {
	names := []string{"a", "b", "c"}
	for most, want := range map[int]string{0: " and 3 more", 2: "a, b and 1 more", 3: "a, b, c", 4: "a, b, c"} {
		if got := words.List(names, most); got != want {
			t.Errorf("the first %d of %q: %q, want %q", most, names, got, want)
		}
	}
	if got := words.ListOf(names[:1], 3); got != "a and 2 more" {
		t.Errorf("one of three: %q", got)
	}
}

func TestClauses(t *testing.T) {
	clauses := []string{"a", "b", "c"}
	for most, want := range map[int]string{2: "a; b; and 1 more", 3: "a; b; c", 5: "a; b; c"} {
		if got := words.Clauses(clauses, most); got != want {
			t.Errorf("the first %d of %q: %q, want %q", most, clauses, got, want)
		}
	}
}

func TestLast(t *testing.T) {
	for most, want := range map[int]string{10: "aäb", 4: "aäb", 3: "äb", 2: "b", 0: ""} {
		if got := words.Last("aäb", most); got != want {
			t.Errorf("the last %d bytes: %q, want %q", most, got, want)
		}
	}
}

// No part of a condition that is empty leaves a trace in a message.
func TestCondition(t *testing.T) {
	for want, parts := range map[string][3]string{
		"False (Reason): text": {"False", "Reason", "text"},
		"False: text":          {"False", "", "text"},
		"False (Reason)":       {"False", "Reason", ""},
		"False":                {"False", "", ""},
		"absent":               {},
	} {
		if got := words.Condition(parts[0], parts[1], parts[2]); got != want {
			t.Errorf("%q is %q, want %q", parts, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("not\nfound", 3)
	f.Add("\x1b\xff", 100)
	f.Add("\x1b]0;title", 4)
	f.Add("a", math.MaxInt)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(3, most%1000) // the ellipsis has three bytes
		line, lines := words.Line(text, most), words.Lines(text, most)
		for _, got := range []string{
			line, strings.ReplaceAll(lines, "\n", ""), words.Cut(strings.ToValidUTF8(text, ""), most),
			words.Last(strings.ToValidUTF8(text, ""), most),
		} {
			if !utf8.ValidString(got) || len(got) > most {
				t.Errorf("%q has %d bytes, want valid UTF-8 of at most %d", got, len(got), most)
			}
		}
		if unprintable := func(r rune) bool { return !unicode.IsPrint(r) }; strings.ContainsFunc(line, unprintable) ||
			strings.ContainsFunc(strings.ReplaceAll(lines, "\n", ""), unprintable) {
			t.Errorf("%q and %q are not printable", line, lines)
		}
	})
}

func TestTime(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	for want, at := range map[string]time.Time{
		"": {}, "2026-11-22T12:20:00Z": time.Date(2026, time.November, 22, 14, 20, 0, 999, zone),
	} {
		if got := words.Time(at); got != want {
			t.Errorf("Time(%v) = %q, want %q", at, got, want)
		}
	}
}
