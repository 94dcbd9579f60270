// Package process answers: how does a test run a program beside itself, and learn at once
// that it has ended?
//
// Each wait for a program ends when the program does, with the output of the program as the
// reason, and not only after its time limit.
package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// margin is how long before the deadline of the tests a wait ends, which then fails with
	// the output of the program. Nothing else bounds a wait: machines differ in speed.
	margin = 30 * time.Second
	// interval is the time between two checks of a condition.
	interval = 100 * time.Millisecond
	// inherited is how long children of the program may keep its output open after its end.
	inherited = time.Second
)

// Process is a program that a test has started.
type Process struct {
	// Started is the time of the start.
	Started time.Time

	command        *exec.Cmd
	stdout, stderr output
	// ended is closed when the program has ended; failed before, unless the test has sent
	// it a signal.
	ended, failed chan struct{}
	signaled      atomic.Bool
}

// Start starts a program, keeps its output, and kills it at the end of the test.
func Start(tb testing.TB, command *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{Started: time.Now(), command: command, ended: make(chan struct{}), failed: make(chan struct{})}
	command.Stdout, command.Stderr = &p.stdout, &p.stderr
	command.WaitDelay = inherited
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = command.Wait() // Code is the result
		if !p.signaled.Load() {
			close(p.failed)
		}
	}()
	tb.Cleanup(func() { p.Kill() })
	return p
}

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Code returns the exit code of a program that has ended; -1 after a signal.
func (p *Process) Code() int { return p.command.ProcessState.ExitCode() }

// Stdout returns the standard output so far.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr returns the standard error so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// Kill sends SIGKILL, and returns when the program has ended.
func (p *Process) Kill() {
	p.signaled.Store(true)
	_ = p.command.Process.Kill() // it may have ended already
	<-p.ended
}

// Stop sends a signal that ends the program, waits for the end, and returns the exit code.
func (p *Process) Stop(tb testing.TB, signal os.Signal) int {
	tb.Helper()
	p.signaled.Store(true)
	_ = p.command.Process.Signal(signal) // it may have ended already
	return p.Wait(tb)
}

// Wait waits for the end of the program, and returns its exit code.
func (p *Process) Wait(tb testing.TB) int {
	tb.Helper()
	ctx, cancel := bounded(tb)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.Kill()
		tb.Fatalf("the program did not end in the time of the tests; %s", p.words())
	}
	return p.Code()
}

// bounded returns a context that ends before the deadline of the tests, if there is one.
func bounded(tb testing.TB) (context.Context, context.CancelFunc) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	if test, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, limited := test.Deadline(); limited {
			return context.WithDeadline(ctx, deadline.Add(-margin))
		}
	}
	return context.WithCancel(ctx)
}

// AwaitOutput waits until the standard error contains a text.
func (p *Process) AwaitOutput(tb testing.TB, text string) {
	tb.Helper()
	p.until(tb, fmt.Sprintf("the output %q", text), func(context.Context) (met bool, changed <-chan struct{}) {
		changed = p.stderr.more()
		return strings.Contains(p.Stderr(), text), changed
	})
}

// Await waits until a condition is met. What names the condition.
func (p *Process) Await(tb testing.TB, what string, met func(context.Context) bool) {
	tb.Helper()
	p.until(tb, what, func(ctx context.Context) (bool, <-chan struct{}) { return met(ctx), nil })
}

// until checks a condition again whenever the channel that it returns is closed, or
// repeatedly if that is nil, and for the last time when the program has ended.
func (p *Process) until(tb testing.TB, what string, check func(context.Context) (met bool, changed <-chan struct{})) {
	tb.Helper()
	ctx, cancel := bounded(tb)
	defer cancel()
	for {
		met, changed := check(ctx)
		if met {
			return
		}
		var again <-chan time.Time
		if changed == nil {
			again = time.After(interval)
		}
		select {
		case <-changed:
		case <-again:
		case <-p.ended:
			if met, _ := check(ctx); !met {
				tb.Fatalf("waiting for %s: %v", what, p.end())
			}
			return
		case <-ctx.Done():
			p.Kill()
			tb.Fatalf("waiting for %s until the deadline of the tests; %s", what, p.words())
		}
	}
}

// While returns a context that ends with the first of these programs to which the test has
// not sent a signal, or by cancel. The cause has the output of the program.
func While(ctx context.Context, all ...*Process) (while context.Context, cancel context.CancelFunc) {
	while, end := context.WithCancelCause(ctx)
	for _, p := range all {
		select {
		case <-p.failed:
			end(p.end())
		default:
			go func() {
				select {
				case <-p.failed:
					end(p.end())
				case <-while.Done():
				}
			}()
		}
	}
	return while, func() { end(nil) }
}

// end is the end of the program, as an error.
func (p *Process) end() error {
	return fmt.Errorf("the program has ended with exit code %d; %s", p.Code(), p.words())
}

// words is the name of the program with its standard error.
func (p *Process) words() string {
	return fmt.Sprintf("the output of %s:\n%s", filepath.Base(p.command.Path), p.Stderr())
}

// output is the output of a running program.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
	wait  chan struct{} // closed at the next output
}

// Write implements io.Writer.
func (o *output) Write(data []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.wait != nil {
		close(o.wait)
		o.wait = nil
	}
	return o.text.Write(data)
}

// String implements fmt.Stringer.
func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// more returns a channel that is closed at the next output.
func (o *output) more() <-chan struct{} {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.wait == nil {
		o.wait = make(chan struct{})
	}
	return o.wait
}
