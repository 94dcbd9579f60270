package installation_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	collected "github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/script"
	"github.com/openshift/update-preflight/test/story/terminal"
)

// timeout is the time limit of a test.
const timeout = 10 * time.Minute

// The API server accepts every object, restricted pod security admits the pod, and one
// command uninstalls everything, including the objects of the switches and what is published.
func TestInstallAndUninstall(t *testing.T) {
	testCluster.Offer(t, map[string]string{}) // the namespaces of OpenShift
	for name, tc := range map[string]struct {
		reason, directory, uninstall string
		switches                     []*guard.Switch
		// console is true where the web console exists.
		console bool
	}{
		"OpenShift": {
			reason: "all objects", directory: "manifests", uninstall: "manifests/uninstall.yaml", switches: switches(t), console: true,
		},
		"Kubernetes": {
			reason: "without monitoring", directory: "manifests/kubernetes", uninstall: "manifests/kubernetes/uninstall.yaml",
			switches: switches(t)[1:],
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := inventory(t)
			applied := testCluster.Kubectl(t, "apply", "-k", filepath.Join(root, tc.directory))
			if strings.Contains(applied, "Warning") {
				t.Errorf("%s: the API server warns:\n%s", tc.reason, applied)
			}
			testCluster.Kubectl(t, "wait", "-n", namespace, "--for=create", "pod", "-l", "app=update-preflight", "--timeout=5m")
			for _, each := range tc.switches {
				if err := each.Apply(t.Context(), guard.State{}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := published.Apply(t.Context(), testCluster.Client(t), nil, "", time.Now()); err != nil {
				t.Fatal(err)
			}
			if tc.console {
				showInConsole(t)
			}
			testCluster.Kubectl(t, "delete", "--ignore-not-found", "-f", filepath.Join(root, tc.uninstall))
			if diff := cmp.Diff(before, inventory(t)); diff != "" {
				t.Errorf("%s: objects (-before, +after):\n%s", tc.reason, diff)
			}
		})
	}
}

// showInConsole creates the objects for the web console.
func showInConsole(t *testing.T) {
	t.Helper()
	reached, err := collected.Connect(local.Config, "test")
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := console.New(reached, "https://mirror.example.com", "v1.0.0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Apply(t.Context(), []console.Notice{{Text: "a notice", Until: reached.Now().Add(time.Hour)}}); err != nil {
		t.Fatal(err)
	}
}

// switches returns all switches, that of the alerts first.
func switches(t *testing.T) []*guard.Switch {
	t.Helper()
	client, err := dynamic.NewForConfig(local.Config)
	if err != nil {
		t.Fatal(err)
	}
	admission, err := guard.Admission(client, guard.Deny, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return []*guard.Switch{guard.Alert(client), guard.ClusterOperator(client, "0.0.1", time.Now), admission}
}

// inventory returns the names of all objects of the cluster, except for short-lived ones.
func inventory(t *testing.T) []string {
	t.Helper()
	found, err := discovery.NewDiscoveryClientForConfigOrDie(local.Config).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(local.Config)
	config.WarningHandlerWithContext = rest.NoWarnings{} // of the deprecated API Endpoints
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, list := range found {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			shortLived := slices.Contains([]string{"events", "leases", "componentstatuses"}, resource.Name)
			if shortLived || !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "delete") {
				continue
			}
			objects, err := client.Resource(group.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("list %s: %v", resource.Name, err)
			}
			for _, object := range objects.Items {
				all = append(all, strings.Join([]string{group.Group, resource.Name, object.Namespace, object.Name}, "/"))
			}
		}
	}
	slices.Sort(all)
	return all
}

// The demo of the controller, as in `make controller-demo` without switches: in its pod, with
// only the permissions of its ServiceAccount, it checks an offered release that is Blocked,
// and the selected one that is Ready after the remedies. After the uninstallation its records
// remain; the further commands of the README delete them.
func TestControllerDemo(t *testing.T) {
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
	controller, err := script.NewController(ctx, demo)
	if err != nil {
		t.Fatal(err)
	}
	before := inventory(t)
	if err := controller.Update(ctx); err != nil {
		t.Fatal(err)
	}
	log := testCluster.Kubectl(t, "logs", "-n", namespace, "deployment/update-preflight")
	if strings.Contains(log, "forbidden") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log of the controller has errors:\n%s", log)
	}
	testCluster.ExpectNothingLeft(t)
	if err := controller.Uninstall(ctx); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Verdict: Blocked", "kubectl apply -k", "Verdict: Ready", "kubectl delete --ignore-not-found -f"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q", want)
		}
	}
	records, err := recordstore.New(testCluster.Client(t)).List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []verdict.Decision{verdict.Blocked, verdict.Ready} {
		if !slices.ContainsFunc(records, func(run record.Record) bool { return run.Target.Version == story.To && run.Decision == string(want) }) {
			t.Errorf("after the uninstallation no record is %s: %+v", want, records)
		}
	}
	testCluster.Kubectl(t, "delete", "configmaps,leases", "-n", record.Namespace, "-l", record.Label)
	testCluster.Kubectl(t, "delete", "secret", "-n", record.Namespace, recordstore.KeySecret)
	after := slices.DeleteFunc(inventory(t), func(object string) bool { return object == "/secrets/openshift-ingress/"+story.NewCertificate })
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("objects without the certificate of the remedies (-before, +after):\n%s", diff)
	}
}
