package preflight

import (
	"slices"
	"strings"
	"sync"
)

// recorder collects what one check reports.
type recorder struct {
	check Check
	root  *T // of the check itself; nil if the check was not started

	mu         sync.Mutex
	ended      bool
	statements []statement
	remedies   []string
	objects    []Object
	evidence   map[string]string
	step       string
	// passed is true once a part of the check ended without a statement.
	passed bool
}

// statement is one outcome that a check reported, or how the check ended.
type statement struct {
	outcome Outcome
	text    string
	// reason overrides the reason that the author set.
	reason string
	// source is the check or the part that reported; nil for how the check ended.
	source *T
}

// record calls f with the lock held. After the end of the check it does nothing.
func (r *recorder) record(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		f()
	}
}

// add adds a statement. The caller holds the lock.
func (r *recorder) add(s statement) {
	r.statements = append(r.statements, s)
	for t := s.source; t != nil; t = t.parent {
		if t.worst == "" || severity(s.outcome) > severity(t.worst) {
			t.worst = s.outcome
		}
	}
}

// finding combines the statements into one finding and ends the recording.
func (r *recorder) finding(how ending) Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true

	statements := r.statements
	if how.reason != "" {
		statements = slices.Insert(statements, 0, statement{outcome: Unknown, text: how.describe(r.step), reason: how.reason})
	}
	for i := range statements {
		statements[i].outcome = r.effectiveOutcome(statements[i])
	}
	// The cause comes first, so that truncation removes it last.
	slices.SortStableFunc(statements, func(x, y statement) int { return severity(y.outcome) - severity(x.outcome) })

	f := Finding{
		Name: r.check.Name, Message: r.check.Description, URL: r.check.URL,
		Objects: r.objects, Evidence: r.evidence,
	}
	first := statement{outcome: Pass, source: r.root}
	if len(statements) > 0 && statements[0].outcome != Pass {
		first = statements[0]
		f.Message = joinTexts(statements)
	}
	f.Outcome, f.Reason = first.outcome, first.effectiveReason()
	if severity(f.Outcome) > severity(Skipped) {
		f.Remediation = strings.Join(r.remedies, "\n")
	}
	if f.Outcome == Unknown && f.Remediation == "" {
		f.Remediation = remedyFor(f.Reason)
	}
	if how.stack != "" {
		r.evidence["stack"] = how.stack
	}
	return f
}

// effectiveOutcome returns the outcome that a statement contributes to the finding.
func (r *recorder) effectiveOutcome(s statement) Outcome {
	switch {
	case s.outcome == Fail && r.check.Advisory:
		return Warn
	case s.outcome == Skipped && r.passed && s.source.parent != nil:
		return Pass
	}
	return s.outcome
}

// effectiveReason returns the reason that the author set for the source or the
// nearest of its parents, otherwise the default of the outcome.
func (s statement) effectiveReason() string {
	if s.reason != "" {
		return s.reason
	}
	for t := s.source; t != nil; t = t.parent {
		if t.reason != "" {
			return t.reason
		}
	}
	switch s.outcome {
	case Fail:
		return "CheckFailed"
	case Warn:
		return "CheckWarned"
	case Skipped:
		return "NotApplicable"
	case Unknown:
		return reasonInconclusive
	case Pass:
	}
	return "Passed"
}

func joinTexts(statements []statement) string {
	texts := make([]string, len(statements))
	for i, s := range statements {
		texts[i] = s.text
	}
	return strings.Join(texts, "; ")
}

// severity orders outcomes: the most severe outcome that a check reports is the
// outcome of its finding. An undefined outcome is as severe as Unknown.
func severity(outcome Outcome) int {
	switch outcome {
	case Pass:
		return 0
	case Skipped:
		return 1
	case Warn:
		return 2
	case Unknown:
		return 3
	case Fail:
		return 4
	}
	return severity(Unknown)
}
