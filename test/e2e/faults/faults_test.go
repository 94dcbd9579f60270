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
	"github.com/openshift/update-preflight/test/zoo"
)

// workers is the number of concurrent runs in a cluster without a fault of its own. Most of
// them wait for the Lease of a killed run to expire.
const workers = 8

// fault is a disturbance of a run, with the expected result.
type fault struct {
	name string
	// onPods is true if the fault concerns the node or the containers of the checks.
	onPods bool
	// args are further arguments of the run.
	args []string
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
		run.AwaitOutput(t, "Zoo.First: running")
		disturb(t, e, run)
	}
}

// proxiedRun is a run and the proxy to its API server.
type proxiedRun struct {
	*program
	proxy *faults.Proxy
}

// TestFaults runs all faults. Those of the whole cluster run one after the other, when the
// simulated node is gone.
func TestFaults(t *testing.T) {
	s := newSuite(t)
	t.Cleanup(func() { t.Log(s.table) })
	stopNode := zoo.StartNode(t, local.Config)
	baseline, writes := s.baseline(t)
	expectKnownWrites(t, writes)
	var trials []trial
	for _, f := range slices.Concat(connectionFaults(), objectFaults()) {
		trials = append(trials, s.trial(f, baseline))
	}
	trials = append(append(trials, s.kills(baseline)...), trial{"another format of the record", checks{first: patient}, s.rejectFormat})
	var last []trial
	for _, f := range slices.Concat(componentFaults(), nodeFaults()) {
		last = append(last, s.trial(f, baseline))
	}
	s.createEnvironments(t, wanted(append(trials, last...))...)
	runConcurrently(t, trials)
	stopNode()
	for _, each := range last {
		t.Run(each.name, each.run)
	}
}

// trial is a subtest of TestFaults.
type trial struct {
	name string
	// checks are those of its environment.
	checks checks
	run    func(t *testing.T)
}

// trial returns the trial of a fault.
func (s *suite) trial(f fault, baseline result) trial {
	return trial{f.name, f.checks(), func(t *testing.T) {
		t.Helper()
		s.run(t, f, baseline)
	}}
}

// wanted returns the checks of all trials.
func wanted(trials []trial) []checks {
	var all []checks
	for _, each := range trials {
		all = append(all, each.checks)
	}
	return all
}

// checks returns those of the environment of a fault.
func (f fault) checks() checks { return checks{first: patient, onPods: f.onPods} }

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

// baseline returns the result and the writes of a run without faults. A run whose checks
// are in containers has the same result as one whose node is simulated.
func (s *suite) baseline(t *testing.T) (want result, writes []string) {
	t.Helper()
	s.createEnvironments(t, checks{first: slow, onPods: true}, checks{first: slow})
	first := s.acquire(t, checks{first: slow, onPods: true})
	want, _ = first.start(t, local.Kubeconfig).result(t)
	if len(want.Checks) != len(once()) || want.Decision != "Ready" {
		t.Fatalf("a run without faults must have a result of each check and be Ready: %+v", want)
	}
	first.expectExecutions(t, once())
	first.expectNoResidue(t)

	second := s.acquire(t, checks{first: slow})
	proxy, kubeconfig := startProxy(t)
	run := second.start(t, kubeconfig)
	got, _ := run.result(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("two runs without faults have different results: -in containers, +simulated:\n%s", diff)
	}
	writes = proxy.Writes()
	t.Logf("writes of a run without faults: %s", strings.Join(writes, ", "))
	s.table.add(t, "none", got, run.Started, fmt.Sprintf("%d requests, %d of them writes", len(proxy.Requests()), len(writes)))
	return want, writes
}

// run verifies the result of a run with a fault.
func (s *suite) run(t *testing.T, f fault, baseline result) {
	t.Helper()
	e := s.acquire(t, f.checks())
	proxy, kubeconfig := startProxy(t, f.connection...)
	if f.before != nil {
		f.before(t, e)
	}
	run := proxiedRun{program: e.start(t, kubeconfig, f.args...), proxy: proxy}
	var got result
	t.Cleanup(func() { s.table.add(t, f.name, got, run.Started, s.cost(run, e)) })
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
	e.expectExecutions(t, f.pods)
	e.expectNoResidue(t)
	if t.Failed() {
		t.Logf("output of the program:\n%s%s", run.Stderr(), failures(decided))
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
