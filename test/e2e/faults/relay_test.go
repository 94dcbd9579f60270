//go:build faults

package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/report"
)

// wrong is by how much a clock is wrong: enough for everything that was just
// made to look as if its time were up, or not yet come.
const wrong = 2 * time.Hour

// clockFaults are runs on a machine whose clock is not that of the cluster.
func clockFaults(tools tools) []fault {
	return []fault{
		{name: "clock of the runner 2 h ahead", with: tool{path: tools.other.path, ahead: wrong}, after: hearing("2h0m0s ahead of the cluster's")},
		{name: "clock of the runner 2 h behind", with: tool{path: tools.other.path, ahead: -wrong}, after: hearing("2h0m0s behind the cluster's")},
	}
}

// hearing wants the program to have said that.
func hearing(what string) func(*testing.T, scene, work) {
	return func(t *testing.T, _ scene, w work) {
		t.Helper()
		w.until(t, what)
	}
}

// relay is a run that one tool begins and another one ends.
type relay struct {
	name          string
	first, second tool
}

func relays(tools tools) []relay {
	ahead, behind := tool{path: tools.other.path, ahead: wrong}, tool{path: tools.other.path, ahead: -wrong}
	return []relay{
		{name: "killed, next clock 4 h behind", first: ahead, second: behind},
		{name: "killed, next clock 4 h ahead", first: behind, second: ahead},
		{name: "killed, next tool of another version", second: tools.other},
		{name: "killed, next tool back at this version", first: tools.other},
	}
}

// relay kills a run while its first check is at work, and has another tool, or
// the same one on another machine, continue it.
func (s *stage) relay(t *testing.T, r relay, undisturbed answer) {
	t.Helper()
	scene := s.take(t, patient)
	_, kubeconfig := behind(t) // without TLS: to a clock that is behind the certificates are not valid yet
	victim := scene.runWith(t, r.first.orThis(t), kubeconfig)
	victim.until(t, "Zoo.First: running")
	victim.kill()
	next := scene.runWith(t, r.second.orThis(t), kubeconfig)
	var got answer
	t.Cleanup(func() { s.table.enter(t, r.name, got, victim.started, "two runners") })
	next.until(t, "continuing run")
	scene.letGo(t)
	var decided report.Report
	got, decided = next.answer(t)
	if diff := cmp.Diff(undisturbed, got); diff != "" {
		t.Errorf("the answer is another than without the kill: -want, +got:\n%s", diff)
	}
	expectTimes(t, decided, victim)
	scene.expectExecutions(t, once())
	scene.expectNoResidue(t)
	if t.Failed() {
		t.Logf("the first one said:\n%s\nthe next one:\n%s%s", victim.stderr.text(), next.stderr.text(), troubles(decided))
	}
}

// bothAtOnce starts the preflight of one release twice at the same moment, as two
// administrators may. They are one run: both get its answer.
func (s *stage) bothAtOnce(t *testing.T, undisturbed answer) {
	t.Helper()
	scene := s.take(t, slow)
	first, second := scene.run(t, local.Kubeconfig), scene.run(t, local.Kubeconfig)
	var got answer
	t.Cleanup(func() { s.table.enter(t, "two started at the same moment", got, first.started, "two runners") })
	var reports [2]report.Report
	for i, each := range []*program{first, second} {
		got, reports[i] = each.answer(t)
		if diff := cmp.Diff(undisturbed, got); diff != "" {
			t.Errorf("the answer of one of the two is another: -want, +got:\n%s\n%s", diff, each.stderr.text())
		}
	}
	if reports[0].Run.ID != reports[1].Run.ID {
		t.Errorf("they are two runs, %s and %s", reports[0].Run.ID, reports[1].Run.ID)
	}
	scene.expectExecutions(t, once())
	scene.expectNoResidue(t)
}

// orThis is the tool that is under test, unless it is another one.
func (t tool) orThis(tb testing.TB) tool {
	tb.Helper()
	if t.path == "" {
		t.path = house.Program(tb)
	}
	return t
}

// refuseFormat has a run begun by a tool that is newer than the format of the
// record. This one keeps away from it, and says why; the newer one is not
// disturbed.
func (s *stage) refuseFormat(t *testing.T, tools tools) {
	t.Helper()
	scene := s.take(t, patient)
	newer := scene.runWith(t, tools.newer, local.Kubeconfig)
	var got answer
	t.Cleanup(func() {
		s.table.enter(t, "run held by a tool with another format", got, newer.started, "refused by this one")
	})
	newer.until(t, "Zoo.First: running")
	refused := scene.run(t, local.Kubeconfig)
	refused.wait(t)
	if code, said := refused.command.ProcessState.ExitCode(), refused.stderr.text(); code != 1 || !strings.Contains(said, `recorded in format "2"`) {
		t.Errorf("exit code %d, want 1, and which format it is:\n%s", code, said)
	}
	if refused.stdout.Len() > 0 {
		t.Errorf("a report of a run that checked nothing:\n%s", refused.stdout.String())
	}
	scene.letGo(t)
	got, _ = newer.answer(t)
	if got.Decision != "Ready" {
		t.Errorf("the run of the newer tool came to %s:\n%s", got.Decision, newer.stderr.text())
	}
	scene.expectExecutions(t, once())
	scene.expectNoResidue(t)
}

// expectTimes wants the times of a run to be those of the cluster, which here is
// on the machine of the test, whatever clock the runner has.
func expectTimes(t *testing.T, decided report.Report, run *program) {
	t.Helper()
	const exact = 5 * time.Second
	start, err := time.Parse(time.RFC3339, decided.Run.StartTime)
	end, failed := time.Parse(time.RFC3339, decided.Run.CompletionTime)
	if err != nil || failed != nil {
		t.Fatalf("the run has no times: %v, %v", err, failed)
	}
	if start.Before(run.started.Add(-exact)) || end.After(time.Now().Add(exact)) || end.Before(start) {
		t.Errorf("the run is said to have been from %s to %s; it began at %s, and it is %s",
			decided.Run.StartTime, decided.Run.CompletionTime, run.started.UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
	}
}
