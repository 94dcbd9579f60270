// Package roles_test answers: does each command work with the roles that "auth" prints for
// it, and does it report each permission that is missing?
//
// The program runs on an API server without nodes, where the pods of checks are ended by the
// tests. That each command also works with its roles in a whole cluster is a test of
// test/e2e.
package roles_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/kubelet"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

var (
	local       *cluster.Cluster
	testCluster *zoo.Zoo
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local, testCluster = c, zoo.Nodeless(c) }, cluster.ControlPlaneOnly())
}

// The exit codes of the program.
const (
	ready     = 0
	failed    = 1
	undecided = 4
)

// parallel is how many programs run side by side. Most of the time each of them waits for
// the API server.
const parallel = 8

// offered is an available update.
type offered struct{ version, pullSpec string }

// offer makes the cluster offer this many releases, which differ only in their versions.
// Their checks end with exit code 0.
func offer(t *testing.T, number int, animals map[string]zoo.Animal) ([]offered, *zoo.World) {
	t.Helper()
	releases, all := map[string]string{}, make([]offered, number)
	for i := range all {
		version := fmt.Sprintf("5.2.%d", i)
		pullSpec, err := testCluster.Push(t.Context(), version, animals)
		if err != nil {
			t.Fatal(err)
		}
		releases[version], all[i] = pullSpec, offered{version, pullSpec}
	}
	return all, testCluster.Offer(t, releases, zoo.Namespace)
}

// startKubelet ends the pods of checks.
func startKubelet(t *testing.T) {
	t.Helper()
	kubelet.Start(t, testCluster.Client(t), zoo.Namespace, 0).End()
}

// caller calls the program.
type caller struct{ monitoring string }

func newCaller(t *testing.T) caller {
	t.Helper()
	return caller{monitoring: prometheus.Constant(t, http.StatusOK, `{"status":"success","data":{"alerts":[]}}`).URL}
}

func (c caller) call(t *testing.T, args ...string) zoo.Result {
	t.Helper()
	if args[0] == "run" {
		args = append([]string{"run", "--rerun", "--prometheus", c.monitoring}, args[1:]...)
	}
	return testCluster.Call(t, args...)
}

// sideBySide runs a test for each element.
func sideBySide[T fmt.Stringer](t *testing.T, all []T, test func(t *testing.T, i int, each T)) {
	t.Helper()
	free := make(chan struct{}, parallel)
	var running sync.WaitGroup
	for i, each := range all {
		free <- struct{}{}
		running.Go(func() {
			t.Run(each.String(), func(t *testing.T) { test(t, i, each) })
			<-free
		})
	}
	running.Wait()
}

// errorLine returns the line of stderr with the error; empty if there is none.
func errorLine(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "error: ") {
			return line
		}
	}
	return ""
}
