package preflight

import (
	"slices"
	"strings"
)

// finding combines the statements into one finding and ends the recording.
func (r *recorder) finding(c Check, how ending) Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true

	statements := r.statements
	if how.reason != "" {
		statements = slices.Insert(statements, 0, statement{outcome: Unknown, text: how.describe(r.step), reason: how.reason})
	}
	for i := range statements {
		statements[i].outcome = r.effectiveOutcome(c, statements[i])
	}
	// The cause comes first, so that truncation removes it last.
	slices.SortStableFunc(statements, func(x, y statement) int { return severity(y.outcome) - severity(x.outcome) })

	f := Finding{
		Name: c.Name, Message: c.Description, URL: c.URL,
		Objects: r.objects, Evidence: r.evidence,
	}
	first := statement{outcome: Pass, source: r.root}
	if len(statements) > 0 && statements[0].outcome != Pass {
		first = statements[0]
		f.Message = joinTexts(statements)
	}
	f.Outcome, f.Reason = first.outcome, first.effectiveReason()
	if severity(f.Outcome) > severity(Skipped) {
		f.Remediation, f.Actions = strings.Join(r.remedies, "\n"), r.actions
	}
	if f.Outcome == Unknown && f.Remediation == "" && len(f.Actions) == 0 {
		f.Remediation = remedyFor(f.Reason)
	}
	if how.stack != "" {
		r.evidence["stack"] = how.stack
	}
	return f
}

// effectiveOutcome returns the outcome that a statement contributes to the finding.
func (r *recorder) effectiveOutcome(c Check, s statement) Outcome {
	switch {
	case s.outcome == Fail && c.Advisory:
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
