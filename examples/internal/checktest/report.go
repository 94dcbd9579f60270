package checktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Report is the result of the program of a check.
type Report struct {
	ExitCode int
	// Findings are the findings by the name of the check.
	Findings map[string]preflight.Finding
	// Output is the standard output and the standard error.
	Output string
}

// Run runs the program for an update from 4.20.5 to 4.21.3, with the permissions of
// the ServiceAccount in its manifests. environment contains additional variables as
// NAME=value.
func (e *Environment) Run(t *testing.T, environment ...string) Report {
	t.Helper()
	return e.run(t, append(environment, "KUBECONFIG="+e.serviceAccount))
}

// RunUnprivileged is Run without permissions.
func (e *Environment) RunUnprivileged(t *testing.T, environment ...string) Report {
	t.Helper()
	return e.run(t, append(environment, "KUBECONFIG="+e.unprivileged))
}

func (e *Environment) run(t *testing.T, environment []string) Report {
	t.Helper()
	stdout, stderr, code := e.execute(t, "json", environment)
	var document struct {
		State    string              `json:"state"`
		Findings []preflight.Finding `json:"findings"`
	}
	if err := json.Unmarshal(stdout, &document); err != nil || document.State != preflight.StateFinal {
		t.Fatalf("no final result (%v):\n%s\n%s", err, stdout, stderr)
	}
	report := Report{ExitCode: code, Findings: map[string]preflight.Finding{}, Output: string(stdout) + string(stderr)}
	for _, f := range document.Findings {
		report.Findings[f.Name] = f
	}
	return report
}

// execute runs the program to its end, and returns what it writes and its exit code. The
// file system of a check is read-only, so the program must not create files.
func (e *Environment) execute(t *testing.T, format string, environment []string) (stdout, stderr []byte, code int) {
	t.Helper()
	const image = "quay.io/openshift-release-dev/ocp-release@sha256:" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	var out, diagnostics bytes.Buffer
	//nolint:gosec // Built by New.
	process := exec.CommandContext(t.Context(), e.program, "--from", "4.20.5", "--to", "4.21.3", "--image", image, "-o", format)
	home := t.TempDir()
	process.Dir, process.Stdout, process.Stderr = home, &out, &diagnostics
	process.Env = slices.Concat(environment, []string{"HOME=" + home, "TMPDIR=" + home})
	if err := process.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	if created, err := os.ReadDir(home); err != nil || len(created) > 0 {
		t.Errorf("the program created %v in its directory (%v)", created, err)
	}
	return out.Bytes(), diagnostics.Bytes(), process.ProcessState.ExitCode()
}

// Want is the expectation for one finding.
type Want struct {
	Outcome preflight.Outcome
	Reason  string
	// Messages and Remedies are substrings of the message and of the remediation with its
	// commands.
	Messages, Remedies []string
	// Objects are the names of the finding's objects.
	Objects []string
}

// Expect fails the test unless the named finding meets the expectation and the exit
// code agrees with the findings. reason is part of the failure.
func (r Report) Expect(t *testing.T, reason, name string, want Want) {
	t.Helper()
	f := r.Findings[name]
	t.Logf("%s %s (%s): %s\n%s\n%q\n%v", name, f.Outcome, f.Reason, f.Message, f.Remediation, f.Actions, f.Evidence)

	var objects []string
	for _, object := range f.Objects {
		objects = append(objects, object.Name)
	}
	got := Want{Outcome: f.Outcome, Reason: f.Reason, Objects: objects}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Want{}, "Messages", "Remedies")); diff != "" {
		t.Errorf("%s: finding %s (-want +got):\n%s", reason, name, diff)
	}
	for _, part := range want.Messages {
		if !strings.Contains(f.Message, part) {
			t.Errorf("%s: message of %s: %q is not in %q", reason, name, part, f.Message)
		}
	}
	for _, part := range want.Remedies {
		if remedy := remedyOf(f); !strings.Contains(remedy, part) {
			t.Errorf("%s: remediation of %s: %q is not in %q", reason, name, part, remedy)
		}
	}
	result := preflight.Result{State: preflight.StateFinal, Findings: slices.Collect(maps.Values(r.Findings))}
	if !result.Agrees(r.ExitCode) {
		t.Errorf("%s: exit code %d does not agree with %s", reason, r.ExitCode, f.Outcome)
	}
}

// remedyOf is the remediation with its commands, each on a line of its own.
func remedyOf(f preflight.Finding) string {
	lines := []string{f.Remediation}
	for _, action := range f.Actions {
		lines = append(lines, action.Command)
	}
	return strings.Join(lines, "\n")
}
