package archive_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/cluster"
)

// A dump of HyperShift is two clusters, and the directory of another guest is neither.
func TestOpenHosted(t *testing.T) {
	t.Parallel()
	versions := "cluster-scoped-resources/config.openshift.io/clusterversions.yaml"
	of := func(id string) string {
		return "apiVersion: config.openshift.io/v1\nkind: ClusterVersionList\nitems:\n- apiVersion: config.openshift.io/v1\n  kind: " +
			"ClusterVersion\n  metadata: {name: version}\n  spec: {clusterID: " + id + "}\n"
	}
	dir := write(t, tree(map[string]string{
		versions: of("management"), "hostedcluster-x/" + versions: of("x"), "hostedcluster-xy/" + versions: of("xy"),
		"namespaces/clusters/hypershift.openshift.io/hostedclusters.yaml": "apiVersion: hypershift.openshift.io/v1beta1\nkind: " +
			"HostedClusterList\nitems:\n- apiVersion: hypershift.openshift.io/v1beta1\n  kind: HostedCluster\n  metadata: {name: x, " +
			"namespace: clusters}\n",
	}))
	id := func(opened *archive.Archive) string {
		t.Helper()
		reached, err := cluster.Connect(opened.Config(), "archive_test")
		if err != nil {
			t.Fatal(err)
		}
		version, err := reached.OpenShift.ConfigV1().ClusterVersions().Get(t.Context(), "version", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(version.Spec.ClusterID)
	}
	management, guest, err := archive.OpenHosted(t.Context(), "x", dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := id(management) + " " + id(guest); got != "management x" {
		t.Errorf("the sides are %s", got)
	}
	if _, guest, err := archive.OpenHosted(t.Context(), "missing", dir); err != nil || guest != nil {
		t.Errorf("a guest that the dump does not have: %v, %v", guest, err)
	}
	only := write(t, tree(map[string]string{"hostedcluster-x/" + versions: of("x")}))
	if _, _, err := archive.OpenHosted(t.Context(), "x", only); err == nil || !strings.Contains(err.Error(), "no management cluster") {
		t.Errorf("a dump without a management cluster: %v", err)
	}
}
