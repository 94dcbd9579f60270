package gate_test

import (
	"context"
	"log"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
)

// config reaches the API server that the tests of this package share.
var config *rest.Config

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) {
		config = c.Config
		if err := createNamespaces(); err != nil {
			log.Fatal(err)
		}
	}, cluster.ControlPlaneOnly())
}

func createNamespaces() error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, name := range []string{"openshift-config", "openshift-config-managed", "openshift-cluster-version"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().Namespaces().Create(context.Background(), namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
