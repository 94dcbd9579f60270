package reported

import (
	"slices"
	"strings"
	"unicode"
)

// Meaning is what it says of an object that a condition is True, or that a phase has this name.
type Meaning int

const (
	// Unclear is a type that does not say it: "Upgradeable", "Encrypted".
	Unclear Meaning = iota
	// Good is a condition that is True while all is well.
	Good
	// Bad is a condition that is True while something is wrong.
	Bad
	// Progress is a condition that is True while something changes.
	Progress
)

// vocabulary are the last words of the types of conditions, by their meaning. The types themselves are open:
// "CanaryChecksSucceeding" and "NodeControllerDegraded" are of operators which add others as they need them. Sources:
// Kubernetes API conventions, "Typical status properties"; openshift/api config/v1, ClusterStatusConditionType; library-go
// pkg/operator/condition; cli-utils pkg/kstatus, whose Reconciling and Stalled are among them.
func vocabulary() map[Meaning][]string {
	return map[Meaning][]string{
		Good: {
			"Accepted", "Admitted", "Available", "Bound", "Connected", "Established", "Healthy", "Programmed", "Reachable", "Ready", "Reconciled",
			"Succeeded", "Succeeding", "Success", "Synced", "Valid",
		},
		Bad: {
			"Crashed", "Degraded", "Denied", "Err", "Error", "Errors", "Expired", "Failed", "Failing", "Failure", "Faulted", "Invalid", "Lost", "Red", "Rejected", "Stalled",
			"Unavailable", "Unhealthy", "Unreachable",
		},
		Progress: {"Progressing", "Reconciling", "Updating"},
	}
}

// MeaningOf is the meaning of a type by its last word. "Not" or "No" before that makes the opposite of it.
func MeaningOf(condition string) Meaning {
	rest, word := lastWord(condition)
	_, before := lastWord(rest)
	negated := before == "Not" || before == "No"
	for _, each := range []struct{ of, opposite Meaning }{{Good, Bad}, {Bad, Good}, {Progress, Unclear}} {
		switch {
		case !slices.Contains(vocabulary()[each.of], word):
		case negated:
			return each.opposite
		default:
			return each.of
		}
	}
	return Unclear
}

// lastWord is the last word of a name in camel case, and what is before it.
func lastWord(name string) (rest, word string) {
	at := strings.LastIndexFunc(name, unicode.IsUpper)
	if at < 0 {
		return "", name
	}
	return name[:at], name[at:]
}
