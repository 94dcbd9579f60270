package cluster_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/cluster"
)

func clients(t *testing.T, c *cluster.Cluster) kubernetes.Interface {
	t.Helper()
	made, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// allowReading grants the pods of the default namespace read access to it.
func allowReading(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	_, err := clients(t, c).RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: "default"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// runPod runs the reader, and returns when it has ended or, if it is to hold, when
// it is running.
func runPod(t *testing.T, c *cluster.Cluster, name string, args ...string) {
	t.Helper()
	pods := clients(t, c).CoreV1().Pods("default")
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "reader", Image: pushReader(t, c), Args: args}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wanted := corev1.PodSucceeded
	if args[0] == "hold" {
		wanted = corev1.PodRunning
	}
	events, err := pods.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if ok && pod.Status.Phase == wanted {
			return
		}
	}
	t.Fatalf("pod %s did not become %s", name, wanted)
}

func podLog(t *testing.T, c *cluster.Cluster, name string) string {
	t.Helper()
	log, err := clients(t, c).CoreV1().Pods("default").GetLogs(name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

// pushReader pushes an image that has only the reader.
func pushReader(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "reader")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/reader")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return archive(program) })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.Config.Entrypoint = []string{"/reader"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(c.Registry + "/reader:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, image); err != nil {
		t.Fatal(err)
	}
	return reference.String()
}

func archive(program string) (io.ReadCloser, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	writer := tar.NewWriter(&files)
	if err := writer.WriteHeader(&tar.Header{Name: "reader", Mode: 0o755, Size: int64(len(data))}); err != nil {
		return nil, err
	}
	if _, err := writer.Write(data); err != nil {
		return nil, err
	}
	return io.NopCloser(&files), writer.Close()
}

// createsClusterVersion expects that the object is stored as sent.
func createsClusterVersion(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	config, err := configclient.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	version := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "0c6cbbe9-3a1f-4b5c-9d1e-7a3b6a1c2d3e", Channel: "stable-4.21"},
	}
	created, err := config.ConfigV1().ClusterVersions().Create(t.Context(), version, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.Spec.Channel != version.Spec.Channel {
		t.Errorf("stored channel: want %q, got %q", version.Spec.Channel, created.Spec.Channel)
	}
}

// forbidsByDefault expects that a ServiceAccount without bindings has no rights.
func forbidsByDefault(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = "system:serviceaccount:default:default"
	stranger, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("want secrets forbidden to a ServiceAccount without rights, got %v", err)
	}
}
