package controller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimeconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/test/await"
)

// stepTimeout bounds each step of a test.
const stepTimeout = 10 * time.Minute

// toolVersion is the version of the controllers.
const toolVersion = "v1.0.0"

// world is the API server with a ClusterVersion, and without records and UpdatePreflights.
type world struct {
	// toolVersion is that of the records.
	toolVersion string
	t           *testing.T
	client      client.Client
	cluster     *cluster.Cluster
	log         *buffer
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		configv1.Install, corev1.AddToScheme, eventsv1.AddToScheme, apiextensionsv1.AddToScheme,
		v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, log: &buffer{}, toolVersion: toolVersion}
	var err error
	if w.client, err = client.New(config, client.Options{Scheme: newScheme(t)}); err != nil {
		t.Fatal(err)
	}
	if w.cluster, err = cluster.Connect(config, "test"); err != nil {
		t.Fatal(err)
	}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: record.Namespace}})
	w.deleteRecords()
	w.create(&configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
	})
	w.setVersion()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the controller:\n%s", w.log)
		}
	})
	return w
}

// deleteRecords deletes the records of former tests.
func (w *world) deleteRecords() {
	w.t.Helper()
	core := w.cluster.Kubernetes
	err := errors.Join(
		core.CoreV1().ConfigMaps(record.Namespace).DeleteCollection(w.t.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: record.Label}),
		core.CoordinationV1().Leases(record.Namespace).DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
	)
	if err != nil {
		w.t.Fatal(err)
	}
}

// create creates an object that may exist.
func (w *world) create(object client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
}

// setVersion sets the ClusterVersion to that of a cluster at 4.18.3 with these changes.
func (w *world) setVersion(changes ...change) {
	w.t.Helper()
	want := clusterVersion(changes...)
	for {
		var present configv1.ClusterVersion
		if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: "version"}, &present); err != nil {
			w.t.Fatal(err)
		}
		present.Status = want.Status
		present.Status.VersionHash = "0"
		present.Status.History = []configv1.UpdateHistory{{
			State: configv1.CompletedUpdate, Version: current, Image: image(current), StartedTime: metav1.NewTime(noon),
			CompletionTime: &metav1.Time{Time: noon},
		}}
		err := w.client.Status().Update(w.t.Context(), &present)
		if err == nil {
			present.Spec.DesiredUpdate = want.Spec.DesiredUpdate
			err = w.client.Update(w.t.Context(), &present)
		}
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		return
	}
}

// definition is the CustomResourceDefinition of UpdatePreflights.
func (w *world) definition() *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	text, err := os.ReadFile("../../../manifests/crd/preflight.openshift.io_updatepreflights.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		w.t.Fatal(err)
	}
	return crd
}

// install creates the CustomResourceDefinition, and deletes it with its objects and the
// records at the end of the test.
func (w *world) install() {
	w.t.Helper()
	w.create(w.definition())
	await.Until(w.t, "the CustomResourceDefinition is established", func(ctx context.Context) bool {
		return w.client.List(ctx, &v1alpha1.UpdatePreflightList{}) == nil
	})
	w.t.Cleanup(w.uninstall)
}

func (w *world) uninstall() {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	crd := w.definition()
	if err := client.IgnoreNotFound(w.client.Delete(ctx, crd)); err != nil {
		w.t.Error(err)
	}
	if err := w.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(record.Namespace),
		client.HasLabels{record.Label}); err != nil {
		w.t.Error(err)
	}
	await.Until(w.t, "the CustomResourceDefinition is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(w.client.Get(ctx, client.ObjectKeyFromObject(crd), &apiextensionsv1.CustomResourceDefinition{}))
	})
}

// start starts a controller that runs no target ahead, without signals. It ends with the
// test, or earlier by the function that is returned.
func (w *world) start() (end func()) {
	w.t.Helper()
	return lead(w.t, w.cluster, w.log, controller.Options{
		Ahead: 3, Run: runner.Options{Limits: runner.Limits{Timeout: stepTimeout}},
		Signals: newSignals(w.t, w.cluster),
	})
}

// lead runs a controller with these options until the returned function is called, at the
// latest until the end of the test.
func lead(t *testing.T, c *cluster.Cluster, log io.Writer, options controller.Options) (end func()) {
	t.Helper()
	caches, err := controller.Cache()
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	m, err := manager.New(config, manager.Options{
		Logger: logr.FromSlogHandler(logger.Handler()),
		Scheme: newScheme(t), Cache: caches, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: runtimeconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	options.Delay = func() time.Duration { return time.Hour }
	options.Monitoring = func(context.Context) (*rest.Config, error) { return nil, errors.New("no run reads the monitoring") }
	options.Logger, options.Registry = logger, prometheus.NewRegistry()
	options.Run.Hooks.ToolVersion = toolVersion
	if options.Console, err = console.New(c, "", toolVersion, logger); err != nil {
		t.Fatal(err)
	}
	if err := controller.Add(m, c, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller failed: %v", err)
		}
	})
	t.Cleanup(end)
	return end
}

// awaitObjects waits for exactly these UpdatePreflights: name, requester, phase.
func (w *world) awaitObjects(want ...string) {
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
			got = append(got, strings.TrimSpace(object.Name+" "+object.Labels[v1alpha1.LabelRequester]+" "+string(object.Status.Phase)))
		}
		return slices.Equal(got, want)
	})
}

func (w *world) object(name string) *v1alpha1.UpdatePreflight {
	w.t.Helper()
	var found v1alpha1.UpdatePreflight
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &found); err != nil {
		w.t.Fatal(err)
	}
	return &found
}

// awaitStatus waits until the status of an object meets the condition.
func (w *world) awaitStatus(name, what string, like func(v1alpha1.UpdatePreflightStatus) bool) v1alpha1.UpdatePreflightStatus {
	w.t.Helper()
	var status v1alpha1.UpdatePreflightStatus
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the status is %+v", status)
		}
	}()
	await.Until(w.t, "the status of "+name+": "+what, func(ctx context.Context) bool {
		var found v1alpha1.UpdatePreflight
		err := w.client.Get(ctx, client.ObjectKey{Name: name}, &found)
		status = found.Status
		return err == nil && like(status)
	})
	return status
}

func phase(phase v1alpha1.Phase) func(v1alpha1.UpdatePreflightStatus) bool {
	return func(s v1alpha1.UpdatePreflightStatus) bool { return s.Phase == phase }
}

// begin begins the record of a run of a version.
func (w *world) begin(version string) *lease.Held {
	w.t.Helper()
	intent := record.Intent{
		ID: uuid.NewString(), From: current, Target: update.Release{Version: version, Image: image(version)}, ToolVersion: w.toolVersion,
		Selection: runner.Options{}.Coverage(), Requester: record.ByUser,
	}
	held, err := lease.New(w.cluster.Kubernetes).Begin(w.t.Context(), intent, "tester")
	if err != nil {
		w.t.Fatal(err)
	}
	return held
}

// run records a complete run of a version that has these findings, and returns its ID.
func (w *world) run(version string, findings ...finding.Finding) string {
	w.t.Helper()
	ctx := w.t.Context()
	held := w.begin(version)
	id := held.Record().ID
	decided, folded := verdict.Fold(findings, verdict.Expectation{Checks: 1, Reported: 1}, verdict.Policy{})
	now := w.cluster.Now().Truncate(time.Second)
	decided.ValidUntil = now.Add(time.Hour).Format(time.RFC3339)
	text, err := json.Marshal(report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run:     report.Run{ID: id, StartTime: now.Format(time.RFC3339), CompletionTime: now.Format(time.RFC3339), Phase: report.PhaseComplete},
		Target:  report.Target{Version: version, Image: image(version)},
		Verdict: decided, Findings: folded, Expected: verdict.Expectation{Checks: 1, Reported: 1},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	seen := fingerprint.Read(ctx, snapshot.Of(w.cluster))
	if err := held.Finish(ctx, record.Ending{
		Phase: record.Complete, Verdict: decided, Report: text,
		Fingerprint: maps.Clone(map[string]string(seen)),
	}); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// blocks is a finding that blocks.
func blocks(name string) finding.Finding {
	found := finding.New(preflight.Fail, finding.ReportedReason("Broken"), "it is broken").Named(name).From(finding.SourceRisk)
	found.Blocks = true
	return found
}

// events are the events about an object: reason and type, the oldest first.
func (w *world) events(ctx context.Context, name string) []string {
	var all eventsv1.EventList
	if err := w.client.List(ctx, &all, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return nil
	}
	slices.SortFunc(all.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var found []string
	for _, event := range all.Items {
		if event.Regarding.Name == name && event.Regarding.Kind == v1alpha1.Kind {
			found = append(found, event.Type+" "+event.Reason+": "+event.Note)
		}
	}
	return found
}

// hold begins a run of a version as another process, and returns its ID. The run is in
// progress until the test ends.
func (w *world) hold(version string) string {
	w.t.Helper()
	held := w.begin(version)
	ctx, release := held.Hold(context.WithoutCancel(w.t.Context()))
	w.t.Cleanup(release)
	if err := ctx.Err(); err != nil {
		w.t.Fatal(err)
	}
	return held.Record().ID
}

// buffer is the log of a controller.
type buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

// String implements fmt.Stringer.
func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}
