package preflight

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The causes of the end of a check's context, other than a signal.
var (
	errCheckTimeout = errors.New("the timeout of the check expired")
	errRunDeadline  = errors.New("the deadline of the run passed")
)

// The reasons of findings that are Unknown.
const (
	reasonError            = "CheckError"
	reasonPanic            = "Panic"
	reasonTimeout          = "Timeout"
	reasonInterrupted      = "Interrupted"
	reasonNotFinished      = "NotFinished"
	reasonInvalidCheck     = "InvalidCheck"
	reasonInvalidArguments = "InvalidArguments"
	reasonPrerequisite     = "PrerequisiteFailed"
	reasonInconclusive     = "Inconclusive"
)

// maxFrames is the maximum number of stack frames that are reported with a panic.
const maxFrames = 8

// ending describes how the call of a check's Run ended. The zero value means
// that it returned nil.
type ending struct {
	reason string // Empty if the check was conclusive.
	text   string
	stack  string
}

func (e ending) describe(step string) string {
	if step == "" || e.reason == reasonError {
		return e.text
	}
	return fmt.Sprintf("%s (last step: %s)", e.text, step)
}

// remedyFor returns the remediation of an Unknown finding whose check set none.
func remedyFor(reason string) string {
	switch reason {
	case reasonPanic:
		return "Report this defect of the check to its owners, with the stack in the evidence."
	case reasonTimeout:
		return "Run the preflight again with a longer timeout. If it times out again, read the log of the check."
	case reasonPrerequisite:
		return "Resolve the finding of the prerequisite, then run the preflight again."
	case reasonInterrupted:
		return "Run the preflight again."
	default:
		return "Fix the cause, then run the preflight again. The log of the check may contain details."
	}
}

// prerequisiteEnding returns the ending of a check that is not run because one
// of its prerequisites ended as Fail or Unknown; the zero ending if it may run.
// earlier are the findings so far.
func prerequisiteEnding(c Check, earlier []Finding) ending {
	for _, f := range earlier {
		if severity(f.Outcome) < severity(Unknown) || !slices.Contains(c.After, f.Name) {
			continue
		}
		how := "was inconclusive"
		if f.Outcome == Fail {
			how = "failed"
		}
		return ending{
			reason: reasonPrerequisite,
			text:   fmt.Sprintf("%s was not started: its prerequisite %s %s", c.Name, f.Name, how),
		}
	}
	return ending{}
}

// unstartedEnding is the ending of a check whose ctx was done before it began.
func unstartedEnding(ctx context.Context, c Check) ending {
	if isDeadline(context.Cause(ctx)) {
		return ending{reason: reasonTimeout, text: c.Name + " was not started before the deadline of the run"}
	}
	return ending{reason: reasonInterrupted, text: c.Name + " was not started before the process was interrupted"}
}

// lateEnding is the ending of a check whose ctx was done before it returned. err
// is the error that it returned, if any.
func lateEnding(ctx context.Context, c Check, err error) ending {
	how := ending{reason: reasonTimeout}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errCheckTimeout):
		how.text = fmt.Sprintf("%s did not finish within %s", c.Name, c.Timeout)
	case isDeadline(cause):
		how.text = c.Name + " did not finish before the deadline of the run"
	default:
		how = ending{reason: reasonInterrupted, text: c.Name + " was interrupted"}
	}
	if err != nil && err.Error() != ctx.Err().Error() {
		how.text += ": " + err.Error()
	}
	return how
}

// isDeadline reports whether a context ended by the deadline of the run. The
// context of a caller of Evaluate has the cause DeadlineExceeded.
func isDeadline(cause error) bool {
	return errors.Is(cause, errRunDeadline) || errors.Is(cause, context.DeadlineExceeded)
}

// attempt calls run and stores in how the way in which the call ended: by
// returning, by a panic, or by runtime.Goexit, after which attempt does not return.
func attempt(how *ending, run func() ending) {
	returned := false
	defer func() {
		if !returned {
			*how = panicEnding(recover())
		}
	}()
	*how = run()
	returned = true
}

// panicEnding is the ending of a check that did not return. It must be called
// while the stack of the panic still exists.
func panicEnding(panicked any) ending {
	how := ending{reason: reasonPanic, text: "the check ended its goroutine with runtime.Goexit", stack: stack()}
	if panicked != nil {
		how.text = fmt.Sprintf("panic: %v", panicked)
	}
	return how
}

// stack returns the innermost functions of the check, one per line, without
// functions of the Go runtime and of this package.
func stack() string {
	counters := make([]uintptr, 64)
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters)])

	var lines []string
	for len(lines) < maxFrames {
		frame, more := frames.Next()
		if !isInternal(frame.Function) {
			lines = append(lines, fmt.Sprintf("%s %s:%d", frame.Function, filepath.Base(frame.File), frame.Line))
		}
		if !more {
			break
		}
	}
	return strings.Join(lines, "\n")
}

func isInternal(function string) bool {
	const own = "github.com/openshift/update-preflight/preflight-sdk."
	return function == "" || strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, own)
}

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
