package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

const (
	// maxName bounds the name of a Job so that the names of its pods, which are six
	// characters longer, fit the 63 of a host name. The Job controller would cut off
	// the suffix of longer names.
	maxName = 57
	// hashDigits is the length of the hash in a shortened name.
	hashDigits = 5
	// maxLabelValue is that of k8s.io/apimachinery/pkg/util/validation.
	maxLabelValue = 63
)

// suffixed is the author's name with the suffix of the run. A name that is too long
// is shortened, with a hash of the whole name so that it stays unique.
func (r Run) suffixed(name string) string {
	suffix := "-" + r.Suffix()
	if len(name)+len(suffix) <= maxName {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(name))
	suffix = "-" + head(hex.EncodeToString(sum[:]), hashDigits) + suffix
	return strings.TrimRight(head(name, maxName-len(suffix)), "-.") + suffix
}

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
