package commands_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/openshift/update-preflight/collector/report"
)

// process is oc-preflight in progress.
type process struct {
	command        *exec.Cmd
	stdout, stderr bytes.Buffer
}

// start starts oc-preflight. "run" prints its report as JSON.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{command: preflightCommand(t, args...)}
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// signal sends a signal, and returns when the process has ended.
func (p *process) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = p.command.Wait() // the exit code is compared
}

// decode decodes the output of a process that has ended.
func (p *process) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(p.stdout.Bytes(), into); err != nil {
		t.Fatalf("%v\n%s", err, &p.stderr)
	}
}

// report returns the report of the run when it has ended.
func (p *process) report(t *testing.T) report.Report {
	t.Helper()
	_ = p.command.Wait() // the report has the decision
	var result report.Report
	p.decode(t, &result)
	return result
}
