package cvo

import (
	"fmt"
	"strings"
)

// Weight is the effect of a violation on the update.
type Weight string

// The weights of violations.
const (
	// Blocking prevents the update, unless it is forced.
	Blocking Weight = "Blocking"
	// Warning is only recorded, in status.history[].acceptedRisks.
	Warning Weight = "Warning"
	// Uncertain blocks the update with some releases of CVO of this minor version,
	// and not with others.
	Uncertain Weight = "Uncertain"
	// Unchecked violates a rule that this release of CVO does not check yet.
	Unchecked Weight = "Unchecked"
)

// Violation is a precondition of CVO that an update violates.
type Violation struct {
	// Precondition is its name, e.g. ClusterVersionRollback.
	Precondition string
	// Reason and Message are CVO's own.
	Reason, Message string
	Weight          Weight
}

// first is the first violation of a weight, or nil.
func first(violations []Violation, weight Weight) *Violation {
	for i := range violations {
		if violations[i].Weight == weight {
			return &violations[i]
		}
	}
	return nil
}

// summarize is CVO's message for all violations
// (pkg/payload/precondition/precondition.go).
func summarize(violations []Violation) string {
	var texts []string
	for _, violation := range violations {
		if violation.Weight == Blocking || violation.Weight == Warning {
			texts = append(texts, fmt.Sprintf("Precondition %q failed because of %q: %s", violation.Precondition, violation.Reason, violation.Message))
		}
	}
	if len(texts) > 1 {
		return "Multiple precondition checks failed:\n* " + strings.Join(texts, "\n* ")
	}
	return strings.Join(texts, "")
}
