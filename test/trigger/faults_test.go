//go:build faults

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

// fault is what happens while a controller checks a selected update of two checks.
type fault struct {
	name string
	// args are further arguments of the controllers.
	args []string
	// wrong is between the first controller and its API server; kill ends it.
	wrong func(kill func()) []faults.Fault
	// during happens while a check runs.
	during func(s *scene)
	// before is true where the first controller is killed before a check runs: another
	// one is started at once.
	before bool
	// want are the runs at the end; one Ready run of the selected update if nil.
	want []string
}

// scene is a controller that checks the update minor.
type scene struct {
	*world

	t     *testing.T
	first *process
	proxy *faults.Proxy
	args  []string
}

// next starts another controller, without a proxy.
func (s *scene) next() { s.start(s.args...) }

const (
	finished  = minor + " selected Complete Ready"
	withdrawn = minor + " selected Interrupted Undecided"
)

func killedAt(moment faults.Moment, write string) fault {
	return fault{
		name: "leader killed " + string(moment) + " " + write, before: true,
		wrong: func(kill func()) []faults.Fault { return []faults.Fault{faults.AtWrite(write, moment, kill)} },
	}
}

func disturbed(name string, happens func(*faults.Proxy)) fault {
	return fault{name: name, during: func(s *scene) { happens(s.proxy) }}
}

// The phases of a run begin with these writes.
func controllerFaults() []fault {
	return []fault{
		{name: "none"},
		killedAt(faults.Before, "POST configmaps 1"),
		killedAt(faults.After, "POST configmaps 1"),
		killedAt(faults.Before, "POST validatingadmissionpolicies 1"),
		killedAt(faults.Before, "POST jobs 1"),
		killedAt(faults.After, "POST jobs 2"),
		killedAt(faults.Before, "DELETE jobs 1"),
		killedAt(faults.After, "DELETE validatingadmissionpolicies 1"),
		{name: "leader killed while a check runs", during: func(s *scene) {
			s.next()
			s.first.signal(syscall.SIGKILL)
		}},
		{name: "leader ended while a check runs", during: func(s *scene) {
			s.first.signal(syscall.SIGTERM)
			s.next()
		}},
		{name: "two controllers without an election", args: []string{"--leader-elect=false"}, during: (*scene).next},
		{name: "target withdrawn", during: func(s *scene) { s.choose("") }, want: []string{withdrawn}},
		{name: "target withdrawn while no controller runs", want: []string{minor + " selected Canceled Undecided"}, during: func(s *scene) {
			s.first.signal(syscall.SIGKILL)
			s.choose("")
			s.next()
		}},
		{name: "another target selected", want: []string{patch + " selected Complete Ready", withdrawn}, during: func(s *scene) { s.choose(patch) }},
		{name: "record deleted by another client", during: func(s *scene) { s.forget() }},
		disturbed("watches cut", (*faults.Proxy).CutWatches),
		disturbed("watches too old to continue (410 Gone)", (*faults.Proxy).ExpireWatches),
		disturbed("all connections broken", (*faults.Proxy).CutConnections),
		{name: "kube-apiserver killed and restarted", args: []string{"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s"}, during: func(s *scene) {
			s.t.Helper()
			if err := local.Crash(s.t.Context(), "kube-apiserver"); err != nil {
				s.t.Fatal(err)
			}
			if err := local.Revive(s.t.Context(), "kube-apiserver"); err != nil {
				s.t.Fatal(err)
			}
		}},
		{name: "clock of the controller 4 h behind", wrong: func(func()) []faults.Fault { return []faults.Fault{faults.Clock(4 * time.Hour)} }},
	}
}

// TestFaults prints what the controller survives.
func TestFaults(t *testing.T) {
	var rows strings.Builder
	table := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "fault of the controller\truns at the end\tsurvived\ttime")
	survived := 0
	all := controllerFaults()
	for _, f := range all {
		began, became := time.Now(), "failed"
		if t.Run(f.name, func(t *testing.T) { survive(t, f) }) {
			became = "yes"
			survived++
		}
		want := f.want
		if want == nil {
			want = []string{finished}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.name, strings.Join(want, ", "), became, time.Since(began).Round(time.Second/10))
	}
	fmt.Fprintf(table, "all\t\t%d of %d\t\n", survived, len(all))
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", rows.String())
}

func survive(t *testing.T, f fault) {
	t.Helper()
	s := newScene(t, f)
	s.choose(minor)
	var begun []record.Record
	if f.before {
		<-s.first.ended
		s.next()
	} else {
		s.awaitPods(1)
		begun = s.awaitRuns(minor + " selected Running")
	}
	if f.during != nil {
		f.during(s)
	}
	want := f.want
	if want == nil {
		want = []string{finished}
	}
	ended := s.awaitRuns(want...)
	if begun != nil && !slices.ContainsFunc(ended, func(r record.Record) bool { return r.ID == begun[0].ID }) {
		t.Errorf("run %s did not end, but another one: %v", begun[0].ID, summaries(ended))
	}
	house.ExpectNothingLeft(t)
}

// newScene starts the first controller, which reaches its API server through a proxy.
func newScene(t *testing.T, f fault) *scene {
	t.Helper()
	s := &scene{t: t, args: append([]string{"--ahead=0"}, f.args...)}
	slow := "slow"
	if len(f.want) > 0 { // the run does not end by itself
		slow = "sleep"
	}
	s.world = newWorld(t, map[string][]string{minor: {"pass", slow}, patch: {"pass"}})
	s.offer(minor, patch)
	started := make(chan struct{})
	kill := func() {
		<-started
		s.first.signal(syscall.SIGKILL)
	}
	var wrong []faults.Fault
	if f.wrong != nil {
		wrong = f.wrong(kill)
	}
	proxy, kubeconfig := faults.Behind(t, local.Config, wrong...)
	s.proxy, s.first = proxy, s.startWith(kubeconfig, s.args...)
	close(started)
	return s
}
