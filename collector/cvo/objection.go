package cvo

import (
	"fmt"
	"strings"
)

// Weight says what an objection means for the update.
type Weight string

// The weights of objections.
const (
	// Blocking keeps the update out, unless it is forced.
	Blocking Weight = "Blocking"
	// Warning is recorded in status.history[].acceptedRisks, and no more.
	Warning Weight = "Warning"
	// Uncertain is an objection that some releases of this minor version have,
	// and others have not.
	Uncertain Weight = "Uncertain"
	// Unchecked is a rule that holds, but that this release of CVO does not
	// check by itself yet.
	Unchecked Weight = "Unchecked"
)

// Objection is what one precondition of CVO has against an update.
type Objection struct {
	// Precondition is its name, e.g. ClusterVersionRollback.
	Precondition string
	// Reason and Message are CVO's own.
	Reason, Message string
	Weight          Weight
}

// first finds the first objection of a weight, or nil.
func first(objections []Objection, weight Weight) *Objection {
	for i := range objections {
		if objections[i].Weight == weight {
			return &objections[i]
		}
	}
	return nil
}

// summarize words all objections as CVO does
// (pkg/payload/precondition/precondition.go).
func summarize(objections []Objection) string {
	var texts []string
	for _, objection := range objections {
		if objection.Weight == Blocking || objection.Weight == Warning {
			texts = append(texts, fmt.Sprintf("Precondition %q failed because of %q: %s", objection.Precondition, objection.Reason, objection.Message))
		}
	}
	if len(texts) > 1 {
		return "Multiple precondition checks failed:\n* " + strings.Join(texts, "\n* ")
	}
	return strings.Join(texts, "")
}
