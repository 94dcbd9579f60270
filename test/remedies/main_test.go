// Package remedies_test answers: do the remedies that delete something end on the state for which they are reported?
//
// API server and controllers are real, and the commands are those of the findings.
package remedies_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/build"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

// server is the API server that the tests of this package share.
var server struct {
	config     *rest.Config
	kubeconfig string
	// programs is a directory with kubectl by the name oc.
	programs string
}

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) {
		root, err := build.Root()
		if err != nil {
			panic(err)
		}
		programs, err := os.MkdirTemp("", "remedies")
		if err != nil {
			panic(err)
		}
		if err := os.Symlink(filepath.Join(root, "bin", "kubectl"), filepath.Join(programs, "oc")); err != nil {
			panic(err)
		}
		server.config, server.kubeconfig, server.programs = c.Config, c.Kubeconfig, programs
	}, testcluster.ControlPlaneOnly())
}

// oc runs a command as a person does who copies it, and returns its output.
func oc(t *testing.T, command string) string {
	t.Helper()
	return ocIn(t.Context(), t, command)
}

func ocIn(ctx context.Context, t *testing.T, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Env = append(os.Environ(), "KUBECONFIG="+server.kubeconfig, "PATH="+server.programs+":"+os.Getenv("PATH"))
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	return string(output)
}

// apply creates or changes an object.
func apply(t *testing.T, manifest string) {
	t.Helper()
	oc(t, "oc apply -f - <<'END'\n"+strings.TrimSpace(manifest)+"\nEND")
}

// until waits until the output of a command has a text; empty for one without output.
func until(t *testing.T, command, text string) {
	t.Helper()
	await.Until(t, command+" has "+text, func(ctx context.Context) bool {
		output := strings.TrimSpace(ocIn(ctx, t, command))
		return text == "" && output == "" || text != "" && strings.Contains(output, text)
	})
}

// found is the finding of a check about the present state, by its name.
func found(t *testing.T, tested check.Check, name string) finding.Finding {
	t.Helper()
	api, err := cluster.Connect(server.config, "remedies")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := update.Parse("4.18.3", "4.18.4")
	if err != nil {
		t.Fatal(err)
	}
	subject := check.Subject{Cluster: snapshot.Of(api), Update: parsed, Now: time.Now().Add(time.Hour)}
	all := collector.Collect(t.Context(), collector.Bind(subject, []check.Check{tested}),
		func(collector.Source, []finding.Finding) {}).Findings
	for _, each := range all {
		if each.Name == name {
			return each
		}
	}
	t.Fatalf("no finding %s: %+v", name, all)
	return finding.Finding{}
}
