//go:build faults

package faults_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/faults"
)

// spare is how many more writes than an undisturbed run a slow one may take,
// which renews its claim more often.
const spare = 4

// killScenes is how many scenes kills needs.
func killScenes(writes int) int { return 2 * (writes + spare) }

// kills are all moments at which a runner can die as far as the cluster is
// concerned: before and after each of its writes, whatever they are. Each time
// the next runner must come to the same answer without running a check again.
func (s *stage) kills(undisturbed answer, writes int) []trial {
	var all []trial
	for k := range writes + spare {
		for _, moment := range []faults.Moment{faults.Before, faults.After} {
			all = append(all, trial{
				fmt.Sprintf("killed %s write %d", moment, k+1),
				func(t *testing.T) {
					t.Helper()
					s.killAt(t, k+1, moment, undisturbed)
				},
			})
		}
	}
	return all
}

// killAt kills a runner at one moment, and has another one come.
func (s *stage) killAt(t *testing.T, k int, moment faults.Moment, undisturbed answer) {
	t.Helper()
	scene := s.take(t, slow)
	victims := make(chan *program, 1)
	killed := make(chan struct{})
	proxy, kubeconfig := behind(t, faults.AtWrite(k, moment, func() {
		(<-victims).kill()
		close(killed)
	}))
	victim := scene.run(t, kubeconfig)
	victims <- victim
	select {
	case <-killed:
	case <-victim.ended: // there are not as many writes, or the kill is what ended it
	}
	requests := proxy.Requests()
	reached := slices.IndexFunc(requests, func(request faults.Request) bool { return request.Write == k })
	if reached < 0 {
		t.Logf("the run has no write %d", k)
		return
	}
	<-killed
	point := fmt.Sprintf("%s %s %s", moment, requests[reached].Method, requests[reached].Path)

	next := scene.run(t, local.Kubeconfig)
	var got answer
	t.Cleanup(func() {
		s.table.enter(t, fmt.Sprintf("runner killed %s each of its writes", moment), got, victim.started, "two runners")
	})
	var told report.Report
	got, told = next.answer(t)
	if diff := cmp.Diff(undisturbed, got); diff != "" {
		t.Errorf("%s: the answer is another than without the kill: -want, +got:\n%s", point, diff)
	}
	scene.expectExecutions(t, once())
	scene.expectNoResidue(t)
	if t.Failed() {
		t.Logf("killed %s. It had said:\n%s\nThe next one said:\n%s%s", point, victim.stderr.text(), next.stderr.text(), troubles(told))
	}
}
