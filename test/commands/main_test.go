// Package commands_test answers: what does each command do, and with which permissions, where
// that does not depend on what happens in a pod?
//
// The program runs as a user calls it, on an API server without nodes, with signed releases in
// a registry. The pods of checks exist, and the tests end them. Checks that run in pods are
// tested by test/e2e.
package commands_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/zoo"
)

// local is the API server that the tests share, and testCluster builds the releases and runs
// programs on it.
var (
	local       *cluster.Cluster
	testCluster *zoo.Zoo
)

func TestMain(m *testing.M) {
	noAlerts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"alerts":[]}}`)
	}))
	cluster.Main(m, func(c *cluster.Cluster) {
		local, testCluster = c, zoo.WithoutContainers(c)
		testCluster.Monitoring = noAlerts.URL
	}, cluster.ControlPlaneOnly())
}

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

// preflightCommand returns a command that runs oc-preflight. The command "run" gets the URL of
// the monitoring, and reuses no results.
func preflightCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return testCluster.Preflight(t, args...)
}

// call runs oc-preflight and returns its result.
func call(t *testing.T, args ...string) zoo.Result {
	t.Helper()
	return zoo.Run(t, testCluster.Preflight(t, args...))
}

// runPreflight runs a preflight, which must end with this exit code, and returns its report.
func runPreflight(t *testing.T, code int, args ...string) report.Report {
	t.Helper()
	return testCluster.Report(t, code, args...)
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
