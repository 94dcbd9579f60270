// Package controller answers: which preflights run by themselves in this cluster, and
// when?
//
// [Add] adds it to a manager: it observes the cluster and executes the plan of package
// runplan, one run at a time, by the public functions of package runner.
//
// The controller has no state but the records of the runs, and the UpdatePreflights of
// administrators (package v1alpha1), which are requests. A run in progress whose process
// was killed is continued by the next leader, with its results so far. It writes the
// objects of its runs, its signals, UpdatePreflights and their events, and what it publishes
// of the records (package published), and never ClusterVersion.
//
// The signals state the verdicts in the cluster (package announcement). They are applied after each
// reconciliation and when a verdict expires, by the leader only, and apart from the runs.
package controller

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sigstore/sigstore/pkg/signature"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/followup"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/updatepreflight"
	"github.com/openshift/update-preflight/runner/trigger/upgradeconfig"
)

// Options are what may be chosen about the controller. All fields but Key are required.
type Options struct {
	// Ahead is how many offered targets to run ahead, at most MaxAhead; 0 for none.
	Ahead int
	// Delay returns by how long to delay a new run ahead.
	Delay func() time.Duration
	// Run are the options of each run; Requester, OnInterrupt and Monitoring are the
	// controller's.
	Run runner.Options
	// Monitoring finds the metrics and alerts, which each run reads anew.
	Monitoring monitoring.Finder
	// JudgePause is the shortest time between two judgements of the recorded verdicts;
	// 0 for none.
	JudgePause time.Duration
	// After are the times between two looks at the cluster after an update.
	After followup.Pauses
	// Signals state the verdicts, and Console shows them in the web console.
	Signals announcement.Signals
	Console *console.Keeper
	// Key signs the verdicts of the UpdatePreflights of administrators; nil signs none.
	Key    signature.Signer
	Logger *slog.Logger
	// Registry gets the metrics.
	Registry prometheus.Registerer
}

// controller plans at each event, and has its conductor follow the plan.
type controller struct {
	cluster *cluster.Cluster
	records *recordstore.Store
	reader  client.Reader
	options Options
	// selection is what the runs cover, and selects that of a mode of the images, as in a Target.
	selection string
	selects   func(image.Mode) string
	asked     selection.Asked
	conductor *conductor
	metrics   *announcement.Metrics
	signaler  *announcement.Signaler
	objects   *objects
	writer    updatepreflight.Writer
	upgrades  *upgradeconfig.Reader
	again     *judge
	inputs    *inputs
	after     *after
	// starts are when delayed runs start, by digest. Only Reconcile uses it, which is not
	// called concurrently.
	starts map[string]time.Time
}

// Add adds the controller to a manager, whose cache has the options of Cache. It acts
// while the manager leads.
func Add(m manager.Manager, cluster *cluster.Cluster, options Options) error {
	c := &controller{
		cluster: cluster, records: recordstore.New(cluster.Kubernetes), reader: m.GetCache(), options: options,
		selection: options.Run.Coverage(), selects: plannedrun.Selection(options.Run), asked: options.Run.Asked("the controller"), metrics: announcement.NewMetrics(), starts: map[string]time.Time{},
		signaler: announcement.NewSignaler(options.Signals, cluster.Now),
	}
	c.conductor = newConductor(onCluster{cluster: cluster, options: options.Run, monitoring: options.Monitoring}, cluster.Now, options.Logger)
	if err := options.Registry.Register(c.metrics); err != nil {
		return fmt.Errorf("could not register the metrics: %w", err)
	}
	if err := m.Add(c.conductor); err != nil {
		return fmt.Errorf("could not add the runs: %w", err)
	}
	c.again = &judge{
		cluster: cluster, records: c.records, options: options.Run, monitoring: options.Monitoring, logger: options.Logger,
		pause: options.JudgePause, pending: make(chan struct{}, 1),
	}
	if options.JudgePause > 0 {
		if err := m.Add(c.again); err != nil {
			return fmt.Errorf("could not add the judgements: %w", err)
		}
	}
	c.after = newAfter(cluster, options, c.metrics, m.GetEventRecorder(recorderName), func() { announcement.Signal(c.conductor.ended) })
	if err := m.Add(c.after.follower); err != nil {
		return fmt.Errorf("could not add the judgement of updates: %w", err)
	}
	c.inputs = &inputs{cache: m.GetCache(), changed: c.again.changed, watched: map[kind]bool{}}
	built, err := watch(m, c, c.conductor.ended, c.inputs.sources())
	if err != nil {
		return fmt.Errorf("could not watch the cluster: %w", err)
	}
	c.inputs.watch = built.Watch
	if err := c.signaler.Watch(m); err != nil {
		return fmt.Errorf("could not add the signals: %w", err)
	}
	if err := m.Add(options.Console); err != nil {
		return fmt.Errorf("could not add the objects for the console: %w", err)
	}
	c.objects = &objects{cache: m.GetCache(), logger: options.Logger, watch: built.Watch}
	c.writer = updatepreflight.Writer{
		Client: m.GetClient(), Reporter: updatepreflight.NewReporter(cluster, options.Key, options.Logger, c.after.follower.Latest), Recorder: m.GetEventRecorder(recorderName),
	}
	c.upgrades = upgradeconfig.New(cluster, m.GetCache(), func(object *unstructured.Unstructured, changes predicate.TypedPredicate[*unstructured.Unstructured]) error {
		return built.Watch(source.Kind(m.GetCache(), object, plan[*unstructured.Unstructured](), changes))
	}, options.Logger)
	return nil
}
