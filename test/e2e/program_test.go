package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
)

// ended is what a program left.
type ended struct {
	code           int
	stdout, stderr string
}

// preflightCommand is oc-preflight on the cluster of the tests. What runs a
// preflight is told where the monitoring is, and to run what passed before again.
func preflightCommand(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	path := house.Program(tb)
	if args[0] == "run" {
		args = append([]string{"run", "--rerun", "--prometheus", monitoring}, args[1:]...)
	}
	command := exec.CommandContext(tb.Context(), path, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+local.Kubeconfig)
	return command
}

// call runs oc-preflight to its end.
func call(tb testing.TB, args ...string) ended {
	tb.Helper()
	command := preflightCommand(tb, args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return ended{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// reported runs a preflight and reads its report.
func reported(tb testing.TB, code int, args ...string) report.Report {
	tb.Helper()
	got := call(tb, append([]string{"run", "-o", "json"}, args...)...)
	if got.code != code {
		tb.Fatalf("run %v: exit code %d, want %d\n%s%s", args, got.code, code, got.stderr, got.stdout)
	}
	var told report.Report
	if err := json.Unmarshal([]byte(got.stdout), &told); err != nil {
		tb.Fatalf("run %v: %v\n%s", args, err, got.stdout)
	}
	return told
}

func byName(told report.Report) map[string]finding.Finding {
	findings := map[string]finding.Finding{}
	for _, f := range told.Findings {
		findings[f.Name] = f
	}
	return findings
}

func client(tb testing.TB) kubernetes.Interface {
	tb.Helper()
	c, err := kubernetes.NewForConfig(local.Config)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// expectNoResidue fails when anything that a run creates is left.
func expectNoResidue(tb testing.TB) {
	tb.Helper()
	if left := house.Left(tb, ""); len(left) > 0 {
		tb.Errorf("a run left\n%s", strings.Join(left, "\n"))
	}
}
