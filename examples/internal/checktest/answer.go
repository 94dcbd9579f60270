package checktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Answer is what the program of a check said.
type Answer struct {
	ExitCode int
	// Findings are by the name of the check.
	Findings map[string]preflight.Finding
	// Output is all that it printed.
	Output string
}

// Ask runs the program as the ServiceAccount of its manifests, with additional
// settings of the environment, such as NAME=value, about an update from 4.20.5
// to 4.21.3.
func (s *Stage) Ask(t *testing.T, environment ...string) Answer {
	t.Helper()
	return s.ask(t, append(environment, "KUBECONFIG="+s.asCheck))
}

// AskAsStranger is Ask as a ServiceAccount that may do nothing.
func (s *Stage) AskAsStranger(t *testing.T, environment ...string) Answer {
	t.Helper()
	return s.ask(t, append(environment, "KUBECONFIG="+s.asStranger))
}

func (s *Stage) ask(t *testing.T, environment []string) Answer {
	t.Helper()
	const image = "quay.io/openshift-release-dev/ocp-release@sha256:" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	var stdout, stderr bytes.Buffer
	process := exec.CommandContext(t.Context(), s.program, "--from", "4.20.5", "--to", "4.21.3", "--image", image, "-o", "json") //nolint:gosec // Built by New.
	process.Env, process.Stdout, process.Stderr = environment, &stdout, &stderr
	if err := process.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}

	var document struct {
		State    string              `json:"state"`
		Findings []preflight.Finding `json:"findings"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &document); err != nil || document.State != preflight.StateFinal {
		t.Fatalf("no final result (%v):\n%s\n%s", err, &stdout, &stderr)
	}
	answer := Answer{ExitCode: process.ProcessState.ExitCode(), Findings: map[string]preflight.Finding{}, Output: stdout.String() + stderr.String()}
	for _, f := range document.Findings {
		answer.Findings[f.Name] = f
	}
	return answer
}

// Want is what one finding has to be.
type Want struct {
	Outcome preflight.Outcome
	Reason  string
	// Says and Remedies are parts of the message and the remediation.
	Says, Remedies []string
	// Objects are the names of the finding's objects.
	Objects []string
}

// Expect fails the test where the finding of that name is not as wanted, or the
// exit code not that of the findings, and says why it should be so.
func (a Answer) Expect(t *testing.T, why, name string, want Want) {
	t.Helper()
	f := a.Findings[name]
	t.Logf("%s %s (%s): %s\n%s\n%v", name, f.Outcome, f.Reason, f.Message, f.Remediation, f.Evidence)

	var objects []string
	for _, object := range f.Objects {
		objects = append(objects, object.Name)
	}
	got := Want{Outcome: f.Outcome, Reason: f.Reason, Objects: objects}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Want{}, "Says", "Remedies")); diff != "" {
		t.Errorf("%s: finding %s (-want +got):\n%s", why, name, diff)
	}
	for _, part := range want.Says {
		if !strings.Contains(f.Message, part) {
			t.Errorf("%s: message of %s: %q is not in %q", why, name, part, f.Message)
		}
	}
	for _, part := range want.Remedies {
		if !strings.Contains(f.Remediation, part) {
			t.Errorf("%s: remediation of %s: %q is not in %q", why, name, part, f.Remediation)
		}
	}
	result := preflight.Result{State: preflight.StateFinal, Findings: slices.Collect(maps.Values(a.Findings))}
	if !result.Agrees(a.ExitCode) {
		t.Errorf("%s: exit code %d does not go with %s", why, a.ExitCode, f.Outcome)
	}
}
