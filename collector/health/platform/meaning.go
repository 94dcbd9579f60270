package platform

import (
	"slices"
	"strings"
	"unicode"
)

// meaning is what it says of an object that a condition is True.
type meaning int

const (
	// unclear is a type that does not say it: "Upgradeable", "Encrypted".
	unclear meaning = iota
	// good is a condition that is True while all is well.
	good
	// bad is a condition that is True while something is wrong.
	bad
	// progress is a condition that is True while something changes.
	progress
)

// The last words of the types of conditions. The types themselves are open: "CanaryChecksSucceeding" and
// "NodeControllerDegraded" are of operators which add others as they need them. Sources: Kubernetes API conventions,
// "Typical status properties"; openshift/api config/v1, ClusterStatusConditionType; library-go
// pkg/operator/condition; cli-utils pkg/kstatus, whose Reconciling and Stalled are among them.
var (
	goodWords = []string{
		"Accepted", "Admitted", "Available", "Established", "Healthy", "Ready", "Reconciled", "Succeeded", "Succeeding", "Synced", "Valid",
	}
	badWords = []string{
		"Degraded", "Error", "Errors", "Failed", "Failing", "Failure", "Invalid", "Stalled", "Unavailable", "Unhealthy",
	}
	progressWords = []string{"Progressing", "Reconciling", "Updating"}
)

// meaningOf is the meaning of a type by its last word. "Not" or "No" before that makes the opposite of it.
func meaningOf(condition string) meaning {
	rest, word := lastWord(condition)
	_, before := lastWord(rest)
	negated := before == "Not" || before == "No"
	switch {
	case slices.Contains(progressWords, word) && !negated:
		return progress
	case slices.Contains(goodWords, word) && !negated, slices.Contains(badWords, word) && negated:
		return good
	case slices.Contains(badWords, word), slices.Contains(goodWords, word):
		return bad
	}
	return unclear
}

// lastWord is the last word of a name in camel case, and what is before it.
func lastWord(name string) (rest, word string) {
	at := strings.LastIndexFunc(name, unicode.IsUpper)
	if at < 0 {
		return "", name
	}
	return name[:at], name[at:]
}
