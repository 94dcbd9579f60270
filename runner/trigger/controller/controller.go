package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
)

// Options are what may be chosen about the controller. All fields are required.
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
	// Signals state the verdicts.
	Signals Signals
	Logger  *slog.Logger
	// Registry gets the metrics.
	Registry prometheus.Registerer
}

// controller plans at each event, and has its conductor follow the plan.
type controller struct {
	cluster   *cluster.Cluster
	records   *record.Store
	reader    client.Reader
	options   Options
	selection string
	conductor *conductor
	metrics   *metrics
	signaler  *signaler
	objects   *objects
	upgrades  *upgradeConfigs
	// starts are when delayed runs start, by digest. Only Reconcile uses it, which is not
	// called concurrently.
	starts map[string]time.Time
}

// Add adds the controller to a manager, whose cache has the options of Cache. It acts
// while the manager leads.
func Add(m manager.Manager, cluster *cluster.Cluster, options Options) error {
	c := &controller{
		cluster: cluster, records: record.New(cluster.Kubernetes), reader: m.GetCache(), options: options,
		selection: options.Run.Selection(), metrics: newMetrics(), starts: map[string]time.Time{},
		signaler: newSignaler(options.Signals, cluster.Now),
	}
	c.conductor = newConductor(onCluster{cluster: cluster, options: options.Run, monitoring: options.Monitoring}, cluster.Now, options.Logger)
	if err := options.Registry.Register(c.metrics); err != nil {
		return fmt.Errorf("could not register the metrics: %w", err)
	}
	if err := m.Add(c.conductor); err != nil {
		return fmt.Errorf("could not add the runs: %w", err)
	}
	built, err := watch(m, c)
	if err != nil {
		return fmt.Errorf("could not watch the cluster: %w", err)
	}
	if err := c.signaler.watch(m); err != nil {
		return fmt.Errorf("could not add the signals: %w", err)
	}
	c.objects = &objects{
		cache: m.GetCache(), writer: m.GetClient(), recorder: m.GetEventRecorder(recorderName), logger: options.Logger, watch: built.Watch,
	}
	c.upgrades = &upgradeConfigs{cache: m.GetCache(), logger: options.Logger, watch: built.Watch}
	return nil
}

// selectionOf is what the runs with a mode of the images cover, as in a Target.
func (c *controller) selectionOf(images image.Mode) string {
	options := c.options.Run
	options.Images = images
	if selection := options.Selection(); selection != c.selection {
		return selection
	}
	return ""
}

// announce reconciles after each value, until ctx is done.
func announce(values <-chan struct{}) func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-values:
					queue.Add(request())
				}
			}
		}()
		return nil
	}
}

// publish has the metrics and the signals state the verdicts, or that they could not be
// read.
func (c *controller) publish(err error, wanted []Target, decided verdicts) {
	c.metrics.set(err == nil, wanted, decided)
	c.signaler.set(err, wanted, decided)
}

// Reconcile implements reconcile.Reconciler: it plans, and has the plan followed.
func (c *controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	round, own := c.conductor.present()
	var version configv1.ClusterVersion
	err := c.reader.Get(ctx, client.ObjectKey{Name: name}, &version)
	if apierrors.IsNotFound(err) {
		c.options.Logger.Warn("this cluster has no ClusterVersion \"version\": no preflight runs")
		c.conductor.follow(round, order{})
		c.publish(nil, nil, nil)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("could not read ClusterVersion %q: %w", name, err)
	}
	c.warn(&version)
	listed, listErr := c.objects.list(ctx)
	subjects := Subjects(listed, &version, c.selectionOf, c.cluster.Now())
	scheduled, scheduleErr := c.upgrades.scheduled(ctx, &version)
	wanted := targets(&version, scheduled, c.options.Ahead)
	seen, err := c.observe(ctx, &version, wanted, subjects)
	seen.state.Scheduled = scheduled
	c.publish(err, wanted, seen.decided)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, listErr, scheduleErr)
	}
	c.conductor.forget(seen.targets)
	seen.state.Runs = withAttempts(seen.state.Runs, own)
	plan := c.delay(Decide(seen.state), seen.state.Now)
	c.conductor.follow(round, order{Plan: plan, generation: version.Generation})
	if listErr == nil && c.objects.watched {
		created, changed := c.objects.change(ctx, Reconciled(listed, wanted, &version))
		// Hundreds of others must not delay the first status of those.
		subjects = append(Subjects(created, &version, c.selectionOf, seen.state.Now), subjects...)
		next, projected := c.objects.project(ctx, subjects, seen.state, seen.decided, c.options.Run.Timeout)
		plan.wait(next)
		listErr = errors.Join(changed, projected)
	}
	if failed := errors.Join(listErr, scheduleErr); plan.Next.IsZero() || failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: max(time.Second, plan.Next.Sub(seen.state.Now))}, nil
}

// observed is the cluster as a plan and the UpdatePreflights depend on it.
type observed struct {
	state   State
	targets []Target
	decided verdicts
}

// observe reads what a plan depends on. The targets are those of the controller, and the
// subjects' own.
func (c *controller) observe(ctx context.Context, version *configv1.ClusterVersion, wanted []Target, subjects []Subject) (observed, error) {
	draining, err := c.anyDraining(ctx)
	if err != nil {
		return observed{}, fmt.Errorf("could not list the nodes: %w", err)
	}
	all := slices.Clone(wanted)
	for _, subject := range subjects {
		if subject.Unknown == "" {
			all = append(all, subject.Target)
		}
	}
	runs, decided, err := c.runs(ctx, all)
	if err != nil {
		return observed{}, err
	}
	state := State{
		Now: c.cluster.Now(), ClusterVersion: version, Draining: draining, Ahead: c.options.Ahead,
		Runs: runs, Requests: requestsOf(subjects, decided),
	}
	return observed{state: state, targets: all, decided: decided}, nil
}

// delay removes a new run ahead from a plan until its random delay has passed.
func (c *controller) delay(plan Plan, now time.Time) Plan {
	if !plan.Delay {
		clear(c.starts)
		return plan
	}
	digest := plan.Run.Digest()
	start, chosen := c.starts[digest]
	if !chosen {
		start = now.Add(c.options.Delay())
		clear(c.starts)
		c.starts[digest] = start
	}
	if start.After(now) {
		plan.Run = nil
		plan.wait(start)
	}
	return plan
}

// warn logs a request that CVO may not treat as the administrator expects.
func (c *controller) warn(version *configv1.ClusterVersion) {
	if desired := version.Spec.DesiredUpdate; desired != nil && desired.Mode == configv1.UpdateModePreflight {
		c.options.Logger.Warn("spec.desiredUpdate of ClusterVersion has mode Preflight: a CVO that ignores the mode starts the update")
	}
}
