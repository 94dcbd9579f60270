// Package deadlock_test answers: are the predictions of the preflight about webhooks and
// policies correct when nodes are drained?
//
// API server, controllers and scheduler are real, and kubectl drains the nodes. The
// kubelets are simulated. The test process is the webhook, at the cluster IP of its
// Service, which is an address of the loopback interface: no process needs privileges.
// It responds only while the Service has a ready endpoint, since the API server of OpenShift
// resolves a Service to its endpoints.
package deadlock_test

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/test/build"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

// server is the cluster that the tests of this package share.
var server struct {
	*cluster.Cluster

	config     *rest.Config
	kubeconfig string
	kubectl    string
}

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) {
		connected, err := cluster.Connect(c.Config, "deadlock")
		if err != nil {
			panic(err)
		}
		root, err := build.Root()
		if err != nil {
			panic(err)
		}
		server.Cluster, server.config, server.kubeconfig = connected, c.Config, c.Kubeconfig
		server.kubectl = filepath.Join(root, "bin", "kubectl")
	}, testcluster.KWOK(3))
}
