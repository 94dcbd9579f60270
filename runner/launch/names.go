package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

const (
	// maxName is as long as a Job's name can be for the names of its pods,
	// which get six characters more, to fit the 63 of a host name. Longer ones
	// would have the Job controller cut off what makes them recognizable.
	maxName = 57
	// hashDigits keep names apart that are cut.
	hashDigits = 5
	// maxLabelValue is the limit of k8s.io/apimachinery/pkg/util/validation.
	maxLabelValue = 63
)

// suffixed is the author's name with the suffix of the run. A name that is too
// long is cut, and gets a hash of the whole so that two that begin alike stay
// two.
func (r Run) suffixed(name string) string {
	suffix := "-" + r.Suffix()
	if len(name)+len(suffix) <= maxName {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(name))
	suffix = "-" + head(hex.EncodeToString(sum[:]), hashDigits) + suffix
	return strings.TrimRight(head(name, maxName-len(suffix)), "-.") + suffix
}

// labelValue makes text a valid label value, losing what is not allowed in one.
func labelValue(text string) string {
	kept := strings.Map(func(r rune) rune {
		if isWord(r) || strings.ContainsRune("-_.", r) {
			return r
		}
		return -1
	}, text)
	return strings.Trim(head(kept, maxLabelValue), "-_.")
}

// checkName is "<Component>.<JobName>", the form of the names that
// ClusterVersion's acceptRisks takes: ^[A-Z][A-Za-z0-9.-]*$.
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
