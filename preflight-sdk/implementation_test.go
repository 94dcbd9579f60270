package preflight_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// interpreter runs the programs of another implementation.
type interpreter struct {
	args []string
	// path is the PATH of its programs; empty means the PATH of the test.
	path string
}

// shells returns the installed shells. busybox runs with its own commands only, as
// in an image without others.
func shells(t *testing.T) map[string]interpreter {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Fatalf("the tests of sh/preflight.sh require a shell: %v", err)
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
	for _, name := range []string{"sh", "od", "fold", "date", "sleep", "printf", "cat", "dirname"} {
		if err := os.Symlink(busybox, filepath.Join(applets, name)); err != nil {
			t.Fatal(err)
		}
	}
	found["busybox"] = interpreter{args: []string{filepath.Join(applets, "sh")}, path: applets}
	return found
}

// python returns the interpreter for python/preflight.py. It writes no bytecode, as
// in the Job of the example.
func python(t *testing.T) interpreter {
	t.Helper()
	path, err := pythonExecutable()
	if err != nil {
		t.Fatalf("the tests of python/preflight.py require python3: %v", err)
	}
	return interpreter{args: []string{path, "-B"}}
}

// pythonExecutable returns the path of the interpreter itself: a python3 in the PATH may
// be a script that selects a version, which takes longer than most of the tests.
var pythonExecutable = sync.OnceValues(func() (string, error) {
	path, err := exec.CommandContext(context.Background(), "python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(path)), err
})

// absolute returns the absolute path of a file of this module.
func absolute(t *testing.T, path string) string {
	t.Helper()
	whole, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// script is a program of another implementation, as a container runs it: the
// working directory, the home directory and the temporary directory contain only
// the termination log, and the program must not create files there.
type script struct {
	text string
	file string // The path of the program, instead of text.
	args []string
	env  []string
	// signal is sent once the program has written "here" to standard error.
	signal os.Signal
	// outsideJob is true if there is no termination log.
	outsideJob bool
	// timeout is the time until the deadline; 0 means no deadline.
	timeout time.Duration
}

// ran is how a script ended and what it wrote.
type ran struct {
	code           int
	terminationLog []byte
	stdout, stderr string
}

// result returns the result in the termination log.
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
	if !s.outsideJob {
		if err := os.WriteFile(log, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := i.command(home, slices.Concat(i.args[1:], []string{program}, s.args))
	command.Env = append(command.Env, append(s.env, "PREFLIGHT_TERMINATION_LOG="+log)...)
	if s.timeout > 0 {
		command.Env = append(command.Env, "PREFLIGHT_DEADLINE="+time.Now().Add(s.timeout).UTC().Format(time.RFC3339))
	}
	r := s.finish(t, command)
	r.terminationLog = s.onlyLog(t, home)
	return r
}

// command returns a command of the interpreter with home as its directories.
func (i interpreter) command(home string, args []string) *exec.Cmd {
	command := exec.CommandContext(context.Background(), i.args[0], args...)
	command.Dir = home
	path := i.path
	if path == "" {
		path = os.Getenv("PATH")
	}
	command.Env = []string{"PATH=" + path, "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
	// A process that the program left running may keep the pipes open.
	command.WaitDelay = time.Second
	return command
}

// finish sends the signal, if any, and waits for the end of the command.
func (s script) finish(t *testing.T, command *exec.Cmd) ran {
	t.Helper()
	var stdout bytes.Buffer
	stderr := watcher{found: func() {
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

// watcher calls found when the program has written "here".
type watcher struct {
	text  bytes.Buffer
	found func()
}

func (w *watcher) Write(text []byte) (int, error) {
	if w.text.Write(text); bytes.HasSuffix(w.text.Bytes(), []byte("here\n")) {
		w.found()
	}
	return len(text), nil
}

// onlyLog returns the content of the termination log. It fails the test if there is
// another file: the root filesystem of a check is read-only.
func (s script) onlyLog(t *testing.T, home string) []byte {
	t.Helper()
	entries, err := os.ReadDir(home)
	if err != nil {
		t.Fatal(err)
	}
	want := 1
	if s.outsideJob {
		want = 0
	}
	if len(entries) != want {
		t.Errorf("the directory contains %v, want %d files: an implementation creates none", entries, want)
	}
	if s.outsideJob {
		return nil
	}
	return readFile(t, filepath.Join(home, "termination-log"))
}

// summary returns the state of the result and one line per finding.
func summary(result preflight.Result) string {
	text := result.State
	for _, f := range result.Findings {
		text += "\n" + f.Name + " " + strings.TrimSpace(outcomeLine(f))
	}
	return text
}

// scriptCase is a test case for a script.
type scriptCase struct {
	reason string
	script script
	code   int
	want   string // The summary of the result.
}

// check runs the script and compares its result.
func (tc scriptCase) check(t *testing.T, with interpreter) {
	t.Helper()
	r := with.run(t, tc.script)
	result := r.result(t)
	if got := summary(result); got != tc.want {
		t.Errorf("%s: got\n%s\nwant\n%s\nstandard error: %s", tc.reason, got, tc.want, r.stderr)
	}
	if r.code != tc.code || (result.State == preflight.StateFinal) != result.Agrees(r.code) {
		t.Errorf("%s: exit code %d, want %d; it agrees with the %s result: %t", tc.reason, r.code, tc.code, result.State, result.Agrees(r.code))
	}
}
