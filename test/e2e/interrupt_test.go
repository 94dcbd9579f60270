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
	if !strings.Contains(progress, "objects of the run were deleted; a final list found none left") {
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

// --keep leaves the Jobs for inspection.
func TestKeepLeavesTheJobs(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	result := runPreflight(t, 0, "--to", to, "--keep")
	out := testCluster.Kubectl(t, "get", "jobs", "-A", "-l", "preflight.openshift.io/run="+result.Run.ID, "-o", "name")
	if !strings.Contains(out, "job.batch/healthy-") {
		t.Errorf("the Job was deleted:\n%s", out)
	}
	got := call(t, "cleanup", result.Run.ID)
	if got.Code != 0 || !strings.Contains(got.Stdout, result.Run.ID) {
		t.Errorf("cleanup: exit code %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
	// The report lists the objects to delete: Job, account and guard.
	if len(result.Created) != 4 {
		t.Errorf("created %+v, want a Job, a ServiceAccount, a policy and its binding", result.Created)
	}
	for _, object := range result.Created {
		if !strings.Contains(got.Stdout, "deleted "+object.Kind+" ") || !strings.Contains(got.Stdout, object.Name+"\n") {
			t.Errorf("%s %s was created, but not reported as deleted:\n%s", object.Kind, object.Name, got.Stdout)
		}
	}
	testCluster.ExpectNothingLeft(t)
}

// A killed run leaves its objects, which "cleanup" finds by their label.
func TestCleanupAfterAKilledRun(t *testing.T) {
	publish(t, map[string]animal{"sleepy": {Ending: "sleep"}})
	command := preflightCommand(t, "run", "--to", to)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "Zoo.Sleepy: running") {
		t.Log(lines.Text())
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
	if out := testCluster.Kubectl(t, "get", "jobs", "-n", zooNamespace, "-o", "name"); !strings.Contains(out, "job.batch/sleepy-") {
		t.Fatalf("the killed run left no Job, so the test proves nothing:\n%s", out)
	}
	if got := call(t, "cleanup", "--all"); got.Code != 0 || !strings.Contains(got.Stdout, "has no objects in the cluster") ||
		!strings.Contains(got.Stdout, "deleted ValidatingAdmissionPolicyBinding ") || !strings.Contains(got.Stdout, "deleted Pod "+zooNamespace+"/sleepy-") {
		t.Errorf("cleanup: exit code %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
	testCluster.ExpectNothingLeft(t)
	if got := call(t, "cleanup", "--all"); got.Code != 0 || !strings.Contains(got.Stdout, "no run has objects in the cluster") {
		t.Errorf("cleanup without objects: exit code %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// A run never has more unfinished Jobs than --parallelism allows.
func TestParallelismIsLimited(t *testing.T) {
	publish(t, map[string]animal{"one": {Ending: "slow"}, "two": {Ending: "slow"}, "three": {Ending: "slow"}})
	result := runPreflight(t, 0, "--to", to, "--parallelism", "1")
	type span struct{ start, end string }
	var spans []span
	for _, f := range result.Findings {
		if f.Job != nil {
			spans = append(spans, span{f.Job.StartTime, f.Job.CompletionTime})
		}
	}
	if len(spans) != 3 {
		t.Fatalf("%d Jobs ran, want 3", len(spans))
	}
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.start < b.end && b.start < a.end {
				t.Errorf("two Jobs ran at the same time: %v and %v", a, b)
			}
		}
	}
}
