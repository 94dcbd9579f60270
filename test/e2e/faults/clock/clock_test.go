package clock_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/faults"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/process"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

// offset is the difference between the clocks of a runner and the cluster: new objects appear
// to have expired, or to have been created in the future.
const offset = 2 * time.Hour

// world is a cluster that offers a release of one check.
type world struct {
	pullSpec   string
	node       *kubelet.Kubelet
	kubeconfig string
	monitoring string
	began      time.Time
}

// newWorld has a proxy whose certificate is valid at any time: with a clock that is behind, that
// of the API server is not valid yet.
func newWorld(t *testing.T) world {
	t.Helper()
	offered := testCluster.Publish(t, map[string]zoo.Animal{"first": {Ending: "pass", Plain: true}})
	_, kubeconfig := faults.StartForTest(t, local.Config)
	return world{
		pullSpec: offered.PullSpec, kubeconfig: kubeconfig, node: kubelet.Start(t, testCluster.Client(t), zoo.Namespace, 0),
		monitoring: prometheus.Constant(t, http.StatusOK, `{"status":"success","data":{"alerts":[]}}`).URL, began: time.Now(),
	}
}

// start starts a preflight with a clock that is ahead. An option of a new run, --rerun, would end a
// run that is to be continued.
func (w world) start(t *testing.T, ahead time.Duration, options ...string) *process.Process {
	t.Helper()
	path, err := build.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path,
		append([]string{"run", "--to", zoo.To, "-o", "json", "--prometheus", w.monitoring}, options...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, fmt.Sprintf("%s=%d", build.ClockVariable, int(ahead.Seconds())))
	return process.Start(t, command)
}

// expectReady waits until the program has ended, and verifies that it is Ready after one
// execution of the check, and that its times are those of the cluster, which has the clock of
// the test.
func (w world) expectReady(t *testing.T, program *process.Process) {
	t.Helper()
	code := program.Wait(t)
	var decided report.Report
	if err := json.Unmarshal([]byte(program.Stdout()), &decided); err != nil {
		t.Fatalf("exit code %d without a report: %v\n%s", code, err, program.Stderr())
	}
	if code != 0 || decided.Verdict.Decision != verdict.Ready {
		t.Errorf("exit code %d, %+v; want Ready", code, decided.Verdict)
	}
	if got := w.node.Pods(); got != 1 {
		t.Errorf("the check has had %d pods", got)
	}
	start, err := time.Parse(time.RFC3339, decided.Run.StartTime)
	end, endErr := time.Parse(time.RFC3339, decided.Run.CompletionTime)
	if err != nil || endErr != nil {
		t.Fatalf("the times of the run: %v, %v", err, endErr)
	}
	const precision = 5 * time.Second // of times in a report
	if start.Before(w.began.Add(-precision)) || end.After(time.Now().Add(precision)) || end.Before(start) {
		t.Errorf("the report has the times %s to %s, but the run was between %s and %s", start, end, w.began.UTC(), time.Now().UTC())
	}
	testCluster.ExpectOnlyRecords(t, w.pullSpec)
	if t.Failed() {
		t.Logf("output of the program:\n%s", program.Stderr())
	}
}

func TestWrongClock(t *testing.T) {
	for name, tc := range map[string]struct {
		ahead  time.Duration
		reason string
		want   string // in the output
	}{
		"Ahead":  {ahead: offset, reason: "new objects appear to be old", want: "2h0m0s ahead of the cluster's"},
		"Behind": {ahead: -offset, reason: "new objects appear to be of the future", want: "2h0m0s behind the cluster's"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.node.End()
			program := w.start(t, tc.ahead, "--rerun")
			program.AwaitOutput(t, tc.want)
			w.expectReady(t, program)
			if t.Failed() {
				t.Logf("the clock is %s ahead: %s", tc.ahead, tc.reason)
			}
		})
	}
}

// A process is killed while its check runs, and one with another clock continues the run.
func TestTakeover(t *testing.T) {
	for name, tc := range map[string]struct {
		first  time.Duration
		reason string
	}{
		"Behind": {first: offset, reason: "the next clock is 4 h behind that of the killed process"},
		"Ahead":  {first: -offset, reason: "the next clock is 4 h ahead of that of the killed process"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			victim := w.start(t, tc.first, "--rerun")
			select {
			case <-w.node.Created:
			case <-victim.Ended():
				t.Fatalf("the program ended before its check ran:\n%s", victim.Stderr())
			}
			victim.Kill()
			next := w.start(t, -tc.first)
			next.AwaitOutput(t, "continuing run")
			w.node.End()
			w.expectReady(t, next)
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}
