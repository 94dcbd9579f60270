package faults_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/faults"
)

// kill is the kill of a process whose release has these checks.
type kill struct {
	faults.Kill

	checks checks
}

// kills are in the course of a run and, with the checks in containers, before all Jobs exist,
// when all of them do, and after their deletion has begun: what the other writes leave does not
// concern pods. The kills at all writes are those of test/kills.
func kills() []kill {
	simulated, onPods := checks{first: slow}, checks{first: slow, onPods: true}
	return []kill{
		{faults.Kill{Write: "POST leases 1", Moment: faults.Before}, simulated},
		{faults.Kill{Write: "PUT configmaps 1", Moment: faults.After}, simulated},
		{faults.Kill{Write: "POST validatingadmissionpolicybindings 1", Moment: faults.After}, simulated},
		{faults.Kill{Write: "PUT leases 1", Moment: faults.After}, simulated},
		{faults.Kill{Write: "DELETE validatingadmissionpolicies 1", Moment: faults.After}, simulated},
		{faults.Kill{Write: "DELETE leases 1", Moment: faults.After}, simulated},
		{faults.Kill{Write: "POST jobs 2", Moment: faults.Before}, onPods},
		{faults.Kill{Write: "POST jobs 2", Moment: faults.After}, onPods},
		{faults.Kill{Write: "DELETE jobs 2", Moment: faults.Before}, onPods},
	}
}

// expectKnownWrites verifies that a process has the writes at which test/kills kills its runs.
func expectKnownWrites(t *testing.T, writes []string) {
	t.Helper()
	const known = "../../kills/testdata/writes.txt"
	want, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(faults.Comparable(writes), "\n") + "\n"
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the writes of a process differ from those at which runs are killed (-%s +process):\n%s", known, diff)
	}
}

// kills returns a trial for each kill: the next program must reach the same result without
// running a check again.
func (s *suite) kills(baseline result) []trial {
	var all []trial
	for _, k := range kills() {
		all = append(all, trial{"killed " + k.String(), k.checks, func(t *testing.T) {
			t.Helper()
			s.kill(t, k, baseline)
		}})
	}
	return all
}

// kill kills a program at one of its writes, and starts another one.
func (s *suite) kill(t *testing.T, at kill, baseline result) {
	t.Helper()
	e := s.acquire(t, at.checks)
	victims := make(chan *program, 1)
	killed := make(chan struct{})
	proxy, kubeconfig := startProxy(t, faults.AtWrite(at.Write, at.Moment, func() {
		(<-victims).Kill()
		close(killed)
	}))
	victim := e.start(t, kubeconfig)
	victims <- victim
	<-victim.Ended()
	if !slices.Contains(proxy.Writes(), at.Write) {
		t.Fatalf("the run ended before %s:\n%s", at.Write, victim.Stderr())
	}
	<-killed

	next := e.start(t, local.Kubeconfig)
	var got result
	t.Cleanup(func() {
		s.table.add(t, fmt.Sprintf("runner killed %s one of its writes", at.Moment), got, victim.Started, "two runners")
	})
	var decided report.Report
	got, decided = next.result(t)
	if diff := cmp.Diff(baseline, got); diff != "" {
		t.Errorf("the result differs from that of a run without faults: -want, +got:\n%s", diff)
	}
	e.expectExecutions(t, once())
	e.expectNoResidue(t)
	if t.Failed() {
		t.Logf("output of the killed program:\n%s\noutput of the next one:\n%s%s", victim.Stderr(), next.Stderr(), failures(decided))
	}
}
