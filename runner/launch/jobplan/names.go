package jobplan

import (
	"strings"
	"unicode"
)

// maxLabelValue is the limit of k8s.io/apimachinery/pkg/util/validation.
const maxLabelValue = 63

// labelValue is text without the characters that a label value may not have.
func labelValue(text string) string {
	kept := strings.Map(func(r rune) rune {
		if isWord(r) || strings.ContainsRune("-_.", r) {
			return r
		}
		return -1
	}, text)
	return strings.Trim(head(kept, maxLabelValue), "-_.")
}

// checkName is "<Component>.<JobName>", a valid name for the acceptRisks of
// ClusterVersion: ^[A-Z][A-Za-z0-9.-]*$.
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
