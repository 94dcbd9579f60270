package cluster_test

import (
	"context"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/cluster"
)

// TestShared holds that a shared control plane has one user at a time, and that a user
// finds nothing that the one before has created, changed or deleted.
func TestShared(t *testing.T) {
	const featureSet = "TechPreviewNoUpgrade"
	shared, err := cluster.Share(t.Context(), t.TempDir(), featureSet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	variable, value, _ := strings.Cut(shared.Environment(), "=")
	t.Setenv(variable, value)

	preview := cluster.FeatureSet(featureSet)
	first, giveBack := borrow(t, preview)
	if first == nil {
		t.Fatal("the control plane is free and must be lent")
	}
	if second, _ := borrow(t, preview); second != nil {
		t.Fatal("the control plane is in use and must not be lent")
	}
	change(t, first)
	if err := giveBack(); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]cluster.Option{
		"another feature set": nil, "simulated nodes": {preview, cluster.KWOK(1)}, "another rate": {preview, cluster.ControllerRate(1, 1)},
		"components that end": {preview, cluster.Exclusive()},
	} {
		if other, _ := borrow(t, options...); other != nil {
			t.Errorf("a control plane with %s must not be a shared one", name)
		}
	}

	again, giveBack := borrow(t, preview)
	if again == nil || again.Dir != first.Dir {
		t.Fatal("the control plane is free again and must be lent")
	}
	expectUnchanged(t, again)
	expectRestored(t, again)
	if err := giveBack(); err != nil {
		t.Fatal(err)
	}
}

// expectRestored verifies that a process restores a snapshot of its control plane, also a second time.
func expectRestored(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if _, err := clients(t, c).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	snapshot, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		change(t, c)
		if err := snapshot.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		expectUnchanged(t, c)
	}
	if _, err := clients(t, c).CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("an object of the snapshot must be kept: %v", err)
	}
}

func borrow(t *testing.T, options ...cluster.Option) (c *cluster.Cluster, giveBack func() error) {
	t.Helper()
	c, giveBack, err := cluster.Borrow(t.Context(), append(options, cluster.ControlPlaneOnly())...)
	if err != nil {
		t.Fatal(err)
	}
	return c, giveBack
}

// change creates a namespace with an object and a custom resource, changes an object, and
// deletes the definition of another custom resource.
func change(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	core := clients(t, c).CoreV1()
	if _, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "left"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.ConfigMaps("left").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "left"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := openshiftClient(t, c).ConfigV1().Images().Create(t.Context(), &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: "left"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := []byte(`{"metadata":{"labels":{"changed":"true"}}}`)
	if _, err := core.Namespaces().Patch(t.Context(), "default", "application/merge-patch+json", labels, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	served := definitions(t, c).ApiextensionsV1().CustomResourceDefinitions()
	if err := served.Delete(t.Context(), "proxies.config.openshift.io", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Its controller deletes the objects first: one that is restored meanwhile is deleted with them.
	await.Until(t, "the definition is gone", func(ctx context.Context) bool {
		_, err := served.Get(ctx, "proxies.config.openshift.io", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// expectUnchanged verifies that nothing is left of change.
func expectUnchanged(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	core := clients(t, c).CoreV1()
	if _, err := core.Namespaces().Get(t.Context(), "left", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a created namespace must be gone, got %v", err)
	}
	if _, err := core.ConfigMaps("left").Get(t.Context(), "left", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a created object must be gone, got %v", err)
	}
	if _, err := openshiftClient(t, c).ConfigV1().Images().Get(t.Context(), "left", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a created custom resource must be gone, got %v", err)
	}
	if found, err := core.Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil || found.Labels["changed"] != "" {
		t.Errorf("a changed object must be as before, got the labels %v, %v", found.Labels, err)
	}
	if _, err := openshiftClient(t, c).ConfigV1().Proxies().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a deleted definition must be served again: %v", err)
	}
}

func openshiftClient(t *testing.T, c *cluster.Cluster) configclient.Interface {
	t.Helper()
	made, err := configclient.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func definitions(t *testing.T, c *cluster.Cluster) apiextensionsclient.Interface {
	t.Helper()
	made, err := apiextensionsclient.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}
