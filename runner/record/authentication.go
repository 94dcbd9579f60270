package record

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/words"
)

// Authenticity is whether the content of a record was written by a process that has the key of the records.
type Authenticity string

// The values of Authenticity.
const (
	// Authentic means that the MACs match the content.
	Authentic Authenticity = "Authentic"
	// Unauthentic means that a MAC is missing or does not match, or that the key does not exist.
	Unauthentic Authenticity = "Unauthentic"
	// Unverifiable means that the permission to read the key is missing.
	Unverifiable Authenticity = "Unverifiable"
)

// Authentication is the result of the verification of a record.
type Authentication struct {
	State Authenticity
	// Cause is why the state is not Authentic, as a clause.
	Cause string
}

// UnauthenticError means that the content of a record is not known to be authentic.
type UnauthenticError struct {
	ID string
	Authentication
}

// Error implements error.
func (e *UnauthenticError) Error() string {
	if e.State == Unverifiable {
		return fmt.Sprintf("unknown whether the record of run %s is authentic: %s", e.ID, e.Cause)
	}
	return fmt.Sprintf("the record of run %s is not authentic: %s", e.ID, e.Cause)
}

type comparison struct {
	// of names the field in a sentence, and value is what is compared of it; nil for a field that changes
	// no answer.
	of    string
	value func(Intent) string
}

func comparisons() map[string]comparison {
	return map[string]comparison{
		"From":        {"from release", func(i Intent) string { return i.From }},
		"Target":      {"to release", func(i Intent) string { return i.Target.Version + " " + i.Target.Digest() }},
		"ToolVersion": {"by version", func(i Intent) string { return i.ToolVersion }},
		"Selection":   {"with selection", func(i Intent) string { return i.Selection }},
		"Provisional": {"as a later update of a path", func(i Intent) string { return fmt.Sprint(i.Provisional) }},
		"ID":          {},
		"Attachment":  {}, // the selection has its digest
		"Requester":   {},
		"Generation":  {}, // what the spec of ClusterVersion accepts is judged anew
		"Narrowed":    {}, // the selection has it
		"Checks":      {}, // the selection and the release decide which there are
	}
}

// Compared are the fields of an Intent, with whether runs that differ in one may have other results.
func Compared() map[string]bool {
	compared := map[string]bool{}
	for name, each := range comparisons() {
		compared[name] = each.value != nil
	}
	return compared
}

// Difference states in what a run differs from another one, so that its results are not those of the
// other; empty where it does not.
func (i Intent) Difference(other Intent) string {
	for _, name := range []string{"From", "Target", "ToolVersion", "Provisional", "Selection"} {
		each := comparisons()[name]
		if made, wanted := each.value(i), each.value(other); made != wanted {
			return fmt.Sprintf("it was made %s %s, and not %s", each.of, words.External(made), words.External(wanted))
		}
	}
	return ""
}
