// Package precondition answers: which types of CVO (pkg/payload/precondition) does the code
// in the README of runner/trigger/cvo use?
package precondition

// ReleaseContext is the update that is considered.
type ReleaseContext struct{ DesiredVersion string }

// Error is why a precondition fails.
type Error struct {
	Nested                error
	Reason, Message, Name string
	NonBlockingWarning    bool
}

// Error implements error.
func (e *Error) Error() string { return e.Message }
