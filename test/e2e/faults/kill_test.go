//go:build faults

package faults_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/faults"
)

// spare is how many more times than an undisturbed run a slow one may renew its
// claim, or write what has come in.
const spare = 2

// killPoint is a moment at which a runner dies.
type killPoint struct {
	write  string
	moment faults.Moment
	// certain is false where a run may be over before: it writes as often as it
	// takes long, and deletes the pods that the garbage collector has not deleted yet.
	certain bool
}

// killPoints are all moments at which a runner can die as far as the cluster is
// concerned: before and after each of its writes. They go by what is written, for
// many writes are in progress at one time, and their order is another each time.
func killPoints(writes []string) []killPoint {
	var all []killPoint
	add := func(write string, certain bool) {
		for _, moment := range []faults.Moment{faults.Before, faults.After} {
			all = append(all, killPoint{write: write, moment: moment, certain: certain})
		}
	}
	repeated := map[string]int{}
	for _, write := range writes {
		kind := kindOf(write)
		again := strings.HasPrefix(kind, "PUT ")
		if again {
			repeated[kind]++
		}
		add(write, kind != "DELETE pods" && (!again || repeated[kind] == 1))
	}
	for _, kind := range slices.Sorted(maps.Keys(repeated)) {
		for i := range spare {
			add(fmt.Sprintf("%s %d", kind, repeated[kind]+i+1), false)
		}
	}
	return all
}

// kindOf is a write's name without its number.
func kindOf(write string) string { return write[:strings.LastIndex(write, " ")] }

// kills are the trials of all kill points. Each time the next runner must come to
// the same answer without running a check again.
func (s *stage) kills(undisturbed answer, points []killPoint) []trial {
	var all []trial
	for _, point := range points {
		all = append(all, trial{
			fmt.Sprintf("killed %s %s", point.moment, point.write),
			func(t *testing.T) {
				t.Helper()
				s.killAt(t, point, undisturbed)
			},
		})
	}
	return all
}

// killAt kills a runner at one moment, and has another one come.
func (s *stage) killAt(t *testing.T, point killPoint, undisturbed answer) {
	t.Helper()
	scene := s.take(t, slow)
	victims := make(chan *program, 1)
	killed := make(chan struct{})
	proxy, kubeconfig := behind(t, faults.AtWrite(point.write, point.moment, func() {
		(<-victims).kill()
		close(killed)
	}))
	victim := scene.run(t, kubeconfig)
	victims <- victim
	select {
	case <-killed:
	case <-victim.ended: // it was over before, or the kill is what ended it
	}
	if !slices.Contains(proxy.Writes(), point.write) {
		if point.certain {
			t.Errorf("the run was over before %q", point.write)
		}
		s.table.pass(point)
		return
	}
	<-killed

	next := scene.run(t, local.Kubeconfig)
	var got answer
	t.Cleanup(func() {
		s.table.enter(t, fmt.Sprintf("runner killed %s each of its writes", point.moment), got, victim.started, "two runners")
	})
	var decided report.Report
	got, decided = next.answer(t)
	if diff := cmp.Diff(undisturbed, got); diff != "" {
		t.Errorf("the answer is another than without the kill: -want, +got:\n%s", diff)
	}
	scene.expectExecutions(t, once())
	scene.expectNoResidue(t)
	if t.Failed() {
		t.Logf("the one that was killed had said:\n%s\nThe next one said:\n%s%s", victim.stderr.text(), next.stderr.text(), troubles(decided))
	}
}
