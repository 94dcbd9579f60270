// Package input answers: is a request itself wrong, so that only another one can succeed?
//
// [Errorf] returns the error for it. All other failures are about the cluster, the release or the network.
package input

import "fmt"

// Error is a request that cannot be met: another one may succeed, the same one will not.
type Error struct{ Err error }

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// CommandExitCode is the exit code of a command that ends with this error.
func (e *Error) CommandExitCode() int { return 2 }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf is fmt.Errorf for a request that cannot be met.
func Errorf(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...)}
}
