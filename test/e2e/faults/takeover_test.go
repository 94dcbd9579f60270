package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/report"
)

// clockOffset is the difference between the clocks of a runner and the cluster: new objects
// appear to have expired, or to have been created in the future.
const clockOffset = 2 * time.Hour

// clockFaults are wrong clocks on the machine of the run.
func clockFaults(other tool) []fault {
	return []fault{
		{name: "clock of the runner 2 h ahead", tool: tool{path: other.path, ahead: clockOffset}, after: expectOutput("2h0m0s ahead of the cluster's")},
		{name: "clock of the runner 2 h behind", tool: tool{path: other.path, ahead: -clockOffset}, after: expectOutput("2h0m0s behind the cluster's")},
	}
}

// expectOutput waits for an output of the run.
func expectOutput(want string) func(*testing.T, environment, proxiedRun) {
	return func(t *testing.T, _ environment, run proxiedRun) {
		t.Helper()
		run.AwaitOutput(t, want)
	}
}

// takeover is a run that one tool starts and another one completes.
type takeover struct {
	name          string
	first, second tool
}

func takeovers(other tool) []takeover {
	ahead, behind := tool{path: other.path, ahead: clockOffset}, tool{path: other.path, ahead: -clockOffset}
	return []takeover{
		{name: "killed, next clock 4 h behind", first: ahead, second: behind},
		{name: "killed, next clock 4 h ahead", first: behind, second: ahead},
		{name: "killed, next tool of another version", second: other},
		{name: "killed, next tool back at this version", first: other},
	}
}

// takeOver kills the first tool while a check is running, and verifies that the second
// one continues the run.
func (s *suite) takeOver(t *testing.T, o takeover, baseline result) {
	t.Helper()
	e := s.acquire(t, checks{first: patient})
	_, kubeconfig := startProxy(t) // without TLS: with a clock that is behind, the certificates are not yet valid
	victim := e.startTool(t, o.first.orCurrent(t), kubeconfig)
	victim.AwaitOutput(t, "Zoo.First: running")
	victim.Kill()
	next := e.startTool(t, o.second.orCurrent(t), kubeconfig)
	var got result
	t.Cleanup(func() { s.table.add(t, o.name, got, victim.Started, "two runners") })
	next.AwaitOutput(t, "continuing run")
	e.releaseCheck(t)
	var decided report.Report
	got, decided = next.result(t)
	if diff := cmp.Diff(baseline, got); diff != "" {
		t.Errorf("the result differs from that of a run without faults: -want, +got:\n%s", diff)
	}
	expectTimes(t, decided, victim)
	e.expectExecutions(t, once())
	e.expectNoResidue(t)
	if t.Failed() {
		t.Logf("output of the killed program:\n%s\noutput of the next one:\n%s%s", victim.Stderr(), next.Stderr(), failures(decided))
	}
}

// startTwice starts the preflight of one release twice at the same moment, as two
// administrators may: both programs report the same run.
func (s *suite) startTwice(t *testing.T, baseline result) {
	t.Helper()
	e := s.acquire(t, checks{first: slow})
	first, second := e.start(t, local.Kubeconfig), e.start(t, local.Kubeconfig)
	var got result
	t.Cleanup(func() { s.table.add(t, "two started at the same moment", got, first.Started, "two runners") })
	var reports [2]report.Report
	for i, each := range []*program{first, second} {
		got, reports[i] = each.result(t)
		if diff := cmp.Diff(baseline, got); diff != "" {
			t.Errorf("the result of program %d differs from that of a run without faults: -want, +got:\n%s\n%s", i+1, diff, each.Stderr())
		}
	}
	if reports[0].Run.ID != reports[1].Run.ID {
		t.Errorf("the programs report different runs, %s and %s", reports[0].Run.ID, reports[1].Run.ID)
	}
	e.expectExecutions(t, once())
	e.expectNoResidue(t)
}

// orCurrent returns t, or the current version if t is zero.
func (t tool) orCurrent(tb testing.TB) tool {
	tb.Helper()
	if t.path == "" {
		t.path = testCluster.Program(tb)
	}
	return t
}

// rejectFormat starts a run with a tool whose record has a newer format. The current
// version must reject it with the format, without an effect on the run.
func (s *suite) rejectFormat(t *testing.T, other tool) {
	t.Helper()
	e := s.acquire(t, checks{first: patient})
	newer := e.startTool(t, tool{path: other.path, format: "2"}, local.Kubeconfig)
	var got result
	t.Cleanup(func() {
		s.table.add(t, "run held by a tool with another format", got, newer.Started, "refused by this one")
	})
	newer.AwaitOutput(t, "Zoo.First: running")
	rejecting := e.start(t, local.Kubeconfig)
	if code, output := rejecting.Wait(t), rejecting.Stderr(); code != 1 || !strings.Contains(output, `recorded in format "2"`) {
		t.Errorf("exit code %d, want 1 and the format of the record:\n%s", code, output)
	}
	if printed := rejecting.Stdout(); printed != "" {
		t.Errorf("the program must not print a report:\n%s", printed)
	}
	e.releaseCheck(t)
	got, _ = newer.result(t)
	if got.Decision != "Ready" {
		t.Errorf("the decision of the newer tool is %s, want Ready:\n%s", got.Decision, newer.Stderr())
	}
	e.expectExecutions(t, once())
	e.expectNoResidue(t)
}

// expectTimes verifies that the times of a run are those of the cluster, which has the
// clock of the test, whatever the clock of the run.
func expectTimes(t *testing.T, decided report.Report, run *program) {
	t.Helper()
	const tolerance = 5 * time.Second
	start, err := time.Parse(time.RFC3339, decided.Run.StartTime)
	end, endErr := time.Parse(time.RFC3339, decided.Run.CompletionTime)
	if err != nil || endErr != nil {
		t.Fatalf("cannot parse the times of the run: %v, %v", err, endErr)
	}
	if start.Before(run.Started.Add(-tolerance)) || end.After(time.Now().Add(tolerance)) || end.Before(start) {
		t.Errorf("the report has the times %s to %s; the program was started at %s, and the time is %s",
			decided.Run.StartTime, decided.Run.CompletionTime, run.Started.UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
	}
}
