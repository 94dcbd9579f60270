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

// With programVariable set, the test binary runs the check program of that name.
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

// programs returns the check programs by name. A program that waits logs "here"
// before, so that the test can synchronize with it.
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
		"ignores-context": with(func(_ context.Context, t *preflight.T) error {
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

// startProcess starts the program. Its deadline is timeout from now; 0 means no
// deadline.
func startProcess(t *testing.T, program string, timeout time.Duration) *process {
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

// signalWhenHere sends the signal once the program has logged "here".
func (p *process) signalWhenHere(signal os.Signal) {
	p.t.Helper()
	line, err := p.stderr.ReadString('\n')
	if err != nil || line != "Middle: here\n" {
		p.t.Fatalf("the program logged %q, error %v", line, err)
	}
	if err := p.command.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the end of the process. It returns the exit code, -1 after a
// signal, and the result in the termination log.
func (p *process) end() (int, preflight.Result) {
	p.t.Helper()
	stderr, err := io.ReadAll(p.stderr)
	if err != nil {
		p.t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.command.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	result, err := preflight.ParseFrame(readFile(p.t, p.terminationLog))
	if err != nil {
		p.t.Fatalf("termination log: %v; standard error: %s", err, stderr)
	}
	return p.command.ProcessState.ExitCode(), result
}

func TestProcessEndings(t *testing.T) {
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
			reason:  "Each check produces one finding",
			program: "passes",
			want:    end{0, preflight.StateFinal, true, "Pass Passed ", "Pass Passed ", "Pass Passed "},
		},
		"Terminated": {
			reason:  "After SIGTERM finished checks keep their findings and the others are Unknown",
			program: "waits", signal: syscall.SIGTERM,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Interrupted Middle was interrupted (last step: here)",
				"Unknown Interrupted Last was not started before the process was interrupted",
			},
		},
		"TerminatedCleansUp": {
			reason:  "Cleanup functions run after SIGTERM",
			program: "cleans-up", signal: syscall.SIGTERM,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Interrupted Middle was interrupted (last step: here); cleaned up",
				"Unknown Interrupted Last was not started before the process was interrupted",
			},
		},
		"InterruptedInATerminal": {
			reason:  "Ctrl-C has the same effect as SIGTERM",
			program: "waits", signal: os.Interrupt,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Interrupted Middle was interrupted (last step: here)",
				"Unknown Interrupted Last was not started before the process was interrupted",
			},
		},
		"TerminatedIgnoringContext": {
			reason:  "A check that ignores its context is abandoned",
			program: "ignores-context", signal: syscall.SIGTERM,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Interrupted Middle was interrupted (last step: here)",
				"Unknown Interrupted Last was not started before the process was interrupted",
			},
		},
		"TerminatedAfterAFail": {
			reason:  "A fail that was reported remains a fail",
			program: "fails-then-waits", signal: syscall.SIGTERM,
			want: end{
				3, preflight.StateFinal, true, "Pass Passed ",
				"Fail CheckFailed seen; Middle was interrupted (last step: here)",
				"Unknown Interrupted Last was not started before the process was interrupted",
			},
		},
		"Killed": {
			reason:  "After SIGKILL the last result that was written remains, and unfinished checks are Unknown",
			program: "waits", signal: syscall.SIGKILL,
			want: end{
				-1, preflight.StateRunning, false, "Pass Passed ",
				"Unknown NotFinished Middle was running when the process ended",
				"Unknown NotFinished Last had not started when the process ended",
			},
		},
		"Deadline": {
			reason:  "The program writes its result before the deadline at which it would be killed",
			program: "waits", timeout: 3 * time.Second,
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Timeout Middle did not finish before the deadline of the run (last step: here)",
				"Unknown Timeout Last was not started before the deadline of the run",
			},
		},
		"Panic": {
			reason:  "A panic ends only the check in which it occurs",
			program: "panics",
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Panic panic: runtime error: invalid memory address or nil pointer dereference", "Pass Passed ",
			},
		},
		"Goexit": {
			reason:  "runtime.Goexit in a check does not block the other checks",
			program: "goexit",
			want: end{
				4, preflight.StateFinal, true, "Pass Passed ",
				"Unknown Panic the check ended its goroutine with runtime.Goexit", "Pass Passed ",
			},
		},
		"PanicElsewhere": {
			reason:  "A panic in another goroutine results in neither a pass nor a usage error",
			program: "panics-elsewhere",
			want: end{
				2, preflight.StateRunning, false, "Pass Passed ",
				"Unknown NotFinished Middle was running when the process ended",
				"Unknown NotFinished Last had not started when the process ended",
			},
		},
		"ExitsWithZero": {
			reason:  "An exit during a check is not a pass, whatever the exit code",
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
			p := startProcess(t, tc.program, tc.timeout)
			if tc.signal != nil {
				p.signalWhenHere(tc.signal)
			}
			code, result := p.end()
			if len(result.Findings) != 3 {
				t.Fatalf("%s: got %+v, want three findings", tc.reason, result)
			}
			got := end{
				code, result.State, result.Agrees(code),
				outcomeLine(result.Findings[0]), outcomeLine(result.Findings[1]), outcomeLine(result.Findings[2]),
			}
			if got != tc.want {
				t.Errorf("%s:\n got %+v\nwant %+v", tc.reason, got, tc.want)
			}
		})
	}
}

// outcomeLine returns the outcome, the reason and the message of the finding.
func outcomeLine(f preflight.Finding) string {
	return string(f.Outcome) + " " + f.Reason + " " + f.Message
}

func TestPanicHasStack(t *testing.T) {
	_, result := startProcess(t, "panics", 0).end()
	stack := result.Findings[1].Evidence["stack"]
	if !strings.Contains(stack, "main_test.go:") || strings.Count(stack, "\n") >= 8 || strings.Contains(stack, "runtime.") {
		t.Errorf("stack %q: want at most 8 lines, from this file", stack)
	}
}

func TestProcessWithoutChecks(t *testing.T) {
	code, result := startProcess(t, "nothing", 0).end()
	want := []preflight.Finding{{
		Name: "Preflight", Outcome: preflight.Unknown, Reason: "InvalidCheck",
		Message:     "no check was run: no checks: call preflight.Main with at least one",
		Remediation: "Fix the program or its Job manifest, then verify it: /bin/preflight --list",
	}}
	if d := diff(t, result.Findings, want); d != "" || code != preflight.ExitUsage || !result.Agrees(code) {
		t.Errorf("exit code %d, %s", code, d)
	}
}
