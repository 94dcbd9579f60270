package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/faults"
)

// killPoint is the moment at which a run is killed.
type killPoint struct {
	write  string
	moment faults.Moment
	// certain is false if a run may end before this write: the number of updates depends
	// on its duration, and that of deleted pods on the garbage collector.
	certain bool
}

// String implements fmt.Stringer.
func (k killPoint) String() string { return string(k.moment) + " " + k.write }

// onPods lists the kill points at which the checks run in containers: before all Jobs exist,
// when all of them do, and after their deletion has begun. What the other writes leave does
// not concern pods.
func onPods() []string {
	return []string{"before POST jobs 2", "after POST jobs 2", "before DELETE jobs 2"}
}

// expectOnPods verifies that each of onPods is a kill point.
func expectOnPods(t *testing.T, points []killPoint) {
	t.Helper()
	for _, name := range onPods() {
		if !slices.ContainsFunc(points, func(k killPoint) bool { return k.String() == name }) {
			t.Errorf("a run has no write for the kill %s", name)
		}
	}
}

// checks returns those of the environment of a kill point.
func (k killPoint) checks() checks {
	return checks{first: slow, onPods: slices.Contains(onPods(), k.String())}
}

// killPoints returns all moments that make a difference to the cluster: before the first
// write of a run, and after each of them. A kill before a later write leaves what a kill
// after the previous one leaves. Writes of the same kind that are not updates are in
// progress at the same time: a run is killed before the last of them, when some have an
// effect and others none, and after it, when all have. Writes are identified by name, since
// their order varies.
func killPoints(writes []string) []killPoint {
	number := map[string]int{}
	for _, write := range writes {
		number[kindOf(write)]++
	}
	var all []killPoint
	for i, write := range writes {
		kind := kindOf(write)
		concurrent := number[kind] > 1 && !isUpdate(kind)
		last := write == fmt.Sprintf("%s %d", kind, number[kind])
		certain := kind != "DELETE pods" && (!isUpdate(kind) || write == kind+" 1")
		if i == 0 || concurrent && last {
			all = append(all, killPoint{write: write, moment: faults.Before, certain: certain})
		}
		if !concurrent || last {
			all = append(all, killPoint{write: write, moment: faults.After, certain: certain})
		}
	}
	return all
}

func isUpdate(kind string) bool { return strings.HasPrefix(kind, "PUT ") }

// kindOf returns the name of a write without its number.
func kindOf(write string) string { return write[:strings.LastIndex(write, " ")] }

// kills returns a trial for each kill point: the next program must reach the same result
// without running a check again.
func (s *suite) kills(baseline result, points []killPoint) []trial {
	var all []trial
	for _, point := range points {
		all = append(all, trial{
			"killed " + point.String(), point.checks(),
			func(t *testing.T) {
				t.Helper()
				s.killAt(t, point, baseline)
			},
		})
	}
	return all
}

// killAt kills a program at a kill point, and starts another one.
func (s *suite) killAt(t *testing.T, point killPoint, baseline result) {
	t.Helper()
	e := s.acquire(t, point.checks())
	victims := make(chan *program, 1)
	killed := make(chan struct{})
	proxy, kubeconfig := startProxy(t, faults.AtWrite(point.write, point.moment, func() {
		(<-victims).Kill()
		close(killed)
	}))
	victim := e.start(t, kubeconfig)
	victims <- victim
	select {
	case <-killed:
	case <-victim.Ended(): // before the kill point, or by the kill
	}
	if !slices.Contains(proxy.Writes(), point.write) {
		if point.certain {
			t.Errorf("the run ended before %q", point.write)
		}
		s.table.addUnreached(point)
		return
	}
	<-killed

	next := e.start(t, local.Kubeconfig)
	var got result
	t.Cleanup(func() {
		s.table.add(t, fmt.Sprintf("runner killed %s one of its writes", point.moment), got, victim.Started, "two runners")
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
