package preflight

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Update is the update that the checks judge. A field is empty when nobody
// told: the runner always tells, on a laptop the flags --from, --to and
// --image do.
type Update struct {
	// RunID identifies the preflight run; empty on a laptop.
	RunID string
	// From is the version that the cluster runs, e.g. 4.20.5.
	From string
	// To is the version that is asked about, e.g. 4.21.3.
	To string
	// Image is the pull spec by digest of the release image of To.
	Image string
}

// T is what a check says its findings to, as a test does to its testing.T.
// No method ends the check: after the last word, return. The methods may be
// called from several goroutines; calls after the check has ended, or after
// its time was up, are without effect.
type T struct {
	update   Update
	deadline time.Time
	name     string
	log      io.Writer

	mu       sync.Mutex
	ended    bool
	said     []statement
	reason   string
	remedies []string
	objects  []Object
	evidence map[string]string
	step     string
}

// statement is one thing that a check said, or that was said about it.
type statement struct {
	outcome Outcome
	text    string
}

// Failf says that the update would do harm, and why. Name the object.
func (t *T) Failf(format string, args ...any) { t.say(Fail, format, args) }

// Warnf says what an administrator should know, though it is no reason to
// stay.
func (t *T) Warnf(format string, args ...any) { t.say(Warn, format, args) }

// Skipf says that the check does not apply to this cluster, and why. It is
// outweighed by any Warnf, Failf or error.
func (t *T) Skipf(format string, args ...any) { t.say(Skipped, format, args) }

// Logf writes one line to the log, on standard error. The last one before a
// timeout or an interruption is reported as the step at which it happened.
func (t *T) Logf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.step = fmt.Sprintf(format, args...)
	fmt.Fprintf(t.log, "%s: %s\n", t.name, t.step)
}

// Reason sets the finding's reason: one CamelCase word of at most 63
// characters for machines, stable between releases. The last call counts.
// Without it the reason is Passed, CheckWarned, CheckFailed or NotApplicable;
// a check that could not tell always has one of CheckError, Panic, Timeout
// and Interrupted. A word of another form is logged and ignored.
func (t *T) Reason(camelCaseWord string) {
	if !camelCase(camelCaseWord) {
		t.Logf("reason %q is not a CamelCase word of at most %d characters: ignored", camelCaseWord, maxWord)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.reason = camelCaseWord
	}
}

// Remedyf says what to do about it, with the command to type where there is
// one. Several calls are several lines. It is not reported with a pass or a
// skip.
func (t *T) Remedyf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.remedies = append(t.remedies, fmt.Sprintf(format, args...))
	}
}

// Object names an object that the finding is about, the most important first.
func (t *T) Object(object Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.objects = append(t.objects, object)
	}
}

// Evidence keeps a short fact that supports the finding; the last value of a
// key counts. It is read by many people: no secrets. Where the result is too
// long to be handed over, evidence is the first that is left out.
func (t *T) Evidence(key, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.evidence[key] = value
	}
}

// Update is the update that is asked about.
func (t *T) Update() Update { return t.update }

// Deadline is when the context given to Run ends; ok is false when it only
// ends by interruption.
func (t *T) Deadline() (deadline time.Time, ok bool) {
	return t.deadline, !t.deadline.IsZero()
}

func (t *T) say(outcome Outcome, format string, args []any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.said = append(t.said, statement{outcome, fmt.Sprintf(format, args...)})
	}
}

// end makes the finding out of all that was said, and lets nothing more be
// said.
func (t *T) end(c Check, how ending) Finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true

	said := t.said
	if how.reason != "" {
		said = append(said, statement{Unknown, how.describe(t.step)})
	}
	if c.Advisory {
		for i := range said {
			said[i].outcome = advise(said[i].outcome)
		}
	}
	// The cause comes first, so that it is the last to be cut off.
	slices.SortStableFunc(said, func(a, b statement) int { return severity(b.outcome) - severity(a.outcome) })

	f := Finding{Name: c.Name, Outcome: Pass, Message: c.Description, URL: c.URL, Objects: t.objects}
	if len(said) > 0 {
		f.Outcome = said[0].outcome
		f.Message = join(said)
	}
	f.Reason = t.reasonFor(f.Outcome, how)
	if severity(f.Outcome) > severity(Skipped) {
		f.Remediation = strings.Join(t.remedies, "\n")
	}
	if f.Outcome == Unknown && f.Remediation == "" {
		f.Remediation = how.remedy()
	}
	if how.stack != "" {
		t.evidence["stack"] = how.stack
	}
	f.Evidence = t.evidence
	return f
}

// reasonFor gives the author's word, else the default of the outcome.
func (t *T) reasonFor(outcome Outcome, how ending) string {
	if outcome == Unknown {
		return how.reason
	}
	if t.reason != "" {
		return t.reason
	}
	switch outcome {
	case Fail:
		return "CheckFailed"
	case Warn:
		return "CheckWarned"
	case Skipped:
		return "NotApplicable"
	case Pass, Unknown:
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

// advise is what an outcome counts as where the check is advisory.
func advise(outcome Outcome) Outcome {
	if outcome == Fail {
		return Warn
	}
	return outcome
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
