package preflight_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The test binary is a check program too: the one that this variable names.
const (
	programVariable        = "PREFLIGHT_TEST_PROGRAM"
	terminationLogVariable = "PREFLIGHT_TEST_TERMINATION_LOG"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(programVariable); name != "" {
		os.Exit(preflight.RunProcess(os.Getenv(terminationLogVariable), programs()[name]...))
	}
	os.Exit(m.Run())
}

func pass(context.Context, *preflight.T) error { return nil }

// programs are what the processes below run. Each says that it is there before
// it waits, so that a test knows when to act.
func programs() map[string][]preflight.Check {
	first := preflight.Check{Name: "First", Run: pass}
	last := preflight.Check{Name: "Last", Run: pass}
	with := func(run func(context.Context, *preflight.T) error) []preflight.Check {
		return []preflight.Check{first, {Name: "Middle", Run: run}, last}
	}
	return map[string][]preflight.Check{
		"waits": with(func(ctx context.Context, t *preflight.T) error {
			t.Logf("here")
			<-ctx.Done()
			return ctx.Err()
		}),
		"deaf": with(func(_ context.Context, t *preflight.T) error {
			t.Logf("here")
			select {}
		}),
		"fails-then-waits": with(func(ctx context.Context, t *preflight.T) error {
			t.Failf("seen")
			t.Logf("here")
			<-ctx.Done()
			return ctx.Err()
		}),
		"cleans-up": with(func(ctx context.Context, t *preflight.T) error {
			t.Cleanup(func() { t.Warnf("cleaned up") })
			t.Logf("here")
			<-ctx.Done()
			return ctx.Err()
		}),
		"panics": with(func(context.Context, *preflight.T) error {
			return map[string]func() error{}["missing"]()
		}),
		"panics-elsewhere": with(func(ctx context.Context, _ *preflight.T) error {
			go func() { panic("out of reach") }()
			<-ctx.Done()
			return nil
		}),
		"exits": with(func(context.Context, *preflight.T) error {
			os.Exit(0)
			return nil
		}),
		"goexit": with(func(context.Context, *preflight.T) error {
			runtime.Goexit()
			return nil
		}),
		"passes":  with(pass),
		"nothing": {},
	}
}

// process is a running check program.
type process struct {
	t              *testing.T
	command        *exec.Cmd
	stderr         *bufio.Reader
	stdout         strings.Builder
	terminationLog string
}

// start starts the program, with a deadline when timeout is not 0.
func start(t *testing.T, program string, timeout time.Duration) *process {
	t.Helper()
	p := &process{t: t, terminationLog: filepath.Join(t.TempDir(), "termination-log")}
	if err := os.WriteFile(p.terminationLog, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.command = exec.CommandContext(context.Background(), os.Args[0])
	p.command.Env = append(os.Environ(), programVariable+"="+program, terminationLogVariable+"="+p.terminationLog)
	if timeout > 0 {
		deadline := time.Now().Add(timeout).UTC().Format(time.RFC3339Nano)
		p.command.Env = append(p.command.Env, "PREFLIGHT_DEADLINE="+deadline)
	}
	p.command.Stdout = &p.stdout
	stderr, err := p.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stderr = bufio.NewReader(stderr)
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	return p
}

// signalWhenHere sends the signal once the program has said that it waits.
func (p *process) signalWhenHere(signal os.Signal) {
	p.t.Helper()
	line, err := p.stderr.ReadString('\n')
	if err != nil || line != "Middle: here\n" {
		p.t.Fatalf("the program said %q, error %v", line, err)
	}
	if err := p.command.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the end and gives the exit code, -1 after a signal, with what
// is in the termination log.
func (p *process) end() (int, preflight.Result) {
	p.t.Helper()
	said, err := io.ReadAll(p.stderr)
	if err != nil {
		p.t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.command.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	result, err := preflight.ParseFrame(read(p.t, p.terminationLog))
	if err != nil {
		p.t.Fatalf("termination log: %v; standard error: %s", err, said)
	}
	return p.command.ProcessState.ExitCode(), result
}

func TestEveryEndOfAProcessIsHeard(t *testing.T) {
	t.Parallel()
	type end struct {
		code   int
		state  string
		agrees bool
		// outcome, reason and message of the checks First, Middle and Last.
		first, middle, last string
	}
	cases := map[string]struct {
		reason  string
		program string
		timeout time.Duration
		signal  os.Signal
		want    end
	}{
		"Passes": {
			reason:  "Each check gives one finding",
			program: "passes",
			want:    end{0, preflight.StateFinal, true, "Pass Passed ", "Pass Passed ", "Pass Passed "},
		},
		"Terminated": {
			reason:  "SIGTERM leaves what is known; the rest is interrupted",
			program: "waits", signal: syscall.SIGTERM,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Interrupted Middle was interrupted (last step: here)",
				"Unknown Interrupted Last was not started before the process was told to end",
			},
		},
		"TerminatedCleansUp": {
			reason:  "There is time to clean up after SIGTERM",
			program: "cleans-up", signal: syscall.SIGTERM,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Interrupted Middle was interrupted (last step: here); cleaned up",
				"Unknown Interrupted Last was not started before the process was told to end",
			},
		},
		"InterruptedInATerminal": {
			reason:  "Ctrl-C is as good as SIGTERM",
			program: "waits", signal: os.Interrupt,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Interrupted Middle was interrupted (last step: here)",
				"Unknown Interrupted Last was not started before the process was told to end",
			},
		},
		"TerminatedWhileDeaf": {
			reason:  "A check that ignores its context is left behind",
			program: "deaf", signal: syscall.SIGTERM,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Interrupted Middle was interrupted (last step: here)",
				"Unknown Interrupted Last was not started before the process was told to end",
			},
		},
		"TerminatedAfterAFail": {
			reason:  "A fail that was told stands",
			program: "fails-then-waits", signal: syscall.SIGTERM,
			want: end{
				3, preflight.StateFinal, true, "Pass Passed ",
				"Fail CheckFailed seen; Middle was interrupted (last step: here)",
				"Unknown Interrupted Last was not started before the process was told to end",
			},
		},
		"Killed": {
			reason:  "SIGKILL leaves an honest account of how far it was",
			program: "waits", signal: syscall.SIGKILL,
			want: end{
				-1, preflight.StateRunning, false, "Pass Passed ",
				"Unknown NotFinished Middle was running when the process ended",
				"Unknown NotFinished Last had not started when the process ended",
			},
		},
		"Deadline": {
			reason:  "The program is heard before the deadline at which it would be killed",
			program: "waits", timeout: 3 * time.Second,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Timeout Middle did not finish before the deadline of the run (last step: here)",
				"Unknown Timeout Last was not started before the deadline of the run",
			},
		},
		"Panic": {
			reason:  "A panic is the end of one check only",
			program: "panics",
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Panic panic: runtime error: invalid memory address or nil pointer dereference", "Pass Passed ",
			},
		},
		"Goexit": {
			reason:  "A check that ends its goroutine does not hang the others",
			program: "goexit",
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Panic the check ended its own goroutine with runtime.Goexit", "Pass Passed ",
			},
		},
		"PanicElsewhere": {
			reason:  "A panic out of our reach is no pass, and no usage error",
			program: "panics-elsewhere",
			want: end{
				2, preflight.StateRunning, false, "Pass Passed ",
				"Unknown NotFinished Middle was running when the process ended",
				"Unknown NotFinished Last had not started when the process ended",
			},
		},
		"ExitsWithZero": {
			reason:  "An exit in the middle of a check is no pass, whatever its code",
			program: "exits",
			want: end{
				0, preflight.StateRunning, false, "Pass Passed ",
				"Unknown NotFinished Middle was running when the process ended",
				"Unknown NotFinished Last had not started when the process ended",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, tc.program, tc.timeout)
			if tc.signal != nil {
				p.signalWhenHere(tc.signal)
			}
			code, result := p.end()
			if len(result.Findings) != 3 {
				t.Fatalf("%s: got %+v, want three findings", tc.reason, result)
			}
			got := end{
				code, result.State, result.Agrees(code),
				say(result.Findings[0]), say(result.Findings[1]), say(result.Findings[2]),
			}
			if got != tc.want {
				t.Errorf("%s:\n got %+v\nwant %+v", tc.reason, got, tc.want)
			}
		})
	}
}

func say(f preflight.Finding) string {
	return string(f.Outcome) + " " + f.Reason + " " + f.Message
}

func TestPanicNamesItsPlace(t *testing.T) {
	_, result := start(t, "panics", 0).end()
	stack := result.Findings[1].Evidence["stack"]
	if !strings.Contains(stack, "main_test.go:") || strings.Count(stack, "\n") >= 8 || strings.Contains(stack, "runtime.") {
		t.Errorf("stack %q: want at most 8 lines, from this file", stack)
	}
}

func TestProcessWithoutChecksIsHeard(t *testing.T) {
	code, result := start(t, "nothing", 0).end()
	want := []preflight.Finding{{
		Name: "Preflight", Outcome: preflight.Unknown, Reason: "InvalidCheck",
		Message:     "no check was run: no checks: call preflight.Main with at least one",
		Remediation: "Correct the program or its Job manifest; try it with --list.",
	}}
	if d := diff(t, result.Findings, want); d != "" || code != preflight.ExitUsage || !result.Agrees(code) {
		t.Errorf("exit code %d, %s", code, d)
	}
}
