package lease

import (
	"errors"
	"fmt"

	"github.com/openshift/update-preflight/runner/record"
)

var (
	// ErrAbandoned means that the run has no holder: its Lease was released, or was not renewed.
	ErrAbandoned = errors.New("the run has no holder")
	// ErrCanceled means that the end of the run was requested.
	ErrCanceled = errors.New("the run was canceled")
)

// BusyError means that another process holds the run in progress of the release.
type BusyError struct {
	ID, Holder string
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s of the same release is in progress, held by %q", e.ID, e.Holder)
}

// HeldError is the error of a run that a process holds.
type HeldError struct {
	// Run is its ID, Holder the identity of the process: its user, machine and process ID.
	Run, Holder string
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("run %s is in progress: %s holds it", e.Run, e.Holder)
}

// NotRunningError means that the run has ended.
type NotRunningError struct {
	ID    string
	Phase record.Phase
}

// Error implements error.
func (e *NotRunningError) Error() string {
	return fmt.Sprintf("run %s has ended in phase %s", e.ID, e.Phase)
}

// Hint is the command to run next.
func (e *BusyError) Hint() string { return "Follow the run: oc preflight attach " + e.ID }

// Hint is the command to run next.
func (e *NotRunningError) Hint() string { return "Read its report: oc preflight status " + e.ID }
