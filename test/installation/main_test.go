package installation_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

const (
	root      = "../.."
	namespace = "openshift-update-preflight"
)

// testCluster builds the programs for the cluster of the tests; monitoring is the URL of its
// Prometheus.
var (
	local       *cluster.Cluster
	testCluster *zoo.Zoo
	monitoring  string
)

func TestMain(m *testing.M) {
	olm, err := moduleFile("github.com/operator-framework/api", "crds/operators.coreos.com_clusterserviceversions.yaml")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cluster.Main(m, func(c *cluster.Cluster) {
		local, testCluster = c, zoo.At(c)
		if err := prepare(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}, cluster.CRDs(olm, "testdata/servicemonitors.crd.yaml", root+"/runner/trigger/guard/testdata/prometheusrules.crd.yaml"),
		cluster.Console())
}

// moduleFile is the path of a file of a module.
func moduleFile(module, file string) (string, error) {
	directory, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output() //nolint:noctx // a local command that ends
	if err != nil {
		return "", fmt.Errorf("module %s: %w", module, err)
	}
	return filepath.Join(strings.TrimSpace(string(directory)), file), nil
}

// prepare starts a Prometheus, and creates a PriorityClass that every OpenShift cluster has.
func prepare(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(local.Config)
	if err != nil {
		return err
	}
	_, err = client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "openshift-user-critical"}, Value: 1_000_000_000,
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	files, err := os.MkdirTemp(local.Dir, "prometheus-")
	if err != nil {
		return err
	}
	started, err := prometheus.Start(ctx, files)
	if err != nil {
		return err
	}
	monitoring = started.URL
	return nil
}
