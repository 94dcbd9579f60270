package preflight

import (
	"fmt"
	"regexp"
)

// The states of a result.
const (
	// StateRunning means: written on the way, by a process that is still at
	// work or was killed. Checks that had not ended are Unknown with reason
	// NotFinished.
	StateRunning = "running"
	// StateFinal means: every check has ended.
	StateFinal = "final"
)

// Exit codes of a check program. The runner compares them with the result,
// see [Result.Agrees].
const (
	// ExitPass means: no check failed, and all could tell.
	ExitPass = 0
	// ExitUsage means: the program refused to run, for its arguments, its
	// environment or its declaration of checks.
	ExitUsage = 2
	// ExitFail means: at least one check failed.
	ExitFail = 3
	// ExitUnknown means: none failed, at least one could not tell.
	ExitUnknown = 4
)

// Result is what one check program says: the document on the wire. WIRE.md
// specifies its form.
type Result struct {
	// State is StateRunning or StateFinal.
	State string
	// RunID is the ID that the runner gave to the run, at most 64 letters,
	// digits, dots, dashes and underscores; empty where there is no runner.
	RunID string
	// Findings has one finding for each check, in the order of declaration.
	// Only the fields Name to Evidence but for Source are on the wire, so a
	// check cannot say what only the runner knows. Name is the check's own;
	// the runner puts the component before it.
	Findings []Finding
	// Truncated is true when something was left out to keep to the budget.
	// The outcome of what is left is never changed by that.
	Truncated bool
}

// Agrees reports whether the exit code of a process fits the result that it
// left. A process with a running result has not said its last word, and no
// code agrees.
func (r Result) Agrees(exitCode int) bool {
	if r.State != StateFinal {
		return false
	}
	want := r.exitCode()
	return exitCode == want || exitCode == ExitUsage && want == ExitUnknown
}

// exitCode is the exit code that goes with the worst of the findings.
func (r Result) exitCode() int {
	switch worst(r.Findings) {
	case Fail:
		return ExitFail
	case Pass, Skipped, Warn:
		return ExitPass
	case Unknown:
	}
	return ExitUnknown
}

// worst is the outcome of all findings together. Nothing found is not a pass.
func worst(findings []Finding) Outcome {
	if len(findings) == 0 {
		return Unknown
	}
	out := Pass
	for _, f := range findings {
		if severity(f.Outcome) > severity(out) {
			out = f.Outcome
		}
	}
	return out
}

// Limits of what is on the wire, in bytes.
const (
	maxDocument = 1 << 20
	maxName     = 128
)

// document is the JSON form of a Result.
type document struct {
	State     string          `json:"state"`
	RunID     string          `json:"runID,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	Findings  []documentEntry `json:"findings"`
}

// documentEntry is the JSON form of those fields of a Finding that a check may
// fill in.
type documentEntry struct {
	Name        string            `json:"name"`
	Outcome     Outcome           `json:"outcome"`
	Reason      string            `json:"reason"`
	Message     string            `json:"message,omitempty"`
	Remediation string            `json:"remediation,omitempty"`
	URL         string            `json:"url,omitempty"`
	Objects     []Object          `json:"objects,omitempty"`
	Evidence    map[string]string `json:"evidence,omitempty"`
}

func newDocument(r Result) document {
	d := document{State: r.State, RunID: r.RunID, Truncated: r.Truncated, Findings: make([]documentEntry, len(r.Findings))}
	for i, f := range r.Findings {
		d.Findings[i] = documentEntry{
			Name:        f.Name,
			Outcome:     f.Outcome,
			Reason:      f.Reason,
			Message:     f.Message,
			Remediation: f.Remediation,
			URL:         f.URL,
			Objects:     f.Objects,
			Evidence:    f.Evidence,
		}
	}
	return d
}

func (d document) result() Result {
	r := Result{State: d.State, RunID: d.RunID, Truncated: d.Truncated, Findings: make([]Finding, len(d.Findings))}
	for i, e := range d.Findings {
		f := Finding{
			Name:        e.Name,
			Outcome:     e.Outcome,
			Reason:      e.Reason,
			Message:     e.Message,
			Remediation: e.Remediation,
			URL:         e.URL,
			Objects:     e.Objects,
			Evidence:    e.Evidence,
		}
		// A newer SDK may know more outcomes; to us they mean nothing.
		if !known(e.Outcome) {
			f.Outcome = Unknown
			f.Message = fmt.Sprintf("has the outcome %q, which this version does not know; %s", e.Outcome, e.Message)
		}
		r.Findings[i] = f
	}
	return r
}

func known(outcome Outcome) bool {
	switch outcome {
	case Pass, Warn, Fail, Unknown, Skipped:
		return true
	}
	return false
}

// validate holds for every document on the wire, for writers and readers.
func (d document) validate() error {
	if d.State != StateRunning && d.State != StateFinal {
		return fmt.Errorf("state %q: want %q or %q", d.State, StateRunning, StateFinal)
	}
	if err := validateRunID(d.RunID); err != nil {
		return err
	}
	if len(d.Findings) == 0 {
		return fmt.Errorf("%s result without findings", d.State)
	}

	name := regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)
	seen := map[string]bool{}
	for i, e := range d.Findings {
		if len(e.Name) > maxName || !name.MatchString(e.Name) {
			return fmt.Errorf("finding %d: name %.*q: want at most %d bytes that match %s", i+1, maxName, e.Name, maxName, name)
		}
		if seen[e.Name] {
			return fmt.Errorf("finding %q is there twice", e.Name)
		}
		seen[e.Name] = true
		if len(e.Reason) > maxName {
			return fmt.Errorf("finding %q: reason of %d bytes: want at most %d", e.Name, len(e.Reason), maxName)
		}
	}
	return nil
}

func validateRunID(id string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`).MatchString(id) {
		return fmt.Errorf("run ID %.64q: want at most 64 letters, digits, dots, dashes and underscores", id)
	}
	return nil
}
