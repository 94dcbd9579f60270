package program_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
)

func TestCall(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("here.json", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason    string
		arguments []string
		code      int
		// stdout and stderr are parts of the output; the whole output if empty.
		stdout, stderr string
	}{
		"Output": {reason: "the output is apart from the errors", arguments: []string{"schema"}, stdout: "report\n"},
		"Usage": {
			reason: "the exit code is that of the program", arguments: []string{"verify"}, code: exit.BadInput,
			stderr: `error: "oc preflight verify" takes one pull spec`,
		},
		"Directory": {
			reason: "paths are relative to the directory of this process", arguments: []string{"render", "here.json"},
			code: exit.BadInput, stderr: "error: here.json: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, tc.arguments...)
			if got.Code != tc.code || !strings.Contains(got.Stdout, tc.stdout) || !strings.Contains(got.Stderr, tc.stderr) {
				t.Errorf("%s: %+v; want exit code %d, %q and %q", tc.reason, got, tc.code, tc.stdout, tc.stderr)
			}
		})
	}
	if got := program.CallAs(t, "/usr/local/bin/kubectl-preflight", "verify"); !strings.Contains(got.Stderr, `"kubectl preflight verify"`) {
		t.Errorf("%q lacks the name by which the program was called", got.Stderr)
	}
}

// An interrupt ends a program that waits for a server.
func TestInterrupt(t *testing.T) {
	requested := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requested <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	e := program.Start(t, "plan", "--from", "4.16.27", "--channel", "eus-4.18", "--arch", "amd64", "--no-cache", "--graph", server.URL)
	<-requested
	e.Interrupt()
	if got := e.Wait(); got.Code != exit.Interrupted {
		t.Errorf("%+v, want exit code %d", got, exit.Interrupted)
	}
}

// recorder records the failure of a test.
type recorder struct {
	testing.TB

	failed bool
}

// Errorf implements testing.TB.
func (r *recorder) Errorf(string, ...any) { r.failed = true }

// A goroutine that outlives the program fails the test.
func TestGoroutinesEnd(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	of := &recorder{TB: t}
	e := program.Start(of, "render", pipe)
	e.Interrupt()
	if e.Wait(); !of.failed {
		t.Error("the goroutine that opens a pipe without a writer is not reported")
	}
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}
