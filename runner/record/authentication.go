package record

import "fmt"

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
