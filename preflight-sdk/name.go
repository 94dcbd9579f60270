package preflight

import "regexp"

// maxWord is the maximum length of the name of a check and of a reason, in bytes.
const maxWord = 63

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// isCamelCase reports whether word is valid as the name of a check or as a reason.
func isCamelCase(word string) bool {
	return len(word) <= maxWord && camelCase.MatchString(word)
}

var dnsLabelPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func isDNSLabel(text string) bool {
	return len(text) <= maxWord && dnsLabelPattern.MatchString(text)
}
