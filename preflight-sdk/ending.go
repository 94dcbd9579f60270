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

// describe returns why the check was inconclusive, with its last step.
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
// those of the Go runtime and of this package.
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
