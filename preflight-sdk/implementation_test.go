package preflight_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// interpreter runs the programs of one of the other implementations.
type interpreter struct {
	args []string
	// path is where its programs find commands; empty means as here.
	path string
}

// shells are the shells that are here, busybox with its own commands only, as
// in an image that has no other.
func shells(t *testing.T) map[string]interpreter {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Fatalf("sh/preflight.sh is tested with a shell: %v", err)
	}
	found := map[string]interpreter{"sh": {args: []string{"sh"}}}
	if bash, err := exec.LookPath("bash"); err == nil {
		found["bash"] = interpreter{args: []string{bash}}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return found
	}
	applets := t.TempDir()
	for _, name := range []string{"sh", "od", "fold", "date", "sleep", "printf", "cat"} {
		if err := os.Symlink(busybox, filepath.Join(applets, name)); err != nil {
			t.Fatal(err)
		}
	}
	found["busybox"] = interpreter{args: []string{filepath.Join(applets, "sh")}, path: applets}
	return found
}

// python is the interpreter for python/preflight.py. It writes no bytecode, as
// in the Job of the example.
func python(t *testing.T) interpreter {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatalf("python/preflight.py is tested with python3: %v", err)
	}
	return interpreter{args: []string{"python3", "-B"}}
}

// absolute is where a file of this module is, from any directory.
func absolute(t *testing.T, path string) string {
	t.Helper()
	whole, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// script is a program of another implementation, as a container would run it:
// its working directory, home and temporary directory hold nothing but the
// termination log, and nothing else may appear there.
type script struct {
	text string
	file string // the program itself, in the place of text
	env  []string
	// signal is sent once the program has said "here" on standard error.
	signal os.Signal
	// laptop is true where there is no termination log.
	laptop bool
	// timeout is the time until the deadline; 0 is none.
	timeout time.Duration
}

// ran is how a script ended.
type ran struct {
	code           int
	terminationLog []byte
	stdout, stderr string
}

// result is what is in the termination log.
func (r ran) result(t *testing.T) preflight.Result {
	t.Helper()
	result, err := preflight.ParseFrame(r.terminationLog)
	if err != nil {
		t.Fatalf("%v in the termination log %q; standard error: %s", err, r.terminationLog, r.stderr)
	}
	return result
}

func (i interpreter) run(t *testing.T, s script) ran {
	t.Helper()
	home, program := t.TempDir(), filepath.Join(t.TempDir(), "program")
	log := filepath.Join(home, "termination-log")
	if err := os.WriteFile(program, []byte(s.text), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.file != "" {
		program = absolute(t, s.file)
	}
	if !s.laptop {
		if err := os.WriteFile(log, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := i.command(home, append(i.args[1:], program))
	command.Env = append(command.Env, append(s.env, "PREFLIGHT_TERMINATION_LOG="+log)...)
	if s.timeout > 0 {
		command.Env = append(command.Env, "PREFLIGHT_DEADLINE="+time.Now().Add(s.timeout).UTC().Format(time.RFC3339))
	}
	r := s.finish(t, command)
	r.terminationLog = s.onlyLog(t, home)
	return r
}

// command is the interpreter in a directory of its own.
func (i interpreter) command(home string, args []string) *exec.Cmd {
	command := exec.CommandContext(context.Background(), i.args[0], args...)
	command.Dir = home
	path := i.path
	if path == "" {
		path = os.Getenv("PATH")
	}
	command.Env = []string{"PATH=" + path, "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
	// A command that was left behind may hold the pipes.
	command.WaitDelay = time.Second
	return command
}

// finish runs the command to its end, with the signal on the way.
func (s script) finish(t *testing.T, command *exec.Cmd) ran {
	t.Helper()
	var stdout bytes.Buffer
	stderr := listener{heard: func() {
		if s.signal != nil {
			_ = command.Process.Signal(s.signal)
		}
	}}
	command.Stdout, command.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatal(err)
	}
	return ran{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.text.String()}
}

// listener hears the program say "here".
type listener struct {
	text  bytes.Buffer
	heard func()
}

func (l *listener) Write(text []byte) (int, error) {
	if l.text.Write(text); bytes.HasSuffix(l.text.Bytes(), []byte("here\n")) {
		l.heard()
	}
	return len(text), nil
}

// onlyLog reads the termination log, and sees to it that there is no other
// file: the root filesystem of a check is read-only.
func (s script) onlyLog(t *testing.T, home string) []byte {
	t.Helper()
	entries, err := os.ReadDir(home)
	if err != nil {
		t.Fatal(err)
	}
	want := 1
	if s.laptop {
		want = 0
	}
	if len(entries) != want {
		t.Errorf("there are %v, want %d files: an implementation creates none", entries, want)
	}
	if s.laptop {
		return nil
	}
	return read(t, filepath.Join(home, "termination-log"))
}

// summary is a result in one line for each finding.
func summary(result preflight.Result) string {
	text := result.State
	for _, f := range result.Findings {
		text += "\n" + f.Name + " " + strings.TrimSpace(say(f))
	}
	return text
}

// scriptCase is a scenario for the scripts of one implementation.
type scriptCase struct {
	reason string
	script script
	code   int
	want   string // the summary of the result
}

// check runs the scenario and compares.
func (tc scriptCase) check(t *testing.T, with interpreter) {
	t.Helper()
	r := with.run(t, tc.script)
	result := r.result(t)
	if got := summary(result); got != tc.want {
		t.Errorf("%s: got\n%s\nwant\n%s\nstandard error: %s", tc.reason, got, tc.want, r.stderr)
	}
	if r.code != tc.code || (result.State == preflight.StateFinal) != result.Agrees(r.code) {
		t.Errorf("%s: exit code %d, want %d; does it agree with the %s result: %t", tc.reason, r.code, tc.code, result.State, result.Agrees(r.code))
	}
}
