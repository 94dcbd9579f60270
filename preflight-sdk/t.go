package preflight

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// T is the interface through which a check reports, like testing.T for a test. No
// method ends the check: return after the last report. The methods are safe for
// use by several goroutines. Calls after the check ended, or after its time was
// up, have no effect.
type T struct {
	recorder *recorder
	update   Update
	log      io.Writer
	ctx      context.Context //nolint:containedctx // A T lives as long as the call that ctx is for.

	// parent and path belong to a part; they are nil and "" for the check itself.
	parent *T
	path   string

	// The fields below are guarded by recorder.mu.
	reason   string
	worst    Outcome // Of this T and its parts; empty if nothing was reported.
	cleanups []func()
}

// Failf reports that the update would do harm. The message states why and names
// the object.
func (t *T) Failf(format string, args ...any) { t.report(Fail, format, args) }

// Warnf reports something that an administrator should know but that does not
// prevent the update.
func (t *T) Warnf(format string, args ...any) { t.report(Warn, format, args) }

// Skipf reports that the check does not apply to this cluster. The message states
// why. Any Warnf, Failf or error overrides it.
func (t *T) Skipf(format string, args ...any) { t.report(Skipped, format, args) }

// Inconclusivef reports that the check is inconclusive: the finding is Unknown
// unless something failed. It is for a valid response without an answer, such as
// an empty status; return an error as an error. The reason is the one that was
// set with Reason, or Inconclusive.
func (t *T) Inconclusivef(format string, args ...any) { t.report(Unknown, format, args) }

// Logf writes one line to the log, on standard error. The last line before a
// timeout or an interruption is reported as the last step.
func (t *T) Logf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.recorder.record(func() {
		t.recorder.step = t.qualified(": ", text)
		fmt.Fprintf(t.log, "%s: %s\n", t.name(), text)
	})
}

// Reason sets the reason of the finding: one CamelCase word of at most 63
// characters, stable across releases. The last call counts. The default is
// Passed, CheckWarned, CheckFailed, NotApplicable or Inconclusive, depending on
// the outcome. A check that did not complete always has the reason CheckError,
// Panic, Timeout, Interrupted or PrerequisiteFailed. An invalid word is logged
// and ignored.
func (t *T) Reason(camelCaseWord string) {
	if !isCamelCase(camelCaseWord) {
		t.Logf("reason %q is not a CamelCase word of at most %d characters: ignored", camelCaseWord, maxWord)
		return
	}
	t.recorder.record(func() { t.reason = camelCaseWord })
}

// Remedyf adds one line to the remediation: the action that resolves the finding, as a
// sentence. The remediation of a pass or a skip is not reported. A line that begins with
// four spaces is shown as it is, others are folded to fit the terminal. The same line is added once.
func (t *T) Remedyf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	t.recorder.record(func() {
		if !slices.Contains(t.recorder.remedies, line) {
			t.recorder.remedies = append(t.recorder.remedies, line)
		}
	})
}

// Commandf adds a command of the remedy, to be copied into a shell. Reports list the
// commands after the text of Remedyf, in the order of the calls, and neither fold nor
// shorten them. The same command is added once. A command of more than 4096 bytes is not reported. It may have several
// lines, such as a here-document.
func (t *T) Commandf(format string, args ...any) {
	command := strings.TrimSpace(fmt.Sprintf(format, args...))
	if len(command) > maxCommand {
		t.Logf("command of %d bytes: ignored, the limit is %d", len(command), maxCommand)
		return
	}
	t.recorder.record(func() {
		if command != "" && len(t.recorder.actions) < maxCommands && !slices.Contains(t.recorder.actions, Action{Command: command}) {
			t.recorder.actions = append(t.recorder.actions, Action{Command: command})
		}
	})
}

// Limits of the commands of one finding.
const (
	maxCommand  = 4096 // bytes
	maxCommands = 20
)

// Object adds an affected object. Add the most important one first.
func (t *T) Object(object Object) {
	t.recorder.record(func() { t.recorder.objects = append(t.recorder.objects, object) })
}

// Evidence adds a short fact that supports the finding; the last value of a key
// counts. It is shown in reports and logs and must not contain secrets. If a
// result is too long, evidence is removed first.
func (t *T) Evidence(key, value string) {
	t.recorder.record(func() { t.recorder.evidence[t.qualified("/", key)] = value })
}

// Update returns a copy of the update that is checked.
func (t *T) Update() Update { return t.update.clone() }

// Deadline returns when the context of Run ends; ok is false if it has no
// deadline.
func (t *T) Deadline() (deadline time.Time, ok bool) { return t.ctx.Deadline() }

// report formats before it locks, because the arguments may call methods of t.
func (t *T) report(outcome Outcome, format string, args []any) {
	text := t.qualified(": ", fmt.Sprintf(format, args...))
	t.recorder.record(func() { t.recorder.add(statement{outcome: outcome, text: text, source: t}) })
}

func (t *T) name() string {
	if t.parent == nil {
		return t.recorder.name
	}
	return t.recorder.name + "/" + t.path
}

func (t *T) qualified(separator, text string) string {
	if t.parent == nil {
		return text
	}
	return t.path + separator + text
}

type recorder struct {
	name string // of the check
	root *T     // of the check itself; nil if the check was not started

	mu         sync.Mutex
	ended      bool
	statements []statement
	remedies   []string
	actions    []Action
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
	reason  string
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

// Run runs a part of the check, such as the part for one node. It reports
// whether the part was conclusive and did not fail. The check continues in any
// case: an error or a panic of one part makes the finding Unknown, or leaves it
// Fail, and does not prevent the other parts from running.
//
// All parts together produce one finding. What a part reports is prefixed with
// its name in messages, in the log and in keys of evidence. A reason that it
// sets applies to what it reports. Skipf skips only the part: if another part
// passes, the check passes. Once ctx is done no part is started. Parts may have
// parts, and may run in several goroutines; wait for these before returning.
func (t *T) Run(name string, part func(ctx context.Context, t *T) error) (ok bool) {
	if t.ctx.Err() != nil {
		return false
	}
	p := &T{
		recorder: t.recorder, update: t.update, log: t.log, ctx: t.ctx,
		parent: t, path: t.qualified("/", name),
	}
	var how ending
	// Deferred because runtime.Goexit would skip it, and the part would pass.
	defer func() { ok = p.conclude(how) }()
	attempt(&how, func() ending {
		defer p.runCleanups()
		err := part(p.ctx, p)
		if err == nil || p.ctx.Err() != nil && err.Error() == p.ctx.Err().Error() {
			return ending{} // The ending of the check states that its time was up.
		}
		return ending{reason: reasonError, text: err.Error()}
	})
	return ok
}

// Cleanup registers f to be called when the check or the part ends, including by
// an error, a panic or a timeout. Functions are called in reverse order. What f
// reports through t counts, and a panic in f is a panic of the check.
//
// f is not called when the process is killed, and the program does not wait for
// a check that ignores its context. Use it to close and remove local resources
// only, never to revert a change of the cluster.
func (t *T) Cleanup(f func()) {
	t.recorder.mu.Lock()
	defer t.recorder.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *T) conclude(how ending) (ok bool) {
	t.recorder.record(func() {
		if how.reason != "" {
			t.recorder.add(statement{outcome: Unknown, text: t.qualified(": ", how.text), reason: how.reason, source: t})
		}
		if how.stack != "" {
			t.recorder.evidence[t.qualified("/", "stack")] = how.stack
		}
		if t.worst == "" {
			t.recorder.passed = true
		}
		ok = t.ctx.Err() == nil && (t.worst == "" || severity(t.worst) < severity(Unknown))
	})
	return ok
}

// runCleanups calls the registered functions in reverse order. A panic in one of
// them does not prevent the others from being called.
func (t *T) runCleanups() {
	f := t.popCleanup()
	if f == nil {
		return
	}
	defer t.runCleanups()
	f()
}

func (t *T) popCleanup() func() {
	t.recorder.mu.Lock()
	defer t.recorder.mu.Unlock()
	last := len(t.cleanups) - 1
	if last < 0 {
		return nil
	}
	f := t.cleanups[last]
	t.cleanups = t.cleanups[:last]
	return f
}
