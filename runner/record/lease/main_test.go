package lease_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/runner/record"
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
		if err == nil {
			api = client
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: record.Namespace}}
			_, err = client.CoreV1().Namespaces().Create(context.Background(), namespace, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			fmt.Fprintln(os.Stderr, err)
		}
	}, cluster.ControlPlaneOnly())
}
