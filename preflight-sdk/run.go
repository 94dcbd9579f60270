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

// Why a check's context ended, where it was not the end of the process.
var (
	errCheckTimeout = errors.New("the check's time is up")
	errRunDeadline  = errors.New("the run's time is up")
)

// The reasons of checks that could not tell.
const (
	reasonError       = "CheckError"
	reasonPanic       = "Panic"
	reasonTimeout     = "Timeout"
	reasonInterrupted = "Interrupted"
	reasonNotFinished = "NotFinished"
	reasonInvalid     = "InvalidCheck"

	reasonPrerequisite = "PrerequisiteFailed"
	reasonInconclusive = "Inconclusive"
)

// maxFrames bounds the stack that is reported with a panic.
const maxFrames = 8

// ending is how the call of a check's Run ended. Its zero value is a plain
// return of nil.
type ending struct {
	reason string // empty when the check could tell
	text   string
	stack  string
}

// describe says for people why the check could not tell, and how far it got.
func (e ending) describe(step string) string {
	if step == "" || e.reason == reasonError {
		return e.text
	}
	return fmt.Sprintf("%s (last step: %s)", e.text, step)
}

// remedyFor is what to do where the check's author gave no advice.
func remedyFor(reason string) string {
	switch reason {
	case reasonPanic:
		return "This is a defect of the check: report it to its owners, with the stack in the evidence."
	case reasonTimeout:
		return "Run the preflight again with a longer timeout; if it ends the same way, read the log of the check."
	case reasonPrerequisite:
		return "Do first what the check that it comes after asks for, then run the preflight again."
	case reasonInterrupted:
		return "Run the preflight again."
	default:
		return "Remove the cause and run the preflight again; the log of the check may say more."
	}
}

// Evaluate asks this one check about the update and gives its finding, as
// [Main] does, but touches nothing of the process: no flag, environment,
// signal, file or exit. It serves tests and programs with a main of their own.
//
// It always returns, at the latest half a second after ctx is done; a check
// that goes on is left behind. A panic is a finding. After is not looked at,
// for there are no other checks. A declaration that [Main] would refuse gives
// Unknown with reason InvalidCheck. The lines of [T.Logf] go to log,
// which may be nil.
func (c Check) Evaluate(ctx context.Context, update Update, log io.Writer) Finding {
	c.After = nil
	if err := validate([]Check{c}); err != nil {
		return Finding{Name: c.Name, Outcome: Unknown, Reason: reasonInvalid, Message: err.Error(), URL: c.URL}
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
	// grace is how long a check may go on after its time was up, to say what
	// it knows.
	grace time.Duration
}

// run asks one check, unless the findings of earlier ones forbid it. It always returns, at the latest grace after ctx is
// done; a check that goes on is left behind.
func (r runner) run(ctx context.Context, c Check, earlier []Finding) Finding {
	a := &account{check: c, evidence: map[string]string{}}
	if ctx.Err() != nil {
		return a.finding(unstarted(ctx, c))
	}
	if how := blocked(c, earlier); how.reason != "" {
		return a.finding(how)
	}

	ctx, cancel := bounded(ctx, c.Timeout)
	defer cancel()
	ended := make(chan ending, 1)
	a.root = &T{account: a, update: r.update, log: r.log, ctx: ctx}
	go call(c, a.root, ended)
	select {
	case how := <-ended:
		return a.finding(how)
	case <-ctx.Done():
	}

	grace := time.NewTimer(r.grace)
	defer grace.Stop()
	select {
	case how := <-ended:
		return a.finding(how)
	case <-grace.C:
		return a.finding(late(ctx, c, nil))
	}
}

// bounded is ctx that ends after timeout, if there is one.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errCheckTimeout)
}

// call calls the check and always sends how that ended.
func call(c Check, t *T, ended chan<- ending) {
	var how ending
	defer func() { ended <- how }()
	attempt(&how, func() ending {
		defer t.cleanUp()
		err := c.Run(t.ctx, t)
		switch {
		// What a check says once its time is up rests on requests that were cut
		// short, so even a nil is no pass.
		case t.ctx.Err() != nil:
			return late(t.ctx, c, err)
		case err != nil:
			return ending{reason: reasonError, text: err.Error()}
		}
		return ending{}
	})
}

// attempt calls what an author wrote, and keeps in how in what way that ended:
// by a return, a panic, or runtime.Goexit, after which it does not return.
func attempt(how *ending, run func() ending) {
	returned := false
	defer func() {
		if !returned {
			*how = unwound(recover())
		}
	}()
	*how = run()
	returned = true
}

// late is the ending of a check whose ctx was done before it returned, with
// the error that it returned, if any.
func late(ctx context.Context, c Check, err error) ending {
	how := ending{reason: reasonTimeout}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errCheckTimeout):
		how.text = fmt.Sprintf("%s did not finish within %s", c.Name, c.Timeout)
	case runEnded(cause):
		how.text = c.Name + " did not finish before the deadline of the run"
	default:
		how = ending{reason: reasonInterrupted, text: c.Name + " was interrupted"}
	}
	if err != nil && err.Error() != ctx.Err().Error() {
		how.text += ": " + err.Error()
	}
	return how
}

// runEnded reports whether a context ended by the deadline of the run. It has
// no cause of ours where the author called Evaluate.
func runEnded(cause error) bool {
	return errors.Is(cause, errRunDeadline) || errors.Is(cause, context.DeadlineExceeded)
}

// unstarted is the ending of a check whose ctx was done before it began.
func unstarted(ctx context.Context, c Check) ending {
	if runEnded(context.Cause(ctx)) {
		return ending{reason: reasonTimeout, text: c.Name + " was not started before the deadline of the run"}
	}
	return ending{reason: reasonInterrupted, text: c.Name + " was not started before the process was told to end"}
}

// unwound is the ending of a check that did not return. It is called while
// the stack of the panic is still there.
func unwound(panicked any) ending {
	how := ending{reason: reasonPanic, text: "the check ended its own goroutine with runtime.Goexit", stack: stack()}
	if panicked != nil {
		how.text = fmt.Sprintf("panic: %v", panicked)
	}
	return how
}

// stack lists the innermost functions of the check that unwinds, without
// those of the Go runtime and of this package, one on a line.
func stack() string {
	counters := make([]uintptr, 64)
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters)])

	var lines []string
	for len(lines) < maxFrames {
		frame, more := frames.Next()
		if !internalFrame(frame.Function) {
			lines = append(lines, fmt.Sprintf("%s %s:%d", frame.Function, filepath.Base(frame.File), frame.Line))
		}
		if !more {
			break
		}
	}
	return strings.Join(lines, "\n")
}

func internalFrame(function string) bool {
	const own = "github.com/openshift/update-preflight/preflight-sdk."
	return function == "" || strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, own)
}
