package jobs_test

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
)

var (
	api    kubernetes.Interface
	config *rest.Config
	// objects is the client for the metadata of objects.
	objects metadata.Interface
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) {
		config = rest.CopyConfig(c.Config)
		config.QPS = -1
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		if objects, err = metadata.NewForConfig(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		api = client
	}, cluster.ControlPlaneOnly())
}
