//go:build faults

package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/faults"
)

// workers is the number of concurrent runs where they do not disturb
// each other.
const workers = 8

// fault is what a run has to survive.
type fault struct {
	name string
	// args are further arguments of the run.
	args []string
	// with is what runs; the tool as it is unless given.
	with tool
	// wrong is what goes wrong between the run and its API server by itself.
	wrong []faults.Fault
	// before happens before the run; optional.
	before func(t *testing.T, s scene)
	// during happens while the run is at work: its first check is not let go
	// before that is over. after happens then. Both are optional.
	during, after func(t *testing.T, s scene, w work)
	// want judges the answer; that of an undisturbed run unless given.
	want func(t *testing.T, got answer)
	// pods is how often each check runs; once unless given.
	pods map[string]int
}

// whenFirstRuns has something happen as soon as the first check is at work.
func whenFirstRuns(happens func(t *testing.T, s scene, w work)) func(*testing.T, scene, work) {
	return func(t *testing.T, s scene, w work) {
		t.Helper()
		w.until(t, "Zoo.First: running")
		happens(t, s, w)
	}
}

// work is a run, and the proxy that it goes through.
type work struct {
	*program
	proxy *faults.Proxy
}

// TestFaults tries them all. Those that hit the whole cluster come one by one.
func TestFaults(t *testing.T) {
	s := newStage(t)
	t.Cleanup(func() { t.Log(s.table) })
	undisturbed, writes := s.undisturbed(t)
	tools := buildTools(t)
	oneByOne := append(componentFaults(), nodeFaults()...)
	aside := slices.Concat(connectionFaults(), objectFaults(), clockFaults(tools))
	relays := relays(tools)
	points := killPoints(writes)
	s.furnish(t, append(
		slices.Repeat([]string{slow}, len(points)+1),
		slices.Repeat([]string{patient}, len(oneByOne)+len(aside)+len(relays)+1)...,
	)...)
	cases := append(s.kills(undisturbed, points), trial{"another format of the record", func(t *testing.T) {
		t.Helper()
		s.refuseFormat(t, tools)
	}}, trial{"two started at the same moment", func(t *testing.T) {
		t.Helper()
		s.bothAtOnce(t, undisturbed)
	}})
	for _, r := range relays {
		cases = append(cases, trial{r.name, func(t *testing.T) {
			t.Helper()
			s.relay(t, r, undisturbed)
		}})
	}
	for _, f := range aside {
		cases = append(cases, trial{f.name, func(t *testing.T) {
			t.Helper()
			s.try(t, f, undisturbed)
		}})
	}
	sideBySide(t, cases)
	for _, f := range oneByOne {
		t.Run(f.name, func(t *testing.T) { s.try(t, f, undisturbed) })
	}
}

// trial is one case of a fault.
type trial struct {
	name string
	run  func(t *testing.T)
}

// sideBySide runs as many trials at a time as there are workers: most of them
// wait most of the time, so there may be more than processors.
func sideBySide(t *testing.T, trials []trial) {
	t.Helper()
	next := make(chan trial)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for trial := range next {
				t.Run(trial.name, trial.run)
			}
		})
	}
	for _, trial := range trials {
		next <- trial
	}
	close(next)
	all.Wait()
}

// undisturbed is what a run comes to that nothing happens to, and the writes that
// it makes.
func (s *stage) undisturbed(t *testing.T) (want answer, writes []string) {
	t.Helper()
	s.furnish(t, slow, slow)
	first := s.take(t, slow)
	want, _ = first.run(t, local.Kubeconfig).answer(t)
	if len(want.Checks) != len(once()) || want.Decision != "Ready" {
		t.Fatalf("without a fault there has to be an answer of each check: %+v", want)
	}
	first.expectExecutions(t, once())
	first.expectNoResidue(t)

	second := s.take(t, slow)
	proxy, kubeconfig := behind(t)
	run := second.run(t, kubeconfig)
	got, _ := run.answer(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("two runs without a fault do not agree: -first, +second:\n%s", diff)
	}
	writes = proxy.Writes()
	t.Logf("its writes: %s", strings.Join(writes, ", "))
	s.table.enter(t, "none", got, run.started, fmt.Sprintf("%d requests, %d of them writes", len(proxy.Requests()), len(writes)))
	return want, writes
}

// try has a run meet a fault.
func (s *stage) try(t *testing.T, f fault, undisturbed answer) {
	t.Helper()
	scene := s.take(t, patient)
	proxy, kubeconfig := behind(t, f.wrong...)
	if f.before != nil {
		f.before(t, scene)
	}
	run := work{program: scene.runWith(t, f.with.orThis(t), kubeconfig, f.args...), proxy: proxy}
	var got answer
	t.Cleanup(func() { s.table.enter(t, f.name, got, run.started, s.cost(run, scene)) })
	if f.during != nil {
		f.during(t, scene, run)
	}
	scene.letGo(t)
	if f.after != nil {
		f.after(t, scene, run)
	}
	var decided report.Report
	got, decided = run.answer(t)
	if f.want != nil {
		f.want(t, got)
	} else if diff := cmp.Diff(undisturbed, got); diff != "" {
		t.Errorf("the answer is another than without the fault: -want, +got:\n%s", diff)
	}
	if f.pods == nil {
		f.pods = once()
	}
	expectTimes(t, decided, run.program)
	scene.expectExecutions(t, f.pods)
	scene.expectNoResidue(t)
	if t.Failed() {
		t.Logf("the program said:\n%s%s", run.stderr.text(), troubles(decided))
	}
}

// cost is what a run took.
func (s *stage) cost(run work, scene scene) string {
	pods := 0
	for _, times := range s.witness.executions(scene.namespace) {
		pods += times
	}
	return fmt.Sprintf("%d requests, %d pods", len(run.proxy.Requests()), pods)
}

// wantUndecided is for faults that take the evidence: the verdict says so, and
// why.
func wantUndecided(reasons ...string) func(*testing.T, answer) {
	return func(t *testing.T, got answer) {
		t.Helper()
		if got.Decision != "Undecided" || got.Code != 4 {
			t.Errorf("%s, exit code %d; want Undecided, 4, since evidence is gone", got.Decision, got.Code)
		}
		for _, check := range got.Checks {
			_, reason, _ := strings.Cut(check, " Unknown (")
			known := false
			for _, want := range reasons {
				known = known || reason == want+")"
			}
			if reason != "" && !known {
				t.Errorf("%s: want the cause, one of %v", check, reasons)
			}
		}
	}
}
