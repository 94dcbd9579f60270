// Package commands_test answers: what does each command do, and with which permissions, where
// that does not depend on what happens in a pod?
//
// The program is called as a user calls it, in the process of the tests, on real API servers
// without nodes, with signed releases in a registry and a real Prometheus. The pods of checks
// exist, and the tests end them; for the logs of pods they serve the API of a kubelet. Checks
// that run in pods are tested by test/e2e.
//
// The stories of the enhancements:
//
//   - accepted-risks: acceptedrisks_test.go, targets_test.go, monitoring_test.go
//   - upgrades-blocking-on-ack: adminack_test.go
//   - eus-upgrades-mvp: retarget_test.go, skew_test.go, removal_test.go
//   - managed-upgrade-operator-design: managed_test.go
//   - preflight-checks-for-operators: TestDemo in test/e2e
package commands_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/zoo"
)

// root is the root of the repository.
const root = "../.."

var (
	// byDefault has the CRDs of the default feature set, techPreview those of the feature set
	// in which ClusterVersion has accepted risks.
	byDefault, techPreview plane
	// testCluster builds the releases of checks, for the first of these.
	testCluster *zoo.Zoo
	// monitoring is that of both.
	monitoring prometheus.Shared
)

func TestMain(m *testing.M) {
	noAlerts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"alerts":[]}}`)
	}))
	optional := cluster.CRDs(
		root+"/collector/gate/testdata/clusterserviceversions.crd.yaml", root+"/collector/health/testdata/upgradeconfigs.crd.yaml",
	)
	cluster.MainWith(m,
		cluster.Wanted{
			Use: func(c *cluster.Cluster) {
				byDefault.Cluster, testCluster = c, zoo.WithoutContainers(c)
				testCluster.Monitoring = noAlerts.URL
			},
			Options: []cluster.Option{cluster.ControlPlaneOnly(), optional},
			Done:    monitoring.Stop,
		},
		cluster.Wanted{
			Use:     func(c *cluster.Cluster) { techPreview.Cluster = c },
			Options: []cluster.Option{cluster.ControlPlaneOnly(), optional, cluster.FeatureSet("TechPreviewNoUpgrade")},
		},
	)
}

// plane is an API server that each test finds in the same state.
type plane struct {
	*cluster.Cluster

	// furnished is the state; nil until the first test.
	furnished *cluster.Snapshot
}

// use has the program reach the API server, and restores its state at the end of the test.
func (p *plane) use(tb testing.TB) {
	tb.Helper()
	if p.furnished == nil {
		p.furnish(tb)
	}
	tb.Cleanup(func() {
		if err := p.furnished.Restore(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	tb.Setenv("KUBECONFIG", p.Kubeconfig)
}

// furnish creates the namespaces of a cluster, whose objects by controllers then exist.
func (p *plane) furnish(tb testing.TB) {
	tb.Helper()
	core := kubernetes.NewForConfigOrDie(p.Config)
	namespaces := append(openshift.Namespaces(), zooNamespace)
	for _, name := range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := core.CoreV1().Namespaces().Create(tb.Context(), namespace, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			tb.Fatal(err)
		}
	}
	await.Until(tb, "the objects of namespaces, and the rules of aggregated roles", func(ctx context.Context) bool {
		for _, name := range namespaces {
			if _, err := core.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{}); err != nil {
				return false
			}
			if _, err := core.CoreV1().ConfigMaps(name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
				return false
			}
		}
		viewer, err := core.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{})
		return err == nil && len(viewer.Rules) > 0
	})
	var err error
	if p.furnished, err = p.Snapshot(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}
