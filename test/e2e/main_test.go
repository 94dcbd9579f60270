// Package e2e_test answers: does oc-preflight work on a real cluster, with real pods, a
// real registry and real signatures?
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

// local is the cluster that the tests of this package share.
var local *cluster.Cluster

// root is the root of the repository.
const root = "../.."

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
		testCluster.Monitoring = started.URL
	})
}
