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

// patience bounds every wait for something that has to come.
const patience = 4 * time.Minute

// program is oc-preflight at work.
type program struct {
	command *exec.Cmd
	stdout  bytes.Buffer
	stderr  transcript
	started time.Time
	// ended is closed when it has ended.
	ended chan struct{}
}

// launch starts oc-preflight with the cluster of that kubeconfig.
func launch(t *testing.T, with tool, kubeconfig string, args ...string) *program {
	t.Helper()
	p := &program{
		command: exec.CommandContext(t.Context(), with.path, args...),
		started: time.Now(), ended: make(chan struct{}),
	}
	p.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, fmt.Sprintf("%s=%d", clockVariable, int(with.ahead/time.Second)))
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // what it says is asked later
	}()
	return p
}

// kill ends it with SIGKILL, and returns when it is dead.
func (p *program) kill() {
	_ = p.command.Process.Kill() // who has ended already has ended
	<-p.ended
}

// wait returns when it has ended by itself.
func (p *program) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.kill()
		t.Fatalf("the program did not end; it said:\n%s", p.stderr.text())
	}
}

// until returns when it has said that.
func (p *program) until(t *testing.T, sign string) {
	t.Helper()
	late := time.After(patience)
	for {
		text, more := p.stderr.read()
		if strings.Contains(text, sign) {
			return
		}
		select {
		case <-more:
		case <-p.ended:
			t.Fatalf("the program ended before it said %q:\n%s", sign, p.stderr.text())
		case <-late:
			p.kill()
			t.Fatalf("the program never said %q:\n%s", sign, p.stderr.text())
		}
	}
}

// transcript is what a program says, while it does.
type transcript struct {
	mutex sync.Mutex
	said  bytes.Buffer
	more  chan struct{}
}

// Write implements io.Writer.
func (t *transcript) Write(data []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.more != nil {
		close(t.more)
		t.more = nil
	}
	return t.said.Write(data)
}

// read is what was said by now, and what is closed when there is more.
func (t *transcript) read() (string, <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.more == nil {
		t.more = make(chan struct{})
	}
	return t.said.String(), t.more
}

func (t *transcript) text() string {
	text, _ := t.read()
	return text
}

// answer is what a run comes to, as far as two runs of the same release in the
// same cluster have to agree.
type answer struct {
	Code     int
	Decision string
	// Checks are the findings of the release's checks: "first: Zoo.Animal Pass (Passed)".
	Checks []string
}

// answer waits for the end, and reads the report.
func (p *program) answer(t *testing.T) (answer, report.Report) {
	t.Helper()
	p.wait(t)
	got := answer{Code: p.command.ProcessState.ExitCode()}
	var decided report.Report
	if err := json.Unmarshal(p.stdout.Bytes(), &decided); err != nil {
		t.Fatalf("exit code %d, and no report: %v\n%s%s", got.Code, err, p.stderr.text(), p.stdout.String())
	}
	got.Decision = string(decided.Verdict.Decision)
	for _, f := range decided.Findings {
		if f.Source == finding.SourceJob && f.Job != nil {
			got.Checks = append(got.Checks, fmt.Sprintf("%s: %s %s (%s)", author(f.Job.Name), f.Name, f.Outcome, f.Reason))
		}
	}
	slices.Sort(got.Checks)
	return got, decided
}

// troubles are the findings of a report that are no answer a release hopes for.
func troubles(decided report.Report) string {
	var lines strings.Builder
	for _, f := range decided.Findings {
		if f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown {
			fmt.Fprintf(&lines, "%s %s (%s): %s\n", f.Name, f.Outcome, f.Reason, f.Message)
		}
	}
	return lines.String()
}

// author is what the author of a Job calls it, without the digits of the run.
func author(job string) string {
	return job[:max(0, strings.LastIndex(job, "-"))]
}
