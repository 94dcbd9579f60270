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

// workers is the number of concurrent runs in a cluster without a fault of its own. More of
// them would only compete for the processors with the tests of other packages.
const workers = 5

// fault is a disturbance of a run, with the expected result.
type fault struct {
	name string
	// args are further arguments of the run.
	args []string
	// tool is the program to run; the current version unless given.
	tool tool
	// connection lists the faults of the connection between the run and its API server.
	connection []faults.Fault
	// before is called before the run starts; optional.
	before func(t *testing.T, e environment)
	// during is called while the run is in progress: its first check does not end
	// before it returns. after is called then. Both are optional.
	during, after func(t *testing.T, e environment, run proxiedRun)
	// want verifies the result; it must be that of a run without faults unless given.
	want func(t *testing.T, got result)
	// pods is the number of executions of each check; one unless given.
	pods map[string]int
}

// whenFirstRuns calls disturb once the first check is running.
func whenFirstRuns(disturb func(t *testing.T, e environment, run proxiedRun)) func(*testing.T, environment, proxiedRun) {
	return func(t *testing.T, e environment, run proxiedRun) {
		t.Helper()
		run.awaitOutput(t, "Zoo.First: running")
		disturb(t, e, run)
	}
}

// proxiedRun is a run and the proxy to its API server.
type proxiedRun struct {
	*program
	proxy *faults.Proxy
}

// TestFaults runs all faults. Those of the whole cluster run one after the other.
func TestFaults(t *testing.T) {
	s := newSuite(t)
	t.Cleanup(func() { t.Log(s.table) })
	baseline, writes := s.baseline(t)
	tools := buildTools(t)
	sequential := append(componentFaults(), nodeFaults()...)
	concurrent := slices.Concat(connectionFaults(), objectFaults(), clockFaults(tools))
	takeovers := takeovers(tools)
	points := killPoints(writes)
	s.createEnvironments(t, append(
		slices.Repeat([]string{slow}, len(points)+1),
		slices.Repeat([]string{patient}, len(sequential)+len(concurrent)+len(takeovers)+1)...,
	)...)
	trials := append(s.kills(baseline, points), trial{"another format of the record", func(t *testing.T) {
		t.Helper()
		s.rejectFormat(t, tools)
	}}, trial{"two started at the same moment", func(t *testing.T) {
		t.Helper()
		s.startTwice(t, baseline)
	}})
	for _, o := range takeovers {
		trials = append(trials, trial{o.name, func(t *testing.T) {
			t.Helper()
			s.takeOver(t, o, baseline)
		}})
	}
	for _, f := range concurrent {
		trials = append(trials, trial{f.name, func(t *testing.T) {
			t.Helper()
			s.run(t, f, baseline)
		}})
	}
	runConcurrently(t, trials)
	for _, f := range sequential {
		t.Run(f.name, func(t *testing.T) { s.run(t, f, baseline) })
	}
}

// trial is a subtest of TestFaults.
type trial struct {
	name string
	run  func(t *testing.T)
}

// runConcurrently runs one trial per worker at a time. There may be more workers than
// processors, since trials mostly wait.
func runConcurrently(t *testing.T, trials []trial) {
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

// baseline returns the result and the writes of a run without faults.
func (s *suite) baseline(t *testing.T) (want result, writes []string) {
	t.Helper()
	s.createEnvironments(t, slow, slow)
	first := s.acquire(t, slow)
	want, _ = first.start(t, local.Kubeconfig).result(t)
	if len(want.Checks) != len(once()) || want.Decision != "Ready" {
		t.Fatalf("a run without faults must have a result of each check and be Ready: %+v", want)
	}
	first.expectExecutions(t, once())
	first.expectNoResidue(t)

	second := s.acquire(t, slow)
	proxy, kubeconfig := startProxy(t)
	run := second.start(t, kubeconfig)
	got, _ := run.result(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("two runs without faults have different results: -first, +second:\n%s", diff)
	}
	writes = proxy.Writes()
	t.Logf("writes of a run without faults: %s", strings.Join(writes, ", "))
	s.table.add(t, "none", got, run.started, fmt.Sprintf("%d requests, %d of them writes", len(proxy.Requests()), len(writes)))
	return want, writes
}

// run verifies the result of a run with a fault.
func (s *suite) run(t *testing.T, f fault, baseline result) {
	t.Helper()
	e := s.acquire(t, patient)
	proxy, kubeconfig := startProxy(t, f.connection...)
	if f.before != nil {
		f.before(t, e)
	}
	run := proxiedRun{program: e.startTool(t, f.tool.orCurrent(t), kubeconfig, f.args...), proxy: proxy}
	var got result
	t.Cleanup(func() { s.table.add(t, f.name, got, run.started, s.cost(run, e)) })
	if f.during != nil {
		f.during(t, e, run)
	}
	e.releaseCheck(t)
	if f.after != nil {
		f.after(t, e, run)
	}
	var decided report.Report
	got, decided = run.result(t)
	if f.want != nil {
		f.want(t, got)
	} else if diff := cmp.Diff(baseline, got); diff != "" {
		t.Errorf("the result differs from that of a run without faults: -want, +got:\n%s", diff)
	}
	if f.pods == nil {
		f.pods = once()
	}
	expectTimes(t, decided, run.program)
	e.expectExecutions(t, f.pods)
	e.expectNoResidue(t)
	if t.Failed() {
		t.Logf("output of the program:\n%s%s", run.stderr.text(), failures(decided))
	}
}

// cost returns the numbers of requests and pods of a run.
func (s *suite) cost(run proxiedRun, e environment) string {
	pods := 0
	for _, executions := range s.observer.executions(e.namespace) {
		pods += executions
	}
	return fmt.Sprintf("%d requests, %d pods", len(run.proxy.Requests()), pods)
}

// wantUndecided expects the decision Undecided, and one of these reasons of each check
// that is Unknown: the fault removes evidence.
func wantUndecided(reasons ...string) func(*testing.T, result) {
	return func(t *testing.T, got result) {
		t.Helper()
		if got.Decision != "Undecided" || got.Code != 4 {
			t.Errorf("%s, exit code %d; want Undecided, 4, since evidence was removed", got.Decision, got.Code)
		}
		for _, check := range got.Checks {
			_, reason, _ := strings.Cut(check, " Unknown (")
			known := false
			for _, want := range reasons {
				known = known || reason == want+")"
			}
			if reason != "" && !known {
				t.Errorf("%s: want one of the reasons %v", check, reasons)
			}
		}
	}
}
