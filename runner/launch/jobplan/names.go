package jobplan

import (
	"strings"
	"unicode"
)

// checkName is "<Component>.<JobName>", a valid name for the acceptRisks of ClusterVersion: ^[A-Z][A-Za-z0-9.-]*$.
func checkName(component, job string) string {
	prefix := camelCase(component)
	switch {
	case prefix == "":
		prefix = "Release"
	case prefix[0] < 'A' || prefix[0] > 'Z':
		prefix = "C" + prefix
	}
	if name := camelCase(job); name != "" {
		return prefix + "." + name
	}
	return prefix
}

// camelCase joins the words of text, each with a capital first letter.
func camelCase(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !isWord(r) })
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

func isWord(r rune) bool {
	return r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// head is the first n bytes of text.
func head(text string, n int) string {
	return text[:min(n, len(text))]
}
