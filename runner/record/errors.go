package record

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/words"
)

// SelectionError means that the run in progress has another selection.
type SelectionError struct {
	ID, Selection string
}

// Error implements error.
func (e *SelectionError) Error() string {
	return fmt.Sprintf("run %s of the same release is in progress with another selection (%q)", e.ID, e.Selection)
}

// FormatError means that the record has a format of another version of the tool, which
// this version does not support.
type FormatError struct {
	ID, Format string
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("run %s is recorded in format %q, which this version does not support: use the version that began the run, or a later one", e.ID, e.Format)
}

// NotFoundError means that an ID or prefix matches no run, or several.
type NotFoundError struct {
	ID string
	// Candidates are the IDs of the matching runs, if there are several.
	Candidates []string
}

// Error implements error.
func (e *NotFoundError) Error() string {
	if len(e.Candidates) > 0 {
		return fmt.Sprintf("%q matches %s: %q; use the ID of one", e.ID, words.Count(len(e.Candidates), "run"), e.Candidates)
	}
	return fmt.Sprintf("no run has the ID %q, or an ID that starts with it (at least %d digits)", e.ID, MinPrefix)
}
