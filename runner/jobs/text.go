package jobs

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what is taken over from a pod, in bytes.
const (
	maxMessage = 32 << 10
	maxLine    = 2 << 10
	maxWord    = 128
	maxTail    = 1 << 10
	// tailLines is how many of the last lines of a log make a message.
	tailLines = 10
)

// clean makes text from a pod fit to be shown: valid UTF-8 without terminal
// escapes, control characters and those that reorder text, at most limit bytes.
// Lines stay lines.
func clean(text string, limit int) string {
	// Bound the work before doing it; escapes may take most of the text.
	text = cut(text, 4*limit)
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.Contains(text, "\x1b") {
		escapes := regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])`)
		text = escapes.ReplaceAllString(text, "")
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
	return cut(strings.TrimSpace(text), limit)
}

// line is clean for what belongs on one line.
func line(text string, limit int) string {
	return strings.Join(strings.Fields(clean(text, limit)), " ")
}

// cut keeps the first limit bytes and whole characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const more = "…"
	end := max(0, limit-len(more))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// tail is the last lines of a log, without those of the SDK's frames.
func tail(log string) string {
	lines := strings.Split(clean(last(log, 4*maxTail), 4*maxTail), "\n")
	var kept []string
	for _, text := range lines {
		if strings.TrimSpace(text) != "" && !strings.HasPrefix(text, "preflight/") {
			kept = append(kept, text)
		}
	}
	return last(strings.Join(kept[max(0, len(kept)-tailLines):], "\n"), maxTail)
}

// last keeps the last limit bytes and whole characters.
func last(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	start := len(text) - limit
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}
