package faults_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/process"
)

// launch starts a tool with a kubeconfig.
func launch(t *testing.T, tool, kubeconfig string, args ...string) *program {
	t.Helper()
	command := exec.CommandContext(t.Context(), tool, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return &program{process.Start(t, command)}
}

// program is a process of oc-preflight.
type program struct{ *process.Process }

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
	got := result{Code: p.Wait(t)}
	var decided report.Report
	if err := json.Unmarshal([]byte(p.Stdout()), &decided); err != nil {
		t.Fatalf("exit code %d without a report: %v\n%s%s", got.Code, err, p.Stderr(), p.Stdout())
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
