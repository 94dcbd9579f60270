package hostedruns_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/hostedruns"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/test/await"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

// config is that of the API server of a management cluster.
var config *rest.Config

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) { config = c.Config }, testcluster.ControlPlaneOnly(), testcluster.CRDs(
		"../../../collector/hosted/testdata/hostedclusters.crd.yaml", "../../../collector/hosted/testdata/nodepools.crd.yaml",
		"../../../manifests/crd/preflight.openshift.io_updatepreflights.yaml"))
}

func digest(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func pullSpec(digit string) string { return "quay.io/release@" + digest(digit) }

// world is a management cluster, with its fleet.
type world struct {
	t          *testing.T
	client     client.Client
	management *cluster.Cluster

	mutex sync.Mutex
	// began are the runs in the order of their beginning, as NAME VERSION, and running how many are in
	// progress of each hosted cluster; most is the most that were in total.
	began   []string
	running map[string]int
	most    int
	// decide is the result of a run.
	decide func(ctx context.Context, name, version string) (report.Report, error)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, running: map[string]int{},
		decide: func(context.Context, string, string) (report.Report, error) { return decided(verdict.Ready), nil },
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if w.management, err = cluster.Connect(config, "test"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := w.hostedClusters().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if err := w.client.DeleteAllOf(ctx, &v1alpha1.UpdatePreflight{}); err != nil {
			t.Error(err)
		}
		if _, err := hostedguard.Uninstall(ctx, w.management.Dynamic); err != nil {
			t.Error(err)
		}
	})
	return w
}

// decided is a report of a run that ends now.
func decided(decision verdict.Decision, names ...string) report.Report {
	now := time.Now().UTC()
	made := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run: report.Run{ID: "run-1", CompletionTime: now.Format(time.RFC3339), Phase: report.PhaseComplete},
	}
	made.Verdict.Decision, made.Verdict.ValidUntil = decision, now.Add(12*time.Hour).Format(time.RFC3339)
	if decision == verdict.Blocked {
		made.Verdict.Blocking = names
	} else {
		made.Verdict.Undecided = names
	}
	return made
}

// create creates a hosted cluster at 4.18.3 (a) that is offered 4.18.4 (4) and 4.19.0 (9).
func (w *world) create(name string) {
	w.t.Helper()
	h := &hypershift.HostedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: hypershift.GroupVersion().String(), Kind: "HostedCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name},
	}
	h.Spec.Release.Image = pullSpec("a")
	h.Status.Version = &hypershift.VersionStatus{
		Desired:          configv1.Release{Version: "4.18.3", Image: pullSpec("a")},
		AvailableUpdates: []configv1.Release{{Version: "4.18.4", Image: pullSpec("4")}, {Version: "4.19.0", Image: pullSpec("9")}},
	}
	text, err := json.Marshal(h)
	content := &unstructured.Unstructured{}
	if err == nil {
		err = content.UnmarshalJSON(text)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	created, err := w.hostedClusters().Create(w.t.Context(), content.DeepCopy(), metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	content.SetResourceVersion(created.GetResourceVersion())
	if _, err := w.hostedClusters().UpdateStatus(w.t.Context(), content, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// lead runs a fleet until the end of the test.
func (w *world) lead(change func(*hostedruns.Options)) {
	w.t.Helper()
	scheme := w.client.Scheme()
	logger := slog.New(slog.NewTextHandler(w.t.Output(), nil))
	m, err := manager.New(config, manager.Options{
		Logger: logr.FromSlogHandler(logger.Handler()), Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	switched, err := hostedguard.New(w.management.Dynamic, guard.Deny, w.management.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	options := hostedruns.Options{
		Clusters: 10, Runs: 1, Ahead: 1, Preflight: w.preflight, Guard: switched, Interval: 100 * time.Millisecond, Logger: logger,
		Selection: func(image.Mode) string { return "" },
	}
	change(&options)
	if err := hostedruns.Add(m, w.management, options); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the fleet failed: %v", err)
		}
	})
}

// preflight is the Preflight of a fleet.
func (w *world) preflight(ctx context.Context, of *hypershift.HostedCluster, target runplan.Target) (report.Report, error) {
	w.mutex.Lock()
	w.began = append(w.began, of.Name+" "+target.Version)
	w.running[of.Name]++
	total := 0
	for name, count := range w.running {
		total += count
		if count > 1 {
			w.t.Errorf("%d runs of %s are in progress", count, name)
		}
	}
	w.most = max(w.most, total)
	decide := w.decide
	w.mutex.Unlock()
	defer func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.running[of.Name]--
	}()
	made, err := decide(ctx, of.Name, target.Version)
	made.Target = report.Target{Version: target.Version, Image: target.Image}
	return made, err
}

// runs are those that have begun.
func (w *world) runs() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.began)
}

// awaitShown waits for exactly these UpdatePreflights: hosted cluster, version, requester, phase.
func (w *world) awaitShown(want ...string) {
	w.t.Helper()
	var got []string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the UpdatePreflights are %q", got)
		}
	}()
	await.Until(w.t, "the UpdatePreflights are "+strings.Join(want, ", "), func(ctx context.Context) bool {
		var all v1alpha1.UpdatePreflightList
		if err := w.client.List(ctx, &all); err != nil {
			return false
		}
		got = nil
		for _, object := range all.Items {
			version := ""
			if object.Status.Target != nil {
				version = object.Status.Target.Version
			}
			got = append(got, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", object.Spec.HostedCluster.Name, version,
				object.Labels[v1alpha1.LabelRequester], object.Status.Phase)), " "))
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}

// object is the only UpdatePreflight of a hosted cluster.
func (w *world) object(name string) *v1alpha1.UpdatePreflight {
	w.t.Helper()
	var all v1alpha1.UpdatePreflightList
	if err := w.client.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	for i := range all.Items {
		if all.Items[i].Spec.HostedCluster.Name == name {
			return &all.Items[i]
		}
	}
	w.t.Fatalf("no UpdatePreflight of %s", name)
	return nil
}
