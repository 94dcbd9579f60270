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

// vocabulary are the last words of the types of conditions, by their meaning. The types themselves are open:
// "CanaryChecksSucceeding" and "NodeControllerDegraded" are of operators which add others as they need them. Sources:
// Kubernetes API conventions, "Typical status properties"; openshift/api config/v1, ClusterStatusConditionType; library-go
// pkg/operator/condition; cli-utils pkg/kstatus, whose Reconciling and Stalled are among them.
func vocabulary() map[meaning][]string {
	return map[meaning][]string{
		good: {
			"Accepted", "Admitted", "Available", "Established", "Healthy", "Ready", "Reconciled", "Succeeded", "Succeeding", "Synced", "Valid",
		},
		bad:      {"Degraded", "Error", "Errors", "Failed", "Failing", "Failure", "Invalid", "Stalled", "Unavailable", "Unhealthy"},
		progress: {"Progressing", "Reconciling", "Updating"},
	}
}

// meaningOf is the meaning of a type by its last word. "Not" or "No" before that makes the opposite of it.
func meaningOf(condition string) meaning {
	rest, word := lastWord(condition)
	_, before := lastWord(rest)
	negated := before == "Not" || before == "No"
	for _, each := range []struct{ of, opposite meaning }{{good, bad}, {bad, good}, {progress, unclear}} {
		switch {
		case !slices.Contains(vocabulary()[each.of], word):
		case negated:
			return each.opposite
		default:
			return each.of
		}
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
