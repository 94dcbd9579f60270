package preflight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"time"
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

// Evaluate runs this one check for the update and returns its finding, as [Main]
// does, without using flags, the environment, signals, files or the exit code of
// the process. It is for tests and for programs with a main function of their
// own.
//
// It returns at most half a second after ctx is done; a check that continues is
// abandoned. A panic becomes a finding. After is ignored. A declaration that
// [Main] rejects is reported as Unknown with the reason InvalidCheck. The lines
// of [T.Logf] are written to log, which may be nil.
func (c Check) Evaluate(ctx context.Context, update Update, log io.Writer) Finding {
	c.After = nil
	if err := validate([]Check{c}); err != nil {
		return Finding{Name: c.Name, Outcome: Unknown, Reason: reasonInvalidCheck, Message: err.Error(), URL: c.URL}
	}
	if log == nil {
		log = io.Discard
	}
	return runner{update: update, log: log, grace: maxGrace}.run(ctx, c, nil)
}

// runner runs checks, one after another.
type runner struct {
	update Update
	log    io.Writer
	// grace is how long a check may continue after its context is done, to report
	// what it knows.
	grace time.Duration
}

// run runs one check, unless the findings of its prerequisites prevent it. It
// returns at most grace after ctx is done; a check that continues is abandoned.
func (r runner) run(ctx context.Context, c Check, earlier []Finding) Finding {
	recorder := &recorder{check: c, evidence: map[string]string{}}
	if ctx.Err() != nil {
		return recorder.finding(unstartedEnding(ctx, c))
	}
	if how := prerequisiteEnding(c, earlier); how.reason != "" {
		return recorder.finding(how)
	}

	ctx, cancel := withTimeout(ctx, c.Timeout)
	defer cancel()
	ended := make(chan ending, 1)
	recorder.root = &T{recorder: recorder, update: r.update, log: r.log, ctx: ctx}
	go call(c, recorder.root, ended)
	select {
	case how := <-ended:
		return recorder.finding(how)
	case <-ctx.Done():
	}

	grace := time.NewTimer(r.grace)
	defer grace.Stop()
	select {
	case how := <-ended:
		return recorder.finding(how)
	case <-grace.C:
		return recorder.finding(lateEnding(ctx, c, nil))
	}
}

// withTimeout returns a context that ends after timeout; 0 means no timeout.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errCheckTimeout)
}

// call calls the Run function of the check. It always sends how the call ended.
func call(c Check, t *T, ended chan<- ending) {
	var how ending
	defer func() { ended <- how }()
	attempt(&how, func() ending {
		defer t.runCleanups()
		err := c.Run(t.ctx, t)
		switch {
		// After its time is up, the requests of a check are cut short, so that even
		// nil is not a pass.
		case t.ctx.Err() != nil:
			return lateEnding(t.ctx, c, err)
		case err != nil:
			return ending{reason: reasonError, text: err.Error()}
		}
		return ending{}
	})
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

// unstartedEnding is the ending of a check whose ctx was done before it began.
func unstartedEnding(ctx context.Context, c Check) ending {
	if isDeadline(context.Cause(ctx)) {
		return ending{reason: reasonTimeout, text: c.Name + " was not started before the deadline of the run"}
	}
	return ending{reason: reasonInterrupted, text: c.Name + " was not started before the process was interrupted"}
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
