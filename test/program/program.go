// Package program answers: what does oc-preflight do when it is called with these arguments?
// [Call] executes it in this process, whose environment and directory it has: the start of a
// program takes longer than most of its calls. Signals, and what remains of a program that is
// killed, need a program (package process).
package program

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
)

// name is how the program is called, unless a test calls it by another name. oc calls a plugin by its path.
const name = "/usr/local/bin/oc-preflight"

// limit bounds each wait.
const limit = 10 * time.Minute

// Result is the exit code and the output of a program.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Call executes the program, and returns when it has ended.
func Call(tb testing.TB, arguments ...string) Result {
	tb.Helper()
	return Start(tb, arguments...).Wait()
}

// CallAs is Call by another name of the program: a path that is not absolute is how a user calls it, and not oc.
func CallAs(tb testing.TB, name string, arguments ...string) Result {
	tb.Helper()
	return start(tb, name, arguments).Wait()
}

// Execution is the program in progress.
type Execution struct {
	// Stdout and Stderr are its output so far.
	Stdout, Stderr Output

	tb testing.TB
	// called is the name of the program with its arguments.
	called    []string
	interrupt context.CancelFunc
	ended     chan struct{}
	code      int
	// label is that of its goroutines.
	label string
}

// Start executes the program in the background. It is interrupted at the end of the test.
func Start(tb testing.TB, arguments ...string) *Execution {
	tb.Helper()
	return start(tb, name, arguments)
}

func start(tb testing.TB, name string, arguments []string) *Execution {
	tb.Helper()
	ctx, interrupt := context.WithCancel(context.WithoutCancel(tb.Context()))
	e := &Execution{tb: tb, called: append([]string{name}, arguments...), interrupt: interrupt, ended: make(chan struct{}), label: newLabel()}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &e.Stdout, ErrOut: &e.Stderr}
	go func() {
		defer close(e.ended)
		labeled(ctx, e.label, func(ctx context.Context) {
			e.code = command.Execute(ctx, e.called, streams)
		})
	}()
	tb.Cleanup(func() {
		interrupt()
		e.await("the end of the program", e.ended)
	})
	return e
}

// Ended returns a channel that is closed when the program has ended.
func (e *Execution) Ended() <-chan struct{} { return e.ended }

// Interrupt has the effect of the first signal.
func (e *Execution) Interrupt() { e.interrupt() }

// Wait returns the result when the program has ended, and its goroutines have, too.
func (e *Execution) Wait() Result {
	e.tb.Helper()
	e.await("the end of the program", e.ended)
	expectEnded(e.tb, e.label)
	return Result{Code: e.code, Stdout: e.Stdout.String(), Stderr: e.Stderr.String()}
}

// AwaitStdout returns when the standard output contains a text. It fails the test if the program ends without it.
func (e *Execution) AwaitStdout(text string) {
	e.tb.Helper()
	e.awaitText(&e.Stdout, text)
}

// AwaitStderr is AwaitStdout for standard error.
func (e *Execution) AwaitStderr(text string) {
	e.tb.Helper()
	e.awaitText(&e.Stderr, text)
}

func (e *Execution) awaitText(output *Output, text string) {
	e.tb.Helper()
	for more := output.more(); !strings.Contains(output.String(), text); more = output.more() {
		select {
		case <-e.ended:
			if !strings.Contains(output.String(), text) {
				e.tb.Fatalf("the program ended with exit code %d and without the output %q; %s", e.code, text, e.words())
			}
		case <-more:
		case <-time.After(limit):
			e.tb.Fatalf("after %s the output is without %q; %s", limit, text, e.words())
		}
	}
}

// await returns when a channel is closed.
func (e *Execution) await(what string, closed <-chan struct{}) {
	e.tb.Helper()
	select {
	case <-closed:
	case <-time.After(limit):
		e.tb.Fatalf("waiting for %s: %s have passed; %s", what, limit, e.words())
	}
}

// words are the arguments with the output.
func (e *Execution) words() string {
	return "the output of " + strings.Join(e.called, " ") + ":\n" + e.Stderr.String() + e.Stdout.String()
}

// Output is the output of a program in progress.
type Output struct {
	mutex sync.Mutex
	text  bytes.Buffer
	next  chan struct{} // closed at the next output
}

// Write implements io.Writer.
func (o *Output) Write(data []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.next != nil {
		close(o.next)
		o.next = nil
	}
	return o.text.Write(data)
}

// String implements fmt.Stringer.
func (o *Output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// more returns a channel that is closed at the next output.
func (o *Output) more() <-chan struct{} {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.next == nil {
		o.next = make(chan struct{})
	}
	return o.next
}
