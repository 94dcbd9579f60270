//go:build faults

package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// timeout limits each wait.
const timeout = 4 * time.Minute

// program is a process of oc-preflight.
type program struct {
	command *exec.Cmd
	stdout  bytes.Buffer
	stderr  transcript
	started time.Time
	// ended is closed when the process has ended.
	ended chan struct{}
}

// launch starts a tool with a kubeconfig.
func launch(t *testing.T, tool tool, kubeconfig string, args ...string) *program {
	t.Helper()
	p := &program{
		command: exec.CommandContext(t.Context(), tool.path, args...),
		started: time.Now(), ended: make(chan struct{}),
	}
	p.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, fmt.Sprintf("%s=%d", clockVariable, int(tool.ahead/time.Second)))
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // result reads the exit code
	}()
	return p
}

// kill sends SIGKILL, and returns when the process has ended.
func (p *program) kill() {
	_ = p.command.Process.Kill() // fails if the process has ended already
	<-p.ended
}

// wait returns when the process has ended by itself.
func (p *program) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(timeout):
		p.kill()
		t.Fatalf("the program did not end within %s; its output:\n%s", timeout, p.stderr.text())
	}
}

// awaitOutput returns when the standard error contains a text.
func (p *program) awaitOutput(t *testing.T, want string) {
	t.Helper()
	late := time.After(timeout)
	for {
		text, more := p.stderr.read()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-more:
		case <-p.ended:
			t.Fatalf("the program ended without the output %q:\n%s", want, p.stderr.text())
		case <-late:
			p.kill()
			t.Fatalf("the output has no %q after %s:\n%s", want, timeout, p.stderr.text())
		}
	}
}

// transcript is the output of a running program.
type transcript struct {
	mutex  sync.Mutex
	output bytes.Buffer
	more   chan struct{}
}

// Write implements io.Writer.
func (t *transcript) Write(data []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.more != nil {
		close(t.more)
		t.more = nil
	}
	return t.output.Write(data)
}

// read returns the output so far, and a channel that is closed at the next output.
func (t *transcript) read() (string, <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.more == nil {
		t.more = make(chan struct{})
	}
	return t.output.String(), t.more
}

func (t *transcript) text() string {
	text, _ := t.read()
	return text
}

// result is the part of a report that is the same in two runs of one release in the same
// cluster, and the exit code.
type result struct {
	Code     int
	Decision string
	// Checks are the findings of the release's checks: "first: Zoo.Animal Pass (Passed)".
	Checks []string
}

// result waits until the process has ended, and reads its report.
func (p *program) result(t *testing.T) (result, report.Report) {
	t.Helper()
	p.wait(t)
	got := result{Code: p.command.ProcessState.ExitCode()}
	var decided report.Report
	if err := json.Unmarshal(p.stdout.Bytes(), &decided); err != nil {
		t.Fatalf("exit code %d without a report: %v\n%s%s", got.Code, err, p.stderr.text(), p.stdout.String())
	}
	got.Decision = string(decided.Verdict.Decision)
	for _, f := range decided.Findings {
		if f.Source == finding.SourceJob && f.Job != nil {
			got.Checks = append(got.Checks, fmt.Sprintf("%s: %s %s (%s)", checkOf(f.Job.Name), f.Name, f.Outcome, f.Reason))
		}
	}
	slices.Sort(got.Checks)
	return got, decided
}

// failures lists the findings of a report with the outcome Fail or Unknown.
func failures(decided report.Report) string {
	var lines strings.Builder
	for _, f := range decided.Findings {
		if f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown {
			fmt.Fprintf(&lines, "%s %s (%s): %s\n", f.Name, f.Outcome, f.Reason, f.Message)
		}
	}
	return lines.String()
}

// checkOf returns the check of a Job: the name of the Job without the suffix of the run.
func checkOf(job string) string {
	return job[:max(0, strings.LastIndex(job, "-"))]
}
