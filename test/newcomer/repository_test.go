package newcomer_test

import (
	"context"
	"os"
	"path/filepath"
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

// newDeveloper is somebody with the repository of an operator, which has the
// same modules as ours, and what the README says about asking the cluster.
func newDeveloper(t *testing.T) newcomer {
	t.Helper()
	n := newcomer{dir: t.TempDir(), environment: append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")}
	source, err := filepath.Abs("../../preflight-sdk")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		n.write(t, file, string(text))
	}
	n.try(t, "go mod edit -replace="+sdk+"="+source)
	for _, b := range readme(t) {
		switch {
		case b.file == "main.go":
			n.write(t, b.file, strings.ReplaceAll(b.text, "storageVersion()", "cordoned(connect)"))
		case b.file != "" && b.section == inRepository:
			n.write(t, b.file, b.text)
		}
	}
	return n
}

// onServer is the test of the README on a real API server, with a node that is
// cordoned.
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

// What the README says about client-go compiles, passes its own test, and
// asks a real API server.
func TestAskingTheCluster(t *testing.T) {
	n := newDeveloper(t)
	n.try(t, "go vet . && go test . && go build -o preflight .")

	n.environment = append(n.environment, "KUBECONFIG="+filepath.Join(n.dir, "absent"))
	if output, ok := n.run(t, "./preflight"); ok || !strings.Contains(output, "? CordonedNodes: Unknown: cannot find the cluster: ") {
		t.Errorf("without a cluster: want that it could not tell, got\n%s", output)
	}
	n.environment = append(n.environment, "KUBECONFIG="+local.Kubeconfig)
	if output := n.try(t, "./preflight"); output != "✓ CordonedNodes: Pass: No node is cordoned\n1 Pass\n" {
		t.Errorf("without a cordoned node: got\n%s", output)
	}
	cordon(t, "worker-1")
	output := n.try(t, "./preflight")
	if !strings.Contains(output, "‼ CordonedNodes: Warn: node worker-1 is cordoned") || !strings.Contains(output, "\n    oc adm uncordon worker-1\n") {
		t.Errorf("with a cordoned node: got\n%s", output)
	}
	n.write(t, "server_test.go", onServer)
	n.try(t, "go test -run TestOnServer .")
}

// cordon makes a cordoned node for the time of the test.
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
