package preflight

import (
	"slices"
	"strings"
	"sync"
)

// account is all that a check said.
type account struct {
	check Check
	root  *T // the check's own; nil where it was not started

	mu       sync.Mutex
	ended    bool
	said     []statement
	remedies []string
	objects  []Object
	evidence map[string]string
	step     string
	// passed is true once a part of the check looked and found nothing.
	passed bool
}

// statement is one thing that a check said, or that was said about it.
type statement struct {
	outcome Outcome
	text    string
	// reason is set where the author has no say in it.
	reason string
	// by is who said it: the check or a part of it; nil for how it ended.
	by *T
}

// change calls f alone, and only while the check has not ended.
func (a *account) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		f()
	}
}

// add is called under the lock.
func (a *account) add(s statement) {
	a.said = append(a.said, s)
	for t := s.by; t != nil; t = t.parent {
		if t.worst == "" || severity(s.outcome) > severity(t.worst) {
			t.worst = s.outcome
		}
	}
}

// finding makes the finding out of all that was said, and lets nothing more be
// said.
func (a *account) finding(how ending) Finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true

	said := a.said
	if how.reason != "" {
		said = slices.Insert(said, 0, statement{outcome: Unknown, text: how.describe(a.step), reason: how.reason})
	}
	for i := range said {
		said[i].outcome = a.weigh(said[i])
	}
	// The cause comes first, so that it is the last to be cut off.
	slices.SortStableFunc(said, func(x, y statement) int { return severity(y.outcome) - severity(x.outcome) })

	f := Finding{
		Name: a.check.Name, Message: a.check.Description, URL: a.check.URL,
		Objects: a.objects, Evidence: a.evidence,
	}
	first := statement{outcome: Pass, by: a.root}
	if len(said) > 0 && said[0].outcome != Pass {
		first = said[0]
		f.Message = join(said)
	}
	f.Outcome, f.Reason = first.outcome, first.word()
	if severity(f.Outcome) > severity(Skipped) {
		f.Remediation = strings.Join(a.remedies, "\n")
	}
	if f.Outcome == Unknown && f.Remediation == "" {
		f.Remediation = remedyFor(f.Reason)
	}
	if how.stack != "" {
		a.evidence["stack"] = how.stack
	}
	return f
}

// weigh is what a statement counts as.
func (a *account) weigh(s statement) Outcome {
	switch {
	case s.outcome == Fail && a.check.Advisory:
		return Warn
	case s.outcome == Skipped && a.passed && s.by.parent != nil:
		return Pass
	}
	return s.outcome
}

// word is the reason: the author's for this part or what it is a part of, else
// the default of the outcome.
func (s statement) word() string {
	if s.reason != "" {
		return s.reason
	}
	for t := s.by; t != nil; t = t.parent {
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

func join(said []statement) string {
	texts := make([]string, len(said))
	for i, s := range said {
		texts[i] = s.text
	}
	return strings.Join(texts, "; ")
}

// severity orders outcomes: the worst of what a check said is its outcome.
// What is no outcome at all is as bad as not knowing.
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
