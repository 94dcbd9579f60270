package e2e_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/zoo"
)

// preflightCommand is oc-preflight on the cluster of the tests. What runs a
// preflight gets the URL of the monitoring, and runs the checks that passed again.
func preflightCommand(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	if args[0] == "run" {
		args = append([]string{"run", "--rerun", "--prometheus", monitoring}, args[1:]...)
	}
	return house.Command(tb, args...)
}

// call runs oc-preflight to its end.
func call(tb testing.TB, args ...string) zoo.Ended {
	tb.Helper()
	return zoo.End(tb, preflightCommand(tb, args...))
}

// reported runs a preflight and reads its report.
func reported(tb testing.TB, code int, args ...string) report.Report {
	tb.Helper()
	got := call(tb, append([]string{"run", "-o", "json"}, args...)...)
	if got.Code != code {
		tb.Fatalf("run %v: exit code %d, want %d\n%s%s", args, got.Code, code, got.Stderr, got.Stdout)
	}
	var decided report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &decided); err != nil {
		tb.Fatalf("run %v: %v\n%s", args, err, got.Stdout)
	}
	return decided
}

func byName(decided report.Report) map[string]finding.Finding {
	findings := map[string]finding.Finding{}
	for _, f := range decided.Findings {
		findings[f.Name] = f
	}
	return findings
}
