package process_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/openshift/update-preflight/test/process"
)

// listenVariable is the environment variable that makes the test binary a program which
// listens on a port that the kernel chooses.
const listenVariable = "PREFLIGHT_TEST_LISTEN"

func TestMain(m *testing.M) {
	if os.Getenv(listenVariable) == "" {
		os.Exit(m.Run())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it returns at once
	if err != nil {
		os.Exit(1)
	}
	connection, err := listener.Accept()
	if err == nil {
		_, err = connection.Write([]byte("here"))
	}
	if err != nil {
		os.Exit(1)
	}
}

// shell returns a command that runs a script.
func shell(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "sh", "-c", script)
}

// failing is a test that has its own failure.
type failing struct {
	testing.TB

	message string
}

// Fatalf implements testing.TB.
func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure returns the message with which a function fails its test; "" if it does not.
func failure(t *testing.T, of func(testing.TB)) string {
	t.Helper()
	f, done := &failing{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		of(f)
	}()
	<-done
	return f.message
}

// A wait that did not end with the program would last until the deadline of the tests.
func TestEndIsReportedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		script string
		wait   func(testing.TB, *process.Process)
		want   string // in the message; no failure if empty
	}{
		"Output": {
			reason: "the program has the output", script: "echo listening >&2; exec sleep 600",
			wait: func(tb testing.TB, p *process.Process) { tb.Helper(); p.AwaitOutput(tb, "listening") },
		},
		"LastOutput": {
			reason: "the output of a program that has ended counts", script: "echo listening >&2",
			wait: func(tb testing.TB, p *process.Process) { tb.Helper(); <-p.Ended(); p.AwaitOutput(tb, "listening") },
		},
		"NoOutput": {
			reason: "the program ends without the output", script: "echo address already in use >&2; exit 7",
			wait: func(tb testing.TB, p *process.Process) { tb.Helper(); p.AwaitOutput(tb, "listening") },
			want: "exit code 7; the output of sh:\naddress already in use",
		},
		"Condition": {
			reason: "the program ends before the condition is met", script: "echo no cluster >&2; exit 1",
			wait: func(tb testing.TB, p *process.Process) {
				tb.Helper()
				p.Await(tb, "a record", func(context.Context) bool { return false })
			},
			want: "waiting for a record: the program has ended with exit code 1; the output of sh:\nno cluster",
		},
		"NoPort": {
			reason: "the program ends before it listens", script: "exit 3",
			wait: func(tb testing.TB, p *process.Process) { tb.Helper(); p.Address(tb) },
			want: "exit code 3",
		},
		"Context": {
			reason: "a wait for something else ends with the program", script: "echo no cluster >&2; exit 1",
			wait: func(tb testing.TB, p *process.Process) {
				tb.Helper()
				ctx, cancel := process.While(tb.Context(), p)
				defer cancel()
				<-ctx.Done()
				tb.Fatalf("%v", context.Cause(ctx))
			},
			want: "exit code 1; the output of sh:\nno cluster",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := process.Start(t, shell(t, tc.script))
			got := failure(t, func(tb testing.TB) { tb.Helper(); tc.wait(tb, p) })
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%s: the failure is %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// A context does not end with a program that the test itself has ended.
func TestExpectedEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		end    func(*testing.T, *process.Process) int
		code   int
	}{
		"Killed": {
			reason: "SIGKILL leaves no exit code", code: -1,
			end: func(_ *testing.T, p *process.Process) int { p.Kill(); return p.Code() },
		},
		"Stopped": {reason: "the exit code of the signal's handler", code: 5, end: func(t *testing.T, p *process.Process) int {
			t.Helper()
			return p.Stop(t, syscall.SIGTERM)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := process.Start(t, shell(t, "trap 'exit 5' TERM; echo ready >&2; while :; do sleep 0.01; done"))
			p.AwaitOutput(t, "ready")
			if code := tc.end(t, p); code != tc.code {
				t.Errorf("%s: exit code %d, want %d", tc.reason, code, tc.code)
			}
			ctx, cancel := process.While(t.Context(), p)
			defer cancel()
			if ctx.Err() != nil {
				t.Errorf("%s: the end is unexpected: %v", tc.reason, context.Cause(ctx))
			}
		})
	}
}

func TestAddress(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), listenVariable+"=yes")
	p := process.Start(t, program)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	greeting := make([]byte, 4)
	if _, err := connection.Read(greeting); err != nil || string(greeting) != "here" {
		t.Errorf("the program is not at its address: %q, %v", greeting, err)
	}
	if code := p.Wait(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}
