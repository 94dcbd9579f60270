// Package trigger_test answers: does the controller run the preflights of selected and
// offered updates? The controller is a process, on a real cluster with real pods and signed
// releases.
package trigger_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

// local is the cluster of the tests; testCluster makes the releases for it, and monitoring
// is the URL of its Prometheus.
var (
	local       *cluster.Cluster
	testCluster *zoo.Zoo
	monitoring  string
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) {
		local, testCluster = c, zoo.At(c)
		files, err := os.MkdirTemp(c.Dir, "prometheus-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		started, err := prometheus.Start(context.Background(), files)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		monitoring = started.URL
	})
}
