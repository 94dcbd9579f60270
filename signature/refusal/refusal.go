// Package refusal answers: why is the signature of a release not accepted?
//
// [New] makes an [Error] for a [Reason], which decides the remedy, whether the release is not
// signed properly or its verification was inconclusive, and what the cluster-version operator
// (CVO) would decide.
package refusal

import (
	"errors"
	"fmt"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Error reports that a release could not be verified.
type Error struct {
	Reason Reason
	// Message is the cause in one sentence.
	Message string
	// Remediation is an imperative sentence; it names no option of a program.
	Remediation string
	// Outcome is Fail when the release is not signed properly, Unknown when the verification was inconclusive.
	Outcome preflight.Outcome
	// Details are the violations of the signatures that were checked, in search order, at most maxDetails.
	Details []string
	// Err is the underlying error; nil when there is none.
	Err error

	// CVOAccepts reports whether the cluster-version operator would accept the signatures
	// that are rejected here; nil when that is unknown.
	CVOAccepts *bool
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// New returns an Error for reason. The format is passed to [fmt.Errorf]: an error for the verb %w
// becomes the underlying error.
func New(reason Reason, format string, args ...any) *Error {
	text := fmt.Errorf(format, args...)
	outcome := preflight.Fail
	if reason.Inconclusive {
		outcome = preflight.Unknown
	}
	return &Error{
		Reason: reason, Message: text.Error(), Err: errors.Unwrap(text),
		Remediation: reason.Remedy, Outcome: outcome, CVOAccepts: reason.CVO.known(),
	}
}
