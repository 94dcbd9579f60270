package trigger_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/faults"
)

// fault is a disturbance of a controller that runs the two checks of a selected update,
// with the expected runs.
type fault struct {
	name string
	// args are further arguments of the controllers.
	args []string
	// connection returns the faults of the connection between the first controller and its
	// API server; kill ends that controller. Optional.
	connection func(kill func()) []faults.Fault
	// during is called while a check is running; optional.
	during func(e *environment)
	// before is true if the first controller is killed before a check runs: another one
	// is started at once.
	before bool
	// want are the runs at the end; one Ready run of the selected update if nil.
	want []string
}

// environment is a controller for the update minor.
type environment struct {
	*world

	t     *testing.T
	first *controller
	proxy *faults.Proxy
	args  []string
}

// startNext starts another controller, without a proxy.
func (e *environment) startNext() { e.start(e.args...) }

// kill kills the first controller, whose run can be taken over soon.
func (e *environment) kill() {
	e.t.Helper()
	e.first.Kill()
	testCluster.ExpireSoon(e.t, e.images[minor])
}

const (
	finished  = minor + " selected Complete Ready"
	withdrawn = minor + " selected Interrupted Undecided"
)

func killedAfter(write string) fault {
	return fault{
		name: "leader killed after " + write, before: true,
		connection: func(kill func()) []faults.Fault { return []faults.Fault{faults.AtWrite(write, faults.After, kill)} },
	}
}

// controllerFaults lack the controller without a fault, which is that of TestSelectedRunsAtOnce.
// They include kills when a run is recorded, while its check runs, and when its
// objects are deleted. That a run is continued after a kill at any write is tested in test/kills.
func controllerFaults() []fault {
	return []fault{
		killedAfter("POST configmaps 1"),
		killedAfter("DELETE validatingadmissionpolicies 1"),
		{name: "leader killed while a check runs", during: func(e *environment) {
			e.startNext()
			e.kill()
		}},
		{name: "leader ended while a check runs", during: func(e *environment) {
			e.first.Stop(e.t, syscall.SIGTERM)
			e.startNext()
		}},
		{name: "two controllers without an election", args: []string{"--leader-elect=false"}, during: (*environment).startNext},
		{name: "target withdrawn", during: func(e *environment) { e.selectVersion("") }, want: []string{withdrawn}},
		{name: "target withdrawn while no controller runs", want: []string{minor + " selected Canceled Undecided"}, during: func(e *environment) {
			e.kill()
			e.selectVersion("")
			e.startNext()
		}},
		{
			name: "another target selected", want: []string{patch + " selected Complete Ready", withdrawn},
			during: func(e *environment) { e.selectVersion(patch) },
		},
		{name: "record deleted by another client", during: func(e *environment) { e.deleteRecords() }},
		{name: "watches too old to continue (410 Gone)", during: func(e *environment) { e.proxy.ExpireWatches() }},
		// It also breaks all connections.
		{
			name: "kube-apiserver killed and restarted", args: []string{"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s"},
			during: func(e *environment) {
				e.t.Helper()
				if err := local.Crash(e.t.Context(), "kube-apiserver"); err != nil {
					e.t.Fatal(err)
				}
				if err := local.Revive(e.t.Context(), "kube-apiserver"); err != nil {
					e.t.Fatal(err)
				}
			},
		},
		{
			name:       "clock of the controller 4 h behind",
			connection: func(func()) []faults.Fault { return []faults.Fault{faults.Clock(4 * time.Hour)} },
		},
	}
}

// TestFaults runs all faults, and prints a table of the results.
func TestFaults(t *testing.T) {
	var rows strings.Builder
	table := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "fault of the controller\truns at the end\tsurvived\ttime")
	survived := 0
	all := controllerFaults()
	for _, f := range all {
		began, result := time.Now(), "failed"
		if t.Run(f.name, func(t *testing.T) { runFault(t, f) }) {
			result = "yes"
			survived++
		}
		want := f.want
		if want == nil {
			want = []string{finished}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.name, strings.Join(want, ", "), result, time.Since(began).Round(time.Second/10))
	}
	fmt.Fprintf(table, "all\t\t%d of %d\t\n", survived, len(all))
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", rows.String())
}

// runFault verifies the runs of a controller with a fault.
func runFault(t *testing.T, f fault) {
	t.Helper()
	e := newEnvironment(t, f)
	e.selectVersion(minor)
	var begun []record.Record
	if f.before {
		<-e.first.Ended()
		e.kill() // by the write; its run is to be taken over soon
		e.startNext()
	} else {
		e.awaitPod()
		begun = e.awaitRuns(minor + " selected Running")
	}
	if f.during != nil {
		f.during(e)
	}
	want := f.want
	if want == nil {
		want = []string{finished}
	}
	ended := e.awaitRuns(want...)
	if begun != nil && !slices.ContainsFunc(ended, func(r record.Record) bool { return r.ID == begun[0].ID }) {
		t.Errorf("run %s must have ended, but the runs are %v", begun[0].ID, summaries(ended))
	}
	testCluster.ExpectNothingLeft(t)
}

// newEnvironment starts the first controller, with a proxy to its API server.
func newEnvironment(t *testing.T, f fault) *environment {
	t.Helper()
	e := &environment{t: t, args: append([]string{"--ahead=0"}, f.args...)}
	ending := "slow"
	if len(f.want) > 0 { // the run does not end by itself
		ending = "sleep"
	}
	e.world = newWorld(t, map[string][]string{minor: {"pass", ending}, patch: {"pass"}})
	e.offer(minor, patch)
	started := make(chan struct{})
	kill := func() {
		<-started
		e.first.Kill()
	}
	var injected []faults.Fault
	if f.connection != nil {
		injected = f.connection(kill)
	}
	proxy, kubeconfig := faults.StartForTest(t, local.Config, injected...)
	e.proxy, e.first = proxy, e.startWith(kubeconfig, e.args...)
	close(started)
	return e
}
