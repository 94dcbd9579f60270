package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/openshift/update-preflight/preflight-sdk/internal/wire"
)

// programFinding is the name of a finding about the program as a whole.
const programFinding = "Preflight"

// The states of a result.
const (
	// StateRunning means that the process is still running, or was killed. Checks
	// that had not ended are Unknown with the reason NotFinished.
	StateRunning = "running"
	// StateFinal means that every check has ended.
	StateFinal = "final"
)

// Exit codes of a check program. The runner compares them with the result, see
// [Result.Agrees].
const (
	// ExitPass means that no check failed or was inconclusive.
	ExitPass = 0
	// ExitUsage means that no check was run because the arguments, the environment
	// or the declarations of the checks are invalid.
	ExitUsage = 2
	// ExitFail means that at least one check failed.
	ExitFail = 3
	// ExitUnknown means that no check failed and at least one was inconclusive.
	ExitUnknown = 4
)

// Result is the result of one check program: the document in the wire format that
// WIRE.md specifies.
type Result struct {
	// State is StateRunning or StateFinal.
	State string
	// RunID is the ID of the run, at most 64 letters, digits, dots, dashes and
	// underscores; empty without a runner.
	RunID string
	// Findings contains one finding per check, in the order of declaration. Name is
	// the name of the check; the runner prefixes it with the component.
	Findings []Finding
	// Truncated is true if something was removed to fit the budget. Truncation
	// never changes an outcome.
	Truncated bool
}

// Agrees reports whether the exit code of a process is consistent with the result
// that it wrote. No exit code agrees with a running result.
func (r Result) Agrees(exitCode int) bool {
	if r.State != StateFinal {
		return false
	}
	want := r.exitCode()
	return exitCode == want || exitCode == ExitUsage && want == ExitUnknown
}

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

// worst returns the most severe outcome of the findings, and Unknown if there are
// none.
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

// maxName limits names and reasons in the wire format, in bytes.
const maxName = 128

var (
	namePattern  = regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)
	runIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)
)

type document struct {
	State     string            `json:"state"`
	RunID     string            `json:"runID,omitempty"`
	Truncated bool              `json:"truncated,omitempty"`
	Findings  []documentFinding `json:"findings"`
}

// documentFinding is the JSON form of the fields of a Finding that a check may
// set.
type documentFinding struct {
	Name        string            `json:"name"`
	Outcome     Outcome           `json:"outcome"`
	Reason      string            `json:"reason"`
	Message     string            `json:"message,omitempty"`
	Remediation string            `json:"remediation,omitempty"`
	Actions     []Action          `json:"actions,omitempty"`
	URL         string            `json:"url,omitempty"`
	Objects     []Object          `json:"objects,omitempty"`
	Evidence    map[string]string `json:"evidence,omitempty"`
}

func newDocument(r Result) document {
	d := document{State: r.State, RunID: r.RunID, Truncated: r.Truncated, Findings: make([]documentFinding, len(r.Findings))}
	for i, f := range r.Findings {
		d.Findings[i] = documentFinding(f)
	}
	return d
}

func (d document) result() Result {
	r := Result{State: d.State, RunID: d.RunID, Truncated: d.Truncated, Findings: make([]Finding, len(d.Findings))}
	for i, e := range d.Findings {
		f := Finding(e)
		// A newer SDK may define more outcomes.
		if !isOutcome(e.Outcome) {
			f.Outcome = Unknown
			f.Message = fmt.Sprintf("outcome %q is not supported by this version; %s", e.Outcome, e.Message)
		}
		r.Findings[i] = f
	}
	return r
}

func isOutcome(outcome Outcome) bool {
	switch outcome {
	case Pass, Warn, Fail, Unknown, Skipped:
		return true
	}
	return false
}

// validate checks the rules of the wire format. Writers and readers apply it.
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

	seen := map[string]bool{}
	for i, e := range d.Findings {
		if len(e.Name) > maxName || !namePattern.MatchString(e.Name) {
			return fmt.Errorf("finding %d: name %.*q: want at most %d bytes that match %s", i+1, maxName, e.Name, maxName, namePattern)
		}
		if seen[e.Name] {
			return fmt.Errorf("duplicate finding %q", e.Name)
		}
		seen[e.Name] = true
		if len(e.Reason) > maxName {
			return fmt.Errorf("finding %q: reason of %d bytes: want at most %d", e.Name, len(e.Reason), maxName)
		}
	}
	return nil
}

func validateRunID(id string) error {
	if !runIDPattern.MatchString(id) {
		return fmt.Errorf("run ID %.64q: want at most 64 letters, digits, dots, dashes and underscores", id)
	}
	return nil
}

// shortenings returns the steps that shorten a document. Each step is applied to
// the result of the previous one. No step changes an outcome.
func shortenings() []func(document) document {
	return []func(document) document{
		each(func(f *documentFinding) {
			if severity(f.Outcome) <= severity(Skipped) {
				f.Evidence = nil
			}
		}),
		each(func(f *documentFinding) { f.Evidence, f.Objects = nil, nil }),
		cutAt(512),
		cutAt(256),
		cutAt(128),
		cutAt(64),
		each(func(f *documentFinding) { *f = documentFinding{Name: f.Name, Outcome: f.Outcome, Reason: f.Reason} }),
		summarize,
	}
}

// each returns a step that applies change to a copy of every finding.
func each(change func(*documentFinding)) func(document) document {
	return func(d document) document {
		findings := make([]documentFinding, len(d.Findings))
		for i, f := range d.Findings {
			change(&f)
			findings[i] = f
		}
		d.Findings = findings
		return d
	}
}

// cutAt returns a step that keeps the first limit bytes of the texts. A longer
// URL or command is removed, because a truncated one is useless.
func cutAt(limit int) func(document) document {
	return each(func(f *documentFinding) {
		f.Message = cut(f.Message, limit)
		f.Remediation = cut(f.Remediation, limit)
		f.Actions = slices.DeleteFunc(slices.Clone(f.Actions), func(action Action) bool { return len(action.Command) > limit })
		if len(f.URL) > limit {
			f.URL = ""
		}
	})
}

// cut keeps whole characters of the text, at most limit bytes including the
// ellipsis.
func cut(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// summarize replaces all findings by one with the worst outcome.
func summarize(d document) document {
	count := map[Outcome]int{}
	for _, f := range d.Findings {
		count[f.Outcome]++
	}
	d.Findings = []documentFinding{{
		Name:    programFinding,
		Outcome: worst(d.result().Findings),
		Reason:  "ResultTooLong",
		Message: fmt.Sprintf("%d checks: %d Fail, %d Unknown, %d Warn, %d Skipped, %d Pass; their names are in the log",
			len(d.Findings), count[Fail], count[Unknown], count[Warn], count[Skipped], count[Pass]),
	}}
	return d
}

// ErrNoFrame means that there is no complete frame: the process did not write
// one, or it was cut off.
var ErrNoFrame = wire.ErrNoFrame

const (
	// defaultBudget is the size of a termination message that a kubelet keeps, in
	// bytes.
	defaultBudget = 4096
	// minBudget is the size in bytes into which every result fits.
	minBudget = 512
)

// Frame encodes the result as one line that ends in a newline and is at most
// budget bytes long. A budget of 0 means 4096, the size of a termination message
// that a kubelet keeps. The minimum is 512.
//
// What does not fit is removed in this order: the evidence of passed and skipped
// checks; all evidence and objects; the ends of messages and remediations, and long
// commands; everything except name, outcome and reason; and finally the findings, which
// are replaced by one finding with the worst outcome and the counts.
//
// Frame returns an error for a result that [ParseFrame] would not accept: one
// without findings, or with missing, malformed or duplicate names.
func (r Result) Frame(budget int) ([]byte, error) {
	if budget == 0 {
		budget = defaultBudget
	}
	if budget < minBudget {
		return nil, fmt.Errorf("frame budget of %d bytes: want at least %d", budget, minBudget)
	}
	d := newDocument(r)
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("cannot frame the result: %w", err)
	}
	line, _, err := fit(d, budget)
	return line, err
}

// fit encodes as much of d as the budget allows. truncated reports whether
// anything was removed.
func fit(d document, budget int) (line []byte, truncated bool, err error) {
	line, err = d.encode(budget)
	if err != nil || line != nil {
		return line, false, err
	}
	for _, shorten := range shortenings() {
		d = shorten(d)
		d.Truncated = true
		line, err = d.encode(budget)
		if err != nil || line != nil {
			return line, true, err
		}
	}
	return nil, true, fmt.Errorf("a result of %d findings does not fit into %d bytes", len(d.Findings), budget)
}

// encode returns the line for d, or nil if it does not fit into the budget.
func (d document) encode(budget int) ([]byte, error) {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("cannot encode the result: %w", err)
	}
	return wire.Line(bytes.TrimSuffix(plain.Bytes(), []byte("\n")), budget)
}

// logLines encodes the result for a log, where up to 1 MiB of JSON is written in
// full. A long frame is split into lines that each contain a part.
func logLines(r Result) ([]byte, error) {
	d := newDocument(r)
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("cannot frame the result: %w", err)
	}
	line, _, err := fit(d, 2*wire.MaxDocument)
	if err != nil {
		return nil, err
	}
	return wire.Split(line), nil
}

// ParseFrame returns the result in data, which is a termination message or a
// log. Other text and incomplete frames are ignored. If there are several
// complete frames, the last one counts.
//
// It returns [ErrNoFrame] if there is no complete frame. It returns another
// error if the only frames are damaged or have an unsupported version of the
// wire format, or if the frame that counts does not contain a valid result.
//
// At most 1 MiB of JSON is decoded, whatever data contains. Unknown fields are
// ignored; an unknown outcome becomes Unknown.
func ParseFrame(data []byte) (Result, error) {
	plain, err := wire.Last(data)
	if err != nil {
		return Result{}, err
	}
	var d document
	if err := json.Unmarshal(plain, &d); err != nil {
		return Result{}, fmt.Errorf("preflight frame has no valid result: %w", err)
	}
	if err := d.validate(); err != nil {
		return Result{}, fmt.Errorf("preflight frame has no valid result: %w", err)
	}
	return d.result(), nil
}
