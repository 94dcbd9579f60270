package launch_test

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/test/cluster"
)

var (
	api    kubernetes.Interface
	config *rest.Config
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
		api = client
	}, cluster.ControlPlaneOnly())
}

// newLauncher returns a Launcher with the clients of a configuration.
func newLauncher(t *testing.T, config *rest.Config) *launch.Launcher {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return launch.New(client, objects)
}
