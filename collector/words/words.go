// Package words answers: how is text from outside, or a long list, put into a
// message?
//
// Error texts of registries, logs of pods and fields of manifests end up in
// messages that people read in terminals. They may contain anything their author
// chose: control sequences, characters that reorder text, megabytes.
package words

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Line is text on one line of at most limit bytes: terminal escapes and
// characters that are not printable are removed, white space is folded.
func Line(text string, limit int) string {
	return Cut(strings.Join(strings.Fields(printable(text, "", limit)), " "), limit)
}

// maxExternal bounds what External keeps, in bytes.
const maxExternal = 512

// External is text from outside as a part of a message: [Line] of at most 512 bytes.
func External(text string) string { return Line(text, maxExternal) }

// Aside puts an explanation behind a word: " (Reason)"; empty for an empty text.
func Aside(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// Condition returns the content of a condition: "False (Reason): message". Empty parts are omitted; a condition
// without a status is "absent".
func Condition[Status ~string](status Status, reason, message string) string {
	text := cmp.Or(string(status), "absent") + Aside(reason)
	if message != "" {
		text += ": " + message
	}
	return text
}

// Lines is text of at most limit bytes without terminal escapes and characters
// that are not printable. Line breaks and spaces are kept; tabs become spaces.
func Lines(text string, limit int) string {
	lines := strings.Split(printable(text, "\n", limit), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return Cut(strings.TrimSpace(strings.Join(lines, "\n")), limit)
}

// Block is a part of a text: lines of prose, which may be folded, or lines that are
// shown as they are, such as a command.
type Block struct {
	Verbatim bool
	Text     string
}

// Blocks are the parts of a text. Lines that are indented by two spaces or more, or that
// begin with a prompt ("$ "), are verbatim.
func Blocks(text string) []Block {
	var blocks []Block
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		verbatim := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "$ ")
		if last := len(blocks) - 1; last >= 0 && blocks[last].Verbatim == verbatim {
			blocks[last].Text += "\n" + line
			continue
		}
		blocks = append(blocks, Block{Verbatim: verbatim, Text: line})
	}
	return blocks
}

// Printable is text without terminal escapes and characters that are not
// printable; its length does not grow. Line breaks, spaces and tabs are kept.
func Printable(text string) string { return printable(text, "\n\t", len(text)) }

// Cut keeps the first limit bytes of text and whole characters; an ellipsis, of
// three bytes, is among them where text is longer.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := max(0, limit-len(ellipsis))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// FirstLines joins the first lines of text, at most that many, and says how many follow.
func FirstLines(text string, most int) string {
	lines := strings.Split(text, "\n")
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, " ")
}

// Last keeps the last limit bytes of text and whole characters.
func Last(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	start := len(text) - limit
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}

// List joins the first most names, and counts the others.
func List(names []string, most int) string {
	return ListOf(names[:min(most, len(names))], len(names))
}

// ListOf joins names, which are the first ones of total, and counts the others.
func ListOf(names []string, total int) string {
	text := strings.Join(names, ", ")
	if more := total - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Time is a time in UTC by RFC 3339, to the second; empty for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Count is a number with its noun, in the plural unless it is one: "1 target", "2 targets". noun is regular.
func Count[N int | int64](number N, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}

// Sentence is a clause as a sentence; empty for an empty one.
func Sentence(clause string) string {
	if clause == "" {
		return ""
	}
	return strings.ToUpper(clause[:1]) + strings.TrimSuffix(clause[1:], ".") + "."
}

// Clauses joins the first most clauses with semicolons, and counts the others.
func Clauses(clauses []string, most int) string {
	text := strings.Join(clauses[:min(most, len(clauses))], "; ")
	if more := len(clauses) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// escapes are the terminal's control sequences (ECMA-48, and the operating system commands of xterm).
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])`)

// printable drops escapes and what is neither printable nor in keep; other white
// space becomes a space. It reads four times as many bytes as are wanted, since
// escapes may be most of the text.
func printable(text, keep string, wanted int) string {
	text = strings.ToValidUTF8(text[:min(len(text), 4*min(len(text), wanted))], "")
	if strings.Contains(text, "\x1b") {
		text = escapes.ReplaceAllString(text, "")
	}
	return strings.Map(func(r rune) rune {
		if (unicode.IsPrint(r) && r != unicode.ReplacementChar) || strings.ContainsRune(keep, r) {
			return r
		}
		if unicode.IsSpace(r) {
			return ' '
		}
		return -1
	}, text)
}

// plainWord is text that a shell takes as it is.
var plainWord = regexp.MustCompile("^[0-9A-Za-z.:/@+_,=-]+$")

// ShellLine is a command line of a shell with these words.
func ShellLine(all ...string) string {
	quoted := make([]string, len(all))
	for i, word := range all {
		quoted[i] = word
		if !plainWord.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
