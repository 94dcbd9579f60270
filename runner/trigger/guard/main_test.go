package guard_test

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/test/cluster"
)

// config is that of the API server that the tests of this package share, in turns.
var config *rest.Config

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { config = c.Config }, cluster.ControlPlaneOnly(),
		cluster.FeatureSet("TechPreviewNoUpgrade"), cluster.CRDs("testdata/prometheusrules.crd.yaml"))
}

var start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// at returns a clock with a constant time.
func at(now time.Time) func() time.Time { return func() time.Time { return now } }

func client() dynamic.Interface { return dynamic.NewForConfigOrDie(config) }

func openshift() configclient.Interface { return configclient.NewForConfigOrDie(config) }

// digest is a digest of one digit.
func digest(digit string) string {
	text := "sha256:"
	for range 64 {
		text += digit
	}
	return text
}

// verdict is valid for a day.
func verdict(digit, version, decision string) guard.Verdict {
	return guard.Verdict{Digest: digest(digit), Version: version, Decision: decision, ValidUntil: start.Add(24 * time.Hour)}
}

func chosen(v guard.Verdict) guard.Verdict {
	v.Chosen = true
	return v
}

// createNamespace creates the namespace of the objects.
func createNamespace(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownsignal.Namespace}}
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// apply applies a switch, and removes it at the end of the test.
func apply(t *testing.T, s *guard.Switch, verdicts ...guard.Verdict) {
	t.Helper()
	createNamespace(t)
	if err := s.Apply(t.Context(), guard.State{Verdicts: verdicts}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// image is the pull spec of a release.
func image(digit string) string { return "quay.io/openshift-release-dev/ocp-release@" + digest(digit) }

// clusterVersion configures a cluster that runs 4.18.3 and has these updates, and whose
// spec requests the update.
func clusterVersion(t *testing.T, requested *configv1.Update, available ...configv1.Release) {
	t.Helper()
	versions := openshift().ConfigV1().ClusterVersions()
	present, err := versions.Get(t.Context(), "version", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		present, err = versions.Create(t.Context(), &configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	status := func(image string, available []configv1.Release) {
		present.Status = configv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: "4.18.3", Image: image}, VersionHash: "0", AvailableUpdates: available,
		}
		if present, err = versions.UpdateStatus(t.Context(), present, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if requested != nil { // a request for the running release is always allowed
		running := requested.Image
		if running == "" {
			running = image("f")
		}
		status(running, []configv1.Release{{Version: requested.Version, Image: running}})
	}
	present.Spec.DesiredUpdate = requested
	if present, err = versions.Update(t.Context(), present, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	status(image("a"), available)
}
