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

// Ctrl-C ends a run: the findings so far are reported, and no object is left.
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
	// The healthy one has answered and the sleepy one is at work.
	lines := bufio.NewScanner(stderr)
	seen := map[string]bool{}
	for !seen["Zoo.Sleepy: running"] || !seen["Zoo.Animal: Pass"] {
		if !lines.Scan() {
			t.Fatalf("the run ended by itself: %v", lines.Err())
		}
		for _, sign := range []string{"Zoo.Sleepy: running", "Zoo.Animal: Pass"} {
			seen[sign] = seen[sign] || strings.Contains(lines.Text(), sign)
		}
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines.Scan() {
		t.Log(lines.Text())
		said += lines.Text() + "\n"
	}
	_ = command.Wait() // the exit code says it
	if !strings.Contains(said, "objects of the run were deleted; a final list found none left") {
		t.Error("that nothing is left is not said")
	}
	if got := command.ProcessState.ExitCode(); got != 130 {
		t.Errorf("exit code %d, want 130", got)
	}
	var decided report.Report
	if err := json.Unmarshal(stdout.Bytes(), &decided); err != nil {
		t.Fatal(err)
	}
	if decided.Run.Phase != report.PhaseInterrupted || decided.Verdict.Decision != verdict.Undecided {
		t.Errorf("phase %s, decision %s; want Interrupted, Undecided", decided.Run.Phase, decided.Verdict.Decision)
	}
	if f := byName(decided)["Zoo.Animal"]; f.Outcome != "Pass" {
		t.Errorf("what had been said before is lost: %+v", decided.Findings)
	}
	house.ExpectNothingLeft(t)
}

// --keep leaves the Jobs for inspection.
func TestKeepLeavesTheJobs(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	decided := reported(t, 0, "--to", to, "--keep")
	out := house.Kubectl(t, "get", "jobs", "-A", "-l", "preflight.openshift.io/run="+decided.Run.ID, "-o", "name")
	if !strings.Contains(out, "job.batch/healthy-") {
		t.Errorf("the Job is gone:\n%s", out)
	}
	got := call(t, "cleanup", decided.Run.ID)
	if got.Code != 0 || !strings.Contains(got.Stdout, decided.Run.ID) {
		t.Errorf("cleanup: exit code %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
	// The report lists the objects to delete: Job, account and guard.
	if len(decided.Created) != 4 {
		t.Errorf("created %+v, want a Job, a ServiceAccount, a policy and its binding", decided.Created)
	}
	for _, object := range decided.Created {
		if !strings.Contains(got.Stdout, "deleted "+object.Kind+" ") || !strings.Contains(got.Stdout, object.Name+"\n") {
			t.Errorf("%s %s was created, and is not said to be deleted:\n%s", object.Kind, object.Name, got.Stdout)
		}
	}
	house.ExpectNothingLeft(t)
}

// A run that was killed cannot clean up after itself: that is what the label
// is for.
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
	if out := house.Kubectl(t, "get", "jobs", "-n", zooNamespace, "-o", "name"); !strings.Contains(out, "job.batch/sleepy-") {
		t.Fatalf("the killed run left nothing, so this proves nothing:\n%s", out)
	}
	if got := call(t, "cleanup", "--all"); got.Code != 0 || !strings.Contains(got.Stdout, "has no objects in the cluster") ||
		!strings.Contains(got.Stdout, "deleted ValidatingAdmissionPolicyBinding ") || !strings.Contains(got.Stdout, "deleted Pod "+zooNamespace+"/sleepy-") {
		t.Errorf("cleanup: exit code %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
	house.ExpectNothingLeft(t)
	if got := call(t, "cleanup", "--all"); got.Code != 0 || !strings.Contains(got.Stdout, "no run has objects in the cluster") {
		t.Errorf("cleanup of nothing: exit code %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// A run never has more unfinished Jobs than it may.
func TestParallelismIsKept(t *testing.T) {
	publish(t, map[string]animal{"one": {Ending: "slow"}, "two": {Ending: "slow"}, "three": {Ending: "slow"}})
	decided := reported(t, 0, "--to", to, "--parallelism", "1")
	type span struct{ start, end string }
	var spans []span
	for _, f := range decided.Findings {
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
				t.Errorf("two Jobs ran at one time: %v and %v", a, b)
			}
		}
	}
}
