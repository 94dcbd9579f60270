// Package hosted_test answers: does oc-preflight judge a hosted cluster from both of its sides, on two
// real clusters?
package hosted_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/terminal"
)

// guest is the cluster of the nodes. Its management cluster is started by [startWorld].
var guest *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { guest = c })
}

// world is a hosted cluster: its guest, and a terminal of its management cluster.
type world struct {
	*terminal.Terminal

	out *bytes.Buffer
}

// startWorld starts the management cluster with simulated nodes, and creates the objects of the story.
func startWorld(t *testing.T) world {
	t.Helper()
	w := world{out: &bytes.Buffer{}}
	var err error
	if w.Terminal, err = terminal.New(w.out, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	const nodes = 3
	w.Cluster, err = cluster.Start(t.Context(), filepath.Join(w.Directory, "management"), cluster.ControlPlaneOnly(), cluster.KWOK(nodes))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Cluster.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	monitoring, err := prometheus.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(monitoring.Stop)
	w.Monitoring = monitoring.URL
	if w.Preflight, err = build.Compile(t.Context(), "cmd/oc-preflight"); err != nil {
		t.Fatal(err)
	}
	if err := story.PrepareHosted(t.Context(), guest, w.Cluster, w.Directory, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return w
}

// call runs oc-preflight with a kubeconfig.
func (w world) call(t *testing.T, kubeconfig string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	program := exec.CommandContext(t.Context(), w.Preflight, append(args, "--kubeconfig", kubeconfig)...)
	var out, errOut bytes.Buffer
	program.Stdout, program.Stderr = &out, &errOut
	if err := program.Run(); err != nil && program.ProcessState == nil {
		t.Fatal(err)
	}
	return program.ProcessState.ExitCode(), out.String(), errOut.String()
}
