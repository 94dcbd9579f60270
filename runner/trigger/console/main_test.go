package console_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	consolev1 "github.com/openshift/api/console/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/trigger/console"
	testcluster "github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/prometheus"
)

// config is that of the API server that the tests of this package share, in turns, and queried their Prometheus.
var (
	config  *rest.Config
	queried prometheus.Shared
)

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) {
		config = rest.CopyConfig(c.Config)
		config.QPS = -1
	}, testcluster.ControlPlaneOnly(), testcluster.Console(),
		testcluster.CRDs("../../../manifests/crd/preflight.openshift.io_updatepreflights.yaml"))
}

const (
	consoleURL = "https://console.example.com"
	page       = consoleURL + "/k8s/cluster/preflight.openshift.io~v1alpha1~UpdatePreflight"
)

// kinds are the resources of the objects.
func kinds() map[string]schema.GroupVersionResource {
	group := consolev1.GroupVersion
	return map[string]schema.GroupVersionResource{
		"ConsoleLink": group.WithResource("consolelinks"), "ConsoleNotification": group.WithResource("consolenotifications"),
		"ConsoleCLIDownload": group.WithResource("consoleclidownloads"), "ConfigMap": corev1.SchemeGroupVersion.WithResource("configmaps"),
	}
}

// object are the objects of a kind, and the name of the one.
func object(kind string) (dynamic.ResourceInterface, string) {
	resources := dynamic.NewForConfigOrDie(config).Resource(kinds()[kind])
	if kind == "ConfigMap" {
		return resources.Namespace(console.Namespace), console.Dashboard
	}
	return resources, console.Name
}

// read reads an object into a type of openshift/api that has all of its fields, and reports whether it exists.
func read(ctx context.Context, t *testing.T, kind string, into any) bool {
	t.Helper()
	resources, name := object(kind)
	found, err := resources.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(found.Object, into, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// newWorld is a console with this URL; empty for no console. Nothing is left at the end of the test.
func newWorld(t *testing.T, url string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(config, "test")
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: console.Namespace}}
	if _, err := c.Kubernetes.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	consoles := c.Dynamic.Resource(schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "consoles"})
	clean := func(ctx context.Context) {
		for kind := range kinds() {
			resources, name := object(kind)
			if err := resources.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
		if err := consoles.Delete(ctx, "cluster", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	clean(t.Context())
	t.Cleanup(func() { clean(context.WithoutCancel(t.Context())) })
	setURL(t, c, url)
	return c
}

// setURL replaces the URL of the console; empty for no console.
func setURL(t *testing.T, c *cluster.Cluster, url string) {
	t.Helper()
	consoles := c.Dynamic.Resource(schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "consoles"})
	if err := consoles.Delete(t.Context(), "cluster", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if url == "" {
		return
	}
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "Console", "metadata": map[string]any{"name": "cluster"}, "spec": map[string]any{},
	}}
	made, err := consoles.Create(t.Context(), made, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Object["status"] = map[string]any{"consoleURL": url}
	if _, err := consoles.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// create creates the object of a kind as another client.
func create(t *testing.T, kind, name string, content any) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(content)
	if err != nil {
		t.Fatal(err)
	}
	made := &unstructured.Unstructured{Object: fields}
	made.SetGroupVersionKind(kinds()[kind].GroupVersion().WithKind(kind))
	made.SetName(name)
	resources, _ := object(kind)
	made, err = resources.Create(t.Context(), made, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// newKeeper logs to the text.
func newKeeper(t *testing.T, c *cluster.Cluster, downloads, version string, log *text) *console.Keeper {
	t.Helper()
	made, err := console.New(c, downloads, version, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// text is a log.
type text struct {
	mutex sync.Mutex
	all   strings.Builder
}

// Write implements io.Writer.
func (t *text) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.all.Write(p)
}

// String implements fmt.Stringer.
func (t *text) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.all.String()
}
