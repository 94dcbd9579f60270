package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/runner/trigger/updatepreflight"
)

// cancelTimeout bounds the end of one run of another process.
const cancelTimeout = 2 * time.Minute

// errPostponed is why a run that an administrator requested gives way: it is continued
// later.
var errPostponed = errors.New("another run comes first")

// conductor runs one preflight at a time. Its methods may be called concurrently.
type conductor struct {
	preflights onCluster
	now        func() time.Time
	logger     *slog.Logger
	// changed has room for one value: there is another plan.
	changed chan struct{}
	// ended has room for one value: a run has ended.
	ended chan struct{}

	mutex sync.Mutex
	// round counts the runs that have ended.
	round   int
	plan    order
	current *plannedrun.Run
	// attempts are the last runs of this process.
	attempts []runplan.Run
}

// order is a plan, and the generation of the ClusterVersion that it is for.
type order struct {
	runplan.Plan
	generation int64
}

// endingOf is why a run is ended for a plan with another one.
func endingOf(f *plannedrun.Run, plan runplan.Plan) error {
	if slices.Contains(plan.Requests, f.Target.Object.UID) {
		return errPostponed
	}
	return plannedrun.ErrNotNeeded
}

func newConductor(preflights onCluster, now func() time.Time, logger *slog.Logger) *conductor {
	return &conductor{
		preflights: preflights, now: now, logger: logger,
		changed: make(chan struct{}, 1), ended: make(chan struct{}, 1),
	}
}

// present returns the run of this process that is in progress, if any, and its last
// runs. The round is for follow.
func (c *conductor) present() (round int, runs []runplan.Run) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	runs = slices.Clone(c.attempts)
	if c.current != nil {
		runs = append(runs, c.current.Planned)
	}
	return c.round, runs
}

// follow brings a plan about, and ends the run in progress if the plan has another one.
// A plan that was made before a run has ended is ignored: ended has announced the end.
func (c *conductor) follow(round int, plan order) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if round != c.round {
		return
	}
	c.plan = plan
	if c.current != nil && (plan.Run == nil || plan.Run.Digest() != c.current.Target.Digest()) {
		cause := endingOf(c.current, plan.Plan)
		c.logger.Info("ending the run", "version", c.current.Target.Version, "cause", cause)
		c.current.Cancel(cause)
	}
	announcement.Signal(c.changed)
}

// Start implements manager.Runnable: it runs the plans until ctx is done, and returns
// when the run in progress has ended.
func (c *conductor) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed:
			c.cancelOthers(ctx)
			c.runPlanned(ctx)
		}
	}
}

// cancelOthers ends the runs of other processes, such as a leader that was
// killed, that are not needed.
func (c *conductor) cancelOthers(ctx context.Context) {
	c.mutex.Lock()
	ids := c.plan.Cancel
	c.plan.Cancel = nil
	c.mutex.Unlock()
	for _, id := range ids {
		bound, release := context.WithTimeout(ctx, cancelTimeout)
		err := c.preflights.cancel(bound, id)
		release()
		c.logger.Info("canceled a run", "run", id, "cause", plannedrun.ErrNotNeeded, "error", err)
	}
}

// runPlanned makes the run of the plan, if it has one.
func (c *conductor) runPlanned(ctx context.Context) {
	begun := c.begin(ctx)
	if begun == nil {
		return
	}
	target := begun.Target
	c.logger.Info("running the preflight", "version", target.Version, "image", target.Image, "requester", target.Requester, "object",
		target.Object.Name)
	result := <-begun.Ended()
	decided := result.Report
	c.logger.Info("the preflight has ended", "version", target.Version, "run", decided.Run.ID, "phase", decided.Run.Phase,
		"decision", decided.Verdict.Decision, "error", result.Err)
	c.end(begun.Planned, decided.Run.ID, result.Err)
}

// begin begins the run of the plan; nil where it has none.
func (c *conductor) begin(ctx context.Context) *plannedrun.Run {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.plan.Run != nil {
		c.current = plannedrun.Start(ctx, *c.plan.Run, runplan.Begun(*c.plan.Run, c.plan.generation), c.preflights.run, func() {})
	}
	return c.current
}

// end remembers the run: a run that failed before it was recorded is not repeated at
// once. The cause is why it has no report; nil for none.
func (c *conductor) end(ended runplan.Run, id string, cause error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ended.ID, ended.Ended = id, c.now()
	if id == "" && cause != nil {
		ended.Failure = cause.Error()
	}
	c.attempts = runplan.Remember(c.attempts, ended)
	c.round++
	if c.plan.Run != nil && c.plan.Run.Digest() == ended.Target.Digest() {
		c.plan.Run = nil // whether it runs again is for the next plan
	}
	c.current = nil
	announcement.Signal(c.ended)
}

// forget forgets the last runs of other targets than these.
func (c *conductor) forget(targets []runplan.Target) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.attempts = slices.DeleteFunc(c.attempts, func(run runplan.Run) bool {
		return !slices.ContainsFunc(targets, func(target runplan.Target) bool { return target.Covered() == run.Covered() })
	})
}

// onCluster runs preflights on a cluster.
type onCluster struct {
	cluster    *cluster.Cluster
	options    runner.Options
	monitoring monitoring.Finder
}

// run makes the preflight of a target.
func (p onCluster) run(ctx context.Context, target runplan.Target) (report.Report, error) {
	options := plannedrun.Options(ctx, p.options, target)
	options.Judgement.Monitoring = monitoring.New(p.monitoring, monitoring.DefaultTimeout) // it reads everything once
	return runner.Run(ctx, p.cluster, runner.Target{Image: target.Image}, options)
}

// cancel ends the recorded run with that ID.
func (p onCluster) cancel(ctx context.Context, id string) error {
	_, err := hold.Cancel(ctx, place.Of(p.cluster, hosted.Estate{}), id, progress.New(p.options.Hooks.Observer, p.options.Hooks.Logger))
	if _, ended := errors.AsType[*lease.NotRunningError](err); ended {
		return nil
	}
	return err
}

// Reconcile plans, and has the plan followed.
func (c *controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	round, own := c.conductor.present()
	var version configv1.ClusterVersion
	err := c.reader.Get(ctx, client.ObjectKey{Name: name}, &version)
	if apierrors.IsNotFound(err) {
		c.options.Logger.Warn("this cluster has no ClusterVersion \"version\": no preflight runs")
		c.conductor.follow(round, order{})
		c.publish(nil, &version, nil, nil)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("could not read ClusterVersion %q: %w", name, err)
	}
	c.warn(&version)
	c.after.observe(&version)
	listed, listErr := c.objects.list(ctx)
	subjects := runplan.Subjects(listed, &version, c.selects, c.cluster.Now())
	scheduled, unscheduled, scheduleErr := c.upgrades.Scheduled(ctx, &version)
	wanted := runplan.Targets(&version, scheduled, c.options.Ahead)
	seen, err := c.observe(ctx, &version, wanted, subjects)
	seen.state.Scheduled, seen.state.Unscheduled = scheduled, unscheduled
	c.publish(err, &version, wanted, seen.decided)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, listErr, scheduleErr)
	}
	// A verdict that has ended is withdrawn before its target runs again. The run follows also
	// where that fails: its verdict replaces what is published.
	next, publishErr := published.Apply(ctx, c.cluster.Kubernetes, seen.records, c.asked.String(), seen.state.Now)
	c.again.set(seen.standingRuns())
	inputsErr := c.inputs.follow(ctx)
	c.conductor.forget(seen.targets)
	seen.state.Runs = withAttempts(seen.state.Runs, own)
	plan := c.delay(runplan.Decide(seen.state), seen.state.Now)
	c.conductor.follow(round, order{Plan: plan, generation: version.Generation})
	plan.Wait(next)
	plan.Wait(seen.retry())
	if listErr == nil && c.objects.watched {
		pass := c.writer.Begin()
		pass.Reconcile(ctx, updatepreflight.Cluster{
			Objects: listed, Subjects: subjects, Targets: wanted, State: seen.state, Verdicts: seen.decided,
			Selection: c.selects, Timeout: c.options.Run.Limits.Timeout,
		})
		next, listErr = pass.End()
		plan.Wait(next)
	}
	if failed := errors.Join(listErr, scheduleErr, inputsErr, publishErr); plan.Next.IsZero() || failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: max(time.Second, plan.Next.Sub(seen.state.Now))}, nil
}

// publish has the metrics and the signals state the verdicts, or that they could not be
// read: the notices stay until they end then.
func (c *controller) publish(err error, version *configv1.ClusterVersion, wanted []runplan.Target, decided runplan.Verdicts) {
	c.metrics.Set(err == nil, wanted, decided)
	c.signaler.Set(err, wanted, decided)
	if err == nil {
		c.options.Console.Set(console.Notices(wanted, decided, c.after.follower.Latest(version))...)
	}
}

// delay removes a new run ahead from a plan until its random delay has passed.
func (c *controller) delay(plan runplan.Plan, now time.Time) runplan.Plan {
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
		plan.Wait(start)
	}
	return plan
}

// warn logs a request that CVO may not treat as the administrator expects.
func (c *controller) warn(version *configv1.ClusterVersion) {
	if desired := version.Spec.DesiredUpdate; desired != nil && desired.Mode == configv1.UpdateModePreflight {
		c.options.Logger.Warn("spec.desiredUpdate of ClusterVersion has mode Preflight: a CVO that ignores the mode " +
			"starts the update")
	}
}

// controllerName is the name of the controller in logs and metrics, recorderName its name in events.
const (
	controllerName = "preflight"
	recorderName   = "update-preflight"
)

// watch makes each event that may change the plan reconcile the one request. Events of UpdatePreflights are watched
// later, when the API server serves them. ended has a value when a run has ended. The inputs reconcile nothing.
func watch(m manager.Manager, reconciler reconcile.Reconciler, ended <-chan struct{},
	inputs []source.Source,
) (runtimecontroller.Controller, error) {
	// All metadata but the annotations about drains is trimmed.
	drains := predicate.TypedAnnotationChangedPredicate[*corev1.Node]{}
	// The record of a run in progress is written once a second; the record of an ended run only if another client edits
	// it, or ends its verdict.
	edits := predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
			return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) ||
				e.ObjectNew.ResourceVersion != e.ObjectOld.ResourceVersion &&
					(record.Ended(e.ObjectNew.Labels) || e.ObjectNew.Namespace == published.Namespace)
		},
	}
	// What is published is restored when another client changes or deletes it.
	recorded := predicate.NewTypedPredicateFuncs(func(object *metav1.PartialObjectMetadata) bool {
		return object.Namespace == record.Namespace || object.Namespace == published.Namespace && object.Name == published.Name
	})
	schemas := predicate.TypedGenerationChangedPredicate[*metav1.PartialObjectMetadata]{}
	changes := predicate.TypedFuncs[*configv1.ClusterVersion]{
		UpdateFunc: func(e event.TypedUpdateEvent[*configv1.ClusterVersion]) bool {
			return !runplan.SameInputs(e.ObjectOld, e.ObjectNew)
		},
	}
	caches := m.GetCache()
	built := builder.ControllerManagedBy(m).Named(controllerName).
		WatchesRawSource(source.Kind(caches, &configv1.ClusterVersion{}, plan[*configv1.ClusterVersion](), changes)).
		WatchesRawSource(source.Kind(caches, records(), plan[*metav1.PartialObjectMetadata](), recorded, edits)).
		WatchesRawSource(source.Kind(caches, &corev1.Node{}, plan[*corev1.Node](), drains)).
		WatchesRawSource(source.Kind(caches, definitions(), plan[*metav1.PartialObjectMetadata](), schemas)).
		WatchesRawSource(source.TypedFunc[reconcile.Request](announcement.Announce(ended, request())))
	for _, each := range inputs {
		built = built.WatchesRawSource(each)
	}
	return built.Build(reconciler)
}

// request is the one request: everything is planned together.
func request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// plan has every event of a kind reconcile the one request.
func plan[T any]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request { return []reconcile.Request{request()} })
}
