package record

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
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

// CommandExitCode is the exit code for bad input: no run has this ID.
func (e *NotFoundError) CommandExitCode() int { return 2 }

// Remedy is what to do next, with its commands.
func (e *NotFoundError) Remedy() (sentence string, commands []finding.Action) {
	return "List the runs", []finding.Action{finding.Read("oc preflight history")}
}

// Remedy is what to do next, with its commands.
func (e *SelectionError) Remedy() (sentence string, commands []finding.Action) {
	return "Follow the run, or end it.", []finding.Action{finding.Read("oc preflight attach %s", e.ID), finding.Delete("oc preflight cancel %s", e.ID)}
}

// Remedy is what to do next, with its commands.
func (e *UnauthenticError) Remedy() (sentence string, commands []finding.Action) {
	if e.State == Unverifiable {
		return "Print a role with the permission", []finding.Action{finding.Read("oc preflight auth status")}
	}
	return "Run the preflight again, and end a run that is in progress.", []finding.Action{finding.Read("oc preflight run"), finding.Delete("oc preflight cancel %s", e.ID)}
}

// Ending is the final part of a record.
type Ending struct {
	// Phase is one of the final phases.
	Phase Phase
	// Verdict is the verdict of the report; its decision is empty if there is none.
	Verdict verdict.Verdict
	// Report is JSON of at most 64 MiB; nil if there is none.
	Report []byte
	// Fingerprint is the state of the cluster to which the verdict applies.
	Fingerprint map[string]string
	// Baseline is when the baseline was taken that is stored beside the record; zero for none.
	Baseline time.Time
}

// ValidUntil is the end of the validity of a verdict of that time: what the verdict
// states, at most fingerprint.MaxAge later.
func ValidUntil(decided verdict.Verdict, completed time.Time) time.Time {
	latest := completed.Add(fingerprint.MaxAge)
	if stated, err := time.Parse(time.RFC3339, decided.ValidUntil); err == nil && stated.Before(latest) {
		return stated.UTC()
	}
	return latest
}
