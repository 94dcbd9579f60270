package installation_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/bundle"
	"github.com/openshift/update-preflight/test/installation"
	"github.com/openshift/update-preflight/test/release"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/terminal"
)

// The bundle, installed as by OLM with variables of the Subscription: the API server accepts all objects, the controller is
// ready with the permissions of the bundle alone, and judges an offered update. After the removal by the page, the cluster is
// as before. It runs before the demo, whose remedies make the update Ready.
func TestBundle(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	var out bytes.Buffer
	defer func() { t.Logf("%s", &out) }()
	demo, err := terminal.New(&out, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	demo.Cluster, demo.Monitoring, demo.Preflight = local, monitoring, testCluster.Program(t)
	if err := demo.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	defer beLikeOpenShift(t)()
	before := inventory(t)

	opened := openBundle(ctx, t)
	if err := opened.Prepare(ctx, local.Config); err != nil {
		t.Fatal(err)
	}
	createServingCertificate(ctx, t, opened.Namespace())
	if err := opened.Install(ctx, local.Config); err != nil {
		t.Fatal(err)
	}
	testCluster.Kubectl(t, "rollout", "status", "-n", namespace, "deployment/update-preflight", "--timeout=5m")
	applyExample(t, opened)
	run, err := installation.AwaitRun(ctx, local, story.To, record.Ahead)
	log := testCluster.Kubectl(t, "logs", "-n", namespace, "deployment/update-preflight")
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if run.Decision != string(verdict.Blocked) {
		t.Errorf("the run is %s, want %s", run.Decision, verdict.Blocked)
	}
	if strings.Contains(log, "forbidden") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log of the controller has errors:\n%s", log)
	}
	testCluster.ExpectNothingLeft(t)
	expectPage(t)

	if err := opened.Remove(ctx, local.Config); err != nil {
		t.Fatal(err)
	}
	testCluster.Kubectl(t, "delete", "--ignore-not-found", "-f", filepath.Join(root, "manifests", "uninstall.yaml"))
	testCluster.Kubectl(t, "delete", "configmaps,leases", "-n", record.Namespace, "-l", record.Label)
	testCluster.Kubectl(t, "delete", "secret", "-n", record.Namespace, recordstore.KeySecret)
	if diff := cmp.Diff(before, inventory(t)); diff != "" {
		t.Errorf("objects (-before, +after):\n%s", diff)
	}
}

// beLikeOpenShift gives the cluster what the bundle expects of it, until undo: nodes of the control plane, and the mirror that
// pods reach.
func beLikeOpenShift(t *testing.T) (undo func()) {
	t.Helper()
	const label = "node-role.kubernetes.io/control-plane"
	testCluster.Kubectl(t, "label", "nodes", "--all", "--overwrite", label+"=")
	if err := installation.ConnectRegistry(t.Context(), local); err != nil {
		t.Fatal(err)
	}
	return func() { // no cleanup, which begins when the context of the test has ended
		testCluster.Kubectl(t, "label", "nodes", "--all", label+"-")
		testCluster.Kubectl(t, "delete", "imagedigestmirrorsets.config.openshift.io/local", "images.config.openshift.io/cluster")
	}
}

// openBundle makes the bundle of an image that it pushes, with the monitoring that pods reach.
func openBundle(ctx context.Context, t *testing.T) *installation.Bundle {
	t.Helper()
	image, err := installation.PushImage(ctx, &release.Binaries{}, local.Registry)
	if err != nil {
		t.Fatal(err)
	}
	made, err := bundle.Generate(bundle.Options{Manifests: filepath.Join(root, "manifests"), Version: "v0.0.1", Image: image})
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(t.TempDir(), "bundle")
	if err := made.Write(directory); err != nil {
		t.Fatal(err)
	}
	exposed, err := local.Expose(ctx, strings.TrimPrefix(monitoring, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := installation.OpenBundle(directory)
	if err != nil {
		t.Fatal(err)
	}
	opened.Environment = map[string]string{
		"PREFLIGHT_CONTROLLER_AHEAD_DELAY": "0s", "PREFLIGHT_CONTROLLER_PROMETHEUS": "http://" + exposed,
		"PREFLIGHT_CONTROLLER_PAGE_BIND_ADDRESS": ":9443", "PREFLIGHT_CONTROLLER_PAGE_CERT_DIR": "/etc/update-preflight/serving-cert",
	}
	return opened
}

// expectPage expects that the pod shows its page to users who may read UpdatePreflights, and to no others.
func expectPage(t *testing.T) {
	t.Helper()
	const reader = "page-reader"
	testCluster.Kubectl(t, "create", "serviceaccount", reader, "-n", namespace)
	testCluster.Kubectl(t, "create", "clusterrole", reader, "--verb=get", "--resource=updatepreflights.preflight.openshift.io")
	testCluster.Kubectl(t, "create", "clusterrolebinding", reader, "--clusterrole="+reader, "--serviceaccount="+namespace+":"+reader)
	address := testCluster.Kubectl(t, "get", "pod", "-n", namespace, "-l", "app=update-preflight", "-o", "jsonpath={.items[0].status.podIP}")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for name, tc := range map[string]struct {
		reason, token string
		status        int
		want          string
	}{
		"Reader": {
			"the permission is that of the API", testCluster.Kubectl(t, "create", "token", reader, "-n", namespace), http.StatusOK,
			"Do not update this cluster to " + story.To,
		},
		"Default": {
			"another account does not have it", testCluster.Kubectl(t, "create", "token", "default", "-n", namespace),
			http.StatusForbidden, "lack the permission",
		},
		"None": {"there is no user", "", http.StatusUnauthorized, "has no token"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+net.JoinHostPort(address, "9443"), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if tc.token != "" {
			request.SetBasicAuth("user", strings.TrimSpace(tc.token))
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != tc.status || !strings.Contains(string(text), tc.want) {
			t.Errorf("%s: %s: status %d, want %d and %q:\n%s", name, tc.reason, response.StatusCode, tc.status, tc.want, text)
		}
	}
	testCluster.Kubectl(t, "delete", "clusterrolebinding,clusterrole", reader)
}

// createServingCertificate creates the Secret that the service CA operator of OpenShift writes for the Service.
func createServingCertificate(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("update-preflight."+namespace+".svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = testCluster.Client(t).CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "update-preflight-serving-cert"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// applyExample expects that the API server accepts the example of the console.
func applyExample(t *testing.T, of *installation.Bundle) {
	t.Helper()
	example, err := of.Example()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "example.json")
	if err := os.WriteFile(file, example, 0o600); err != nil {
		t.Fatal(err)
	}
	testCluster.Kubectl(t, "apply", "--dry-run=server", "-f", file)
}
