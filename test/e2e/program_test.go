package e2e_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/zoo"
)

// preflightCommand returns a command that runs oc-preflight on the cluster of the tests.
// The command "run" gets the URL of the monitoring, and reuses no results.
func preflightCommand(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	if args[0] == "run" {
		args = append([]string{"run", "--rerun", "--prometheus", monitoring}, args[1:]...)
	}
	return testCluster.Command(tb, args...)
}

// call runs oc-preflight and returns its result.
func call(tb testing.TB, args ...string) zoo.Result {
	tb.Helper()
	return zoo.Run(tb, preflightCommand(tb, args...))
}

// runPreflight runs a preflight, which must end with this exit code, and returns its report.
func runPreflight(tb testing.TB, code int, args ...string) report.Report {
	tb.Helper()
	got := call(tb, append([]string{"run", "-o", "json"}, args...)...)
	if got.Code != code {
		tb.Fatalf("run %v: exit code %d, want %d\n%s%s", args, got.Code, code, got.Stderr, got.Stdout)
	}
	var result report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &result); err != nil {
		tb.Fatalf("run %v: %v\n%s", args, err, got.Stdout)
	}
	return result
}

// byName returns the findings of a report by name.
func byName(result report.Report) map[string]finding.Finding {
	findings := map[string]finding.Finding{}
	for _, f := range result.Findings {
		findings[f.Name] = f
	}
	return findings
}
