package newcomer_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// newRepository returns a directory with the modules of this repository, which
// include client-go, and the files of the README without those that require it.
func newRepository(t *testing.T) workspace {
	t.Helper()
	w := workspace{dir: t.TempDir(), environment: append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")}
	source, err := filepath.Abs("../../preflight-sdk")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		w.write(t, file, string(text))
	}
	w.mustRun(t, "go mod edit -replace="+sdk+"="+source)
	w.writeFiles(t, slices.DeleteFunc(readme(t), block.isInRepository))
	return w
}

// onServer tests the check of the README on a real API server with a cordoned node.
const onServer = `package main

import (
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/preflight-sdk/preflighttest"
)

func TestOnServer(t *testing.T) {
	preflighttest.Expect(t, preflighttest.Run(t, cordoned(connect), preflight.Update{}),
		preflighttest.Want{Outcome: preflight.Warn, Message: "worker-1", Remedy: "oc adm uncordon worker-1"})
}
`

// TestRepository follows the section with client-go: the check compiles, passes its
// tests, gets its role, and reads from a real API server.
func TestRepository(t *testing.T) {
	w := newRepository(t)
	w.mustRun(t, "UPDATE_GOLDEN=1 go test . && go test .")

	blocks := slices.DeleteFunc(readme(t), func(b block) bool { return !b.isInRepository() })
	w.writeFiles(t, blocks)
	if output, ok := w.run(t, "go test ."); ok || !strings.Contains(output, manifest) {
		t.Errorf("the manifest does not grant the rule of the check that was added to main: want a failure, got\n%s", output)
	}
	w.follow(t, blocks)
	for _, part := range []string{"kind: ClusterRole\n", `resources: ["nodes"]`} {
		if !strings.Contains(w.read(t, manifest), part) {
			t.Errorf("the manifest does not contain %q:\n%s", part, w.read(t, manifest))
		}
	}
	w.expectPrintedManifest(t)

	w.mustRun(t, "go vet . && go build -o preflight .")
	preflight := "./preflight --run CordonedNodes"
	w.environment = append(w.environment, "KUBECONFIG="+filepath.Join(w.dir, "missing"))
	if output, ok := w.run(t, preflight); ok ||
		!strings.Contains(output, "? CordonedNodes: Unknown: cannot load the configuration of the cluster: ") {
		t.Errorf("without a cluster: want an inconclusive check, got\n%s", output)
	}
	w.environment = append(w.environment, "KUBECONFIG="+local.Kubeconfig)
	if output := w.mustRun(t, preflight); output != "✓ CordonedNodes: Pass: No node is cordoned\n1 Pass\n" {
		t.Errorf("without a cordoned node: got\n%s", output)
	}
	cordon(t, "worker-1")
	output := w.mustRun(t, preflight)
	if !strings.Contains(output, "‼ CordonedNodes: Warn: node worker-1 is cordoned") ||
		!strings.Contains(output, "\n    $ oc adm uncordon worker-1\n") {
		t.Errorf("with a cordoned node: got\n%s", output)
	}
	w.write(t, "server_test.go", onServer)
	w.mustRun(t, "go test -run TestOnServer .")
}

// cordon creates a cordoned node for the duration of the test.
func cordon(t *testing.T, name string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(local.Config)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
