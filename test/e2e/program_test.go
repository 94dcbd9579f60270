package e2e_test

import (
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
	return testCluster.Preflight(tb, args...)
}

// call runs oc-preflight and returns its result.
func call(tb testing.TB, args ...string) zoo.Result {
	tb.Helper()
	return zoo.Run(tb, testCluster.Preflight(tb, args...))
}

// runPreflight runs a preflight, which must end with this exit code, and returns its report.
func runPreflight(tb testing.TB, code int, args ...string) report.Report {
	tb.Helper()
	return testCluster.Report(tb, code, args...)
}

// byName returns the findings of a report by name.
func byName(result report.Report) map[string]finding.Finding { return zoo.ByName(result) }
