package preflight

import (
	"context"
	"fmt"
	"io"
	"time"
)

// T is what a check says its findings to, as a test does to its testing.T.
// No method ends the check: after the last word, return. The methods may be
// called from several goroutines; calls after the check has ended, or after
// its time was up, are without effect.
type T struct {
	account *account
	update  Update
	log     io.Writer
	// ctx is what Run was called with; parts get it too.
	ctx context.Context //nolint:containedctx // A T lives as long as the call that ctx is for.

	// parent and path are of a part: nil and "" for the check itself.
	parent *T
	path   string

	// What follows is guarded by account.mu.
	reason   string
	worst    Outcome // of all that it and its parts said; empty: nothing
	cleanups []func()
}

// Failf says that the update would do harm, and why. Name the object.
func (t *T) Failf(format string, args ...any) { t.say(Fail, format, args) }

// Warnf says what an administrator should know, though it is no reason to
// stay.
func (t *T) Warnf(format string, args ...any) { t.say(Warn, format, args) }

// Skipf says that the check does not apply to this cluster, and why. It is
// outweighed by any Warnf, Failf or error.
func (t *T) Skipf(format string, args ...any) { t.say(Skipped, format, args) }

// Inconclusivef says that the check cannot tell, and why: the finding is
// Unknown, unless something failed. It is for an answer that is no answer;
// for an error, return it. The reason is the word given to Reason, or else
// Inconclusive.
func (t *T) Inconclusivef(format string, args ...any) { t.say(Unknown, format, args) }

// Logf writes one line to the log, on standard error. The last one before a
// timeout or an interruption is reported as the step at which it happened.
func (t *T) Logf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.account.change(func() {
		t.account.step = t.under(": ", text)
		fmt.Fprintf(t.log, "%s: %s\n", t.name(), text)
	})
}

// Reason sets the finding's reason: one CamelCase word of at most 63
// characters for machines, stable between releases. The last call counts.
// Without it the reason is Passed, CheckWarned, CheckFailed, NotApplicable or
// Inconclusive; a check that ended without an answer always has one of
// CheckError, Panic, Timeout, Interrupted and PrerequisiteFailed. A word of
// another form is logged and ignored.
func (t *T) Reason(camelCaseWord string) {
	if !camelCase(camelCaseWord) {
		t.Logf("reason %q is not a CamelCase word of at most %d characters: ignored", camelCaseWord, maxWord)
		return
	}
	t.account.change(func() { t.reason = camelCaseWord })
}

// Remedyf says what to do about it, with the command to type where there is
// one. Several calls are several lines. It is not reported with a pass or a
// skip.
func (t *T) Remedyf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	t.account.change(func() { t.account.remedies = append(t.account.remedies, line) })
}

// Object names an object that the finding is about, the most important first.
func (t *T) Object(object Object) {
	t.account.change(func() { t.account.objects = append(t.account.objects, object) })
}

// Evidence keeps a short fact that supports the finding; the last value of a
// key counts. It is read by many people: no secrets. Where the result is too
// long to be handed over, evidence is the first that is left out.
func (t *T) Evidence(key, value string) {
	t.account.change(func() { t.account.evidence[t.under("/", key)] = value })
}

// Update is the update that is asked about. It is the caller's own copy.
func (t *T) Update() Update { return t.update.clone() }

// Deadline is when the context given to Run ends; ok is false when it only
// ends by interruption.
func (t *T) Deadline() (deadline time.Time, ok bool) { return t.ctx.Deadline() }

// say formats before it locks: what is formatted may call back.
func (t *T) say(outcome Outcome, format string, args []any) {
	text := t.under(": ", fmt.Sprintf(format, args...))
	t.account.change(func() { t.account.add(statement{outcome: outcome, text: text, by: t}) })
}

// name is the check's, with the part's behind it.
func (t *T) name() string {
	if t.parent == nil {
		return t.account.check.Name
	}
	return t.account.check.Name + "/" + t.path
}

// under puts the part before the text.
func (t *T) under(separator, text string) string {
	if t.parent == nil {
		return text
	}
	return t.path + separator + text
}
