package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// An interrupt ends a run: the findings so far are reported, and all objects are deleted.
func TestInterruptLeavesNothing(t *testing.T) {
	publish(t, map[string]animal{"sleepy": {Ending: "sleep"}, "healthy": {Ending: "pass"}})
	command := preflightCommand(t, "run", "--to", to, "-o", "json")
	var stdout bytes.Buffer
	command.Stdout = &stdout
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// One check has reported and the other one runs.
	lines := bufio.NewScanner(stderr)
	seen := map[string]bool{}
	for !seen["Zoo.Sleepy: running"] || !seen["Zoo.Animal: Pass"] {
		if !lines.Scan() {
			t.Fatalf("the run ended before the interrupt: %v", lines.Err())
		}
		for _, text := range []string{"Zoo.Sleepy: running", "Zoo.Animal: Pass"} {
			seen[text] = seen[text] || strings.Contains(lines.Text(), text)
		}
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	progress := ""
	for lines.Scan() {
		t.Log(lines.Text())
		progress += lines.Text() + "\n"
	}
	_ = command.Wait() // the exit code is compared
	if !strings.Contains(progress, "objects of the run; a final list found none left") {
		t.Errorf("the progress does not confirm the deletion:\n%s", progress)
	}
	if got := command.ProcessState.ExitCode(); got != 130 {
		t.Errorf("exit code %d, want 130", got)
	}
	var result report.Report
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	if result.Run.Phase != report.PhaseInterrupted || result.Verdict.Decision != verdict.Undecided {
		t.Errorf("phase %s, decision %s; want Interrupted, Undecided", result.Run.Phase, result.Verdict.Decision)
	}
	if f := byName(result)["Zoo.Animal"]; f.Outcome != "Pass" {
		t.Errorf("the finding from before the interrupt is missing: %+v", result.Findings)
	}
	testCluster.ExpectNothingLeft(t)
}
