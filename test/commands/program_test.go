package commands_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/process"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/zoo"
)

// Short names for the releases of the zoo.
const (
	to           = zoo.To
	zooNamespace = zoo.Namespace
)

type animal = zoo.Animal

// publish builds and signs a release with these checks, and makes the cluster offer it.
func publish(t *testing.T, animals map[string]animal) *zoo.World {
	t.Helper()
	return testCluster.Publish(t, animals)
}

// newKubelet ends the pods of checks, after its End was called, with an exit code.
func newKubelet(t *testing.T, code int32) *kubelet.Kubelet {
	t.Helper()
	return kubelet.Start(t, testCluster.Client(t), zooNamespace, code)
}

// call runs oc-preflight and returns its result. "run" reuses no results.
func call(t *testing.T, args ...string) program.Result {
	t.Helper()
	return program.Call(t, withMonitoring(args)...)
}

// start is call for a program that a test interrupts, or that others change something for.
func start(t *testing.T, args ...string) *program.Execution {
	t.Helper()
	return program.Start(t, withMonitoring(args)...)
}

// startProcess is start for a program that a test sends a signal.
func startProcess(t *testing.T, args ...string) *process.Process {
	t.Helper()
	return process.Start(t, testCluster.Command(t, withMonitoring(args)...))
}

// firstPod returns the next pod of a run in progress.
func firstPod(t *testing.T, node *kubelet.Kubelet, run interface{ Ended() <-chan struct{} }) *corev1.Pod {
	t.Helper()
	select {
	case pod := <-node.Created:
		return pod
	case <-run.Ended():
		t.Fatal("the run has ended without a pod")
		return nil
	}
}

// withMonitoring adds a monitoring without alerts to the arguments of "run", which then reuses no results.
func withMonitoring(args []string) []string {
	if args[0] != "run" {
		return args
	}
	return append([]string{"run", "--rerun", "--prometheus", testCluster.Monitoring}, args[1:]...)
}

// runPreflight runs a preflight, which must end with this exit code, and returns its report.
func runPreflight(t *testing.T, code int, args ...string) report.Report {
	t.Helper()
	got := call(t, append([]string{"run", "-o", "json"}, args...)...)
	if got.Code != code {
		t.Fatalf("run %v: exit code %d, want %d\n%s%s", args, got.Code, code, got.Stderr, got.Stdout)
	}
	return reportOf(t, got)
}

// reportOf returns the report that a run has printed.
func reportOf(t *testing.T, of program.Result) report.Report {
	t.Helper()
	var result report.Report
	decode(t, of, &result)
	return result
}

// decode decodes the output of a program.
func decode(t *testing.T, from program.Result, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(from.Stdout), into); err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", from.Code, err, from.Stdout, from.Stderr)
	}
}

// byName returns the findings of a report by name.
func byName(result report.Report) map[string]finding.Finding { return zoo.ByName(result) }

// errorLine returns the line of stderr with the error; empty if there is none.
func errorLine(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "error: ") {
			return line
		}
	}
	return ""
}
